"""What is of lasting use, also while the tool that it names is in use.

A warning, a known issue, a workaround, who owns it, whom to call, where its credentials are; English and
Chinese. Such a word says nothing where it is a field of the very schema that is told (`owner: string`), nor
where it is denied (`no known issues`).
"""

import re
from typing import Final

from policies.recall_markers import PARAM, TYPE

_GAP = r"[\s\-]{1,3}"
_A_PERSON: Final = r"(?:[@#]\w|(?-i:[A-Z][a-z]+)\b|the\s[\w\s]{1,30}\bteam\b)"

# What is of lasting use, each by its English words, which begin a word, and its Chinese ones.
_WARNINGS: Final = (
    (
        rf"(?:warn(?:ings?|ed)?|cautions?|gotchas?|caveats?|pitfalls?|traps?|foot-?guns?|beware|careful(?:ly)?|watch\s(?:out|it)|take\scare"
        rf"|heads?-up|mind\s(?:that|the)|(?:be|bear)\s(?:aware|in\smind)|(?:must|should)\snever|risky|danger(?:ous)?|lessons?{_GAP}learn(?:ed|t))\b|risks?\s?[:：]"
    ),
    (
        r"警告|告警提示|注意事项|请注意|注意\s?[:：,，!！]|小心|当心|务必|切勿|切记|慎用|(?:提醒(?:一下)?|教训|风险(?:提示)?)\s?[:：,，]"
        r"|千万(?:不|别|勿|要|小心|注意|记得)|踩[过了到]?的?(?:一个)?坑|避坑|坑点|(?:有个|有一个|的)坑|(?:^|[\n。；;])\s*坑\s?[:：]|陷阱|经验教训"
    ),
)
_KNOWN_ISSUES: Final = (
    rf"(?:known{_GAP}(?:issues?|bugs?|problems?|defects?|limitations?)|limitations?|flaky)\b",
    r"已知(?:的)?(?:问题|毛病|缺陷|故障|限制|bug)|(?:^|[\n。；;])\s*(?:使用)?限制\s?[:：]",
)
_WORKAROUNDS: Final = (
    r"(?:work[\s\-]?arounds?|(?:fix(?:es)?|remedy|cure)\s(?:for|when|if)|(?:just|simply|then|and)\s(?:retry|try\sagain|reconnect|restart))\b",
    (
        r"变通|规避|绕过(?:方法|方案|办法)|(?:临时|替代|备用)方案|(?:解决|应对|补救)(?:办法|方法|方案)|权宜"
        r"|(?:再试|重试|重启|重连)(?:一次|一下)?(?:即可|就好|就行|就能|可恢复)|即可恢复"
    ),
)
_OWNERS: Final = (
    (
        rf"(?:owners?|ownership|owned{_GAP}by|maintainers?|maintained{_GAP}by|maintains|look(?:s|ed)\safter|on-?call|point\sof\scontact|contacts?\s(?:for|is|are)"
        rf"|team\sbehind)\b|(?:contact\s?[:：]?|ask|ping|tell|(?:reach\sout|talk|speak|write)\sto)\s{_A_PERSON}"
        r"|(?-i:[A-Z][a-z]+)\sis\s(?:in\scharge\sof|responsible\sfor)\b"
    ),
    (
        r"负责(?:人|团队)|责任人|所有者|归属|维护(?:者|人|团队|方)|值班|(?:联系|对接|接口)人|由[^，。；;\n]{1,12}(?:维护|负责)|归[^，。；;\n]{1,12}(?:管|维护|所有)"
        r"|[请可]联系(?!电话|方式|地址)|直接联系|(?:问题|疑问|故障|失败|变更)[^，。；;\n]{0,8}(?:找|联系|问(?!题))"
    ),
)
_ESCALATION: Final = (
    r"escalat(?:e|es|ed|ing|ions?)\b",
    r"升级(?:路径|流程|渠道|联系)|上报(?:路径|流程|渠道)",
)
_IN_THE_REQUEST: Final = r"请求|参数|字段|头|header|body|url|query"
_PLACE: Final = (
    r"(?:\b(?:lives?|(?:is|are)\s(?:kept|stored)|vault|1password|bitwarden|keychain|keepass)\b"
    rf"|(?>存放|保存|存储|存|放)[在于]?+\s?+(?!{_IN_THE_REQUEST})|位置|保险库)"
)
"""Where a secret is kept; its place in a request (`token 放在 header`) belongs to the call."""
_CREDENTIALS: Final = (
    (
        r"credentials?\b|(?:passwords?|passphrases?|(?:api|access)[\s\-]?keys?|tokens?|secrets?|kubeconfig|logins?)\b"
        rf"[^.。\n]{{0,60}}?{_PLACE}"
    ),
    rf"凭据|凭证|(?:密码|密钥|令牌|口令|证书)(?:[^.。\n]{{0,60}}?{_PLACE}|的?在\s?+(?!{_IN_THE_REQUEST}))",
)
_KINDS: Final = (_WARNINGS, _KNOWN_ISSUES, _WORKAROUNDS, _OWNERS, _ESCALATION, _CREDENTIALS)
_DURABLE: Final = re.compile(
    rf"\b(?:{'|'.join(english for english, _ in _KINDS)})|{'|'.join(chinese for _, chinese in _KINDS)}",
    re.IGNORECASE,
)

_BEHAVIOUR: Final = re.compile(
    r"\bsilent(?:ly)?\b|\b(?:always|never|(?:do|must|should)(?:\s(?:not|never)|n't)|don't)\s+(?:be\s)?(?:pass|set|send|use|omit|call|give|loop|run)(?:ed|en)?\b"
    r"|\buse\b[^.;\n]{0,60}\binstead\b(?!\s+of)|\bpaginate\b[^.;\n]{0,60}\binstead\b"
    r"|\bhas\sno\seffect\b|\b(?:is|are|gets?)\s(?:ignored|truncated|cut\soff|dropped|rate[\s\-]limited)\b|\b(?:ignores|truncates|drops)\b"
    r"|\bwithout\s(?:any\s)?(?:an\s)?(?:error|notice)\b|\btimes?\sout\b|\bpages\s(?:the|every)"
    r"|静默|改用|不起作用|不生效|[被会][^，。；;\n]{0,8}(?:忽略|截断|丢弃|拖垮|锁住|打挂|卡死|卡住)|(?:^|[，,。；;\n])\s*(?:不要|别)[把给用在]",
    re.IGNORECASE,
)
"""A warning by what it says; it does not count beside what was guessed."""
_GUESS: Final = re.compile(r"\bguess|\bfailed\b|猜|失败|报错|试出", re.IGNORECASE)

_KEY: Final = (
    r"(?:warnings?|owners?|credentials?|maintainers?|ownership|escalations?|limitations?"
    r"|负责人|责任人|对接人|所有者|凭据|凭证|警告|联系人|归属)"
)
_LISTED: Final = r"(?:[\w`]{1,64}\s*(?:[,、，]|\band\b|\bor\b|和|与)\s*){0,20}"
_LIST_GOES_ON: Final = (
    r"`?\s*(?=[,、，.。;；)）(（\n]|and\b|or\b|和|与|必填|可选|(?:is|are)\s(?:required|optional)|$)"
)
_FIELD: Final = re.compile(
    rf"[\"'`]{_KEY}[\"'`]"
    rf"|\b{_KEY}\s*[:：(（=|-]\s*[\"'`\[{{(]?(?:{TYPE}|any|required|optional|必填|可选)(?![a-z])"
    rf"|\b{_KEY}\s*[:：]\s*[\"'{{]*type\b"
    rf"|\b{_KEY}\s*[:：-][^\n.。]{{0,60}}[(（\[`](?:str|int|num|bool|array|object|list|字符串|整数|数字|布尔|数组|对象)"
    rf"|\b{_KEY}\s*(?:=(?!=)|:\s*[{{\[])|\b{_KEY}(?:\s(?-i:[a-z]{{1,20}})){{0,2}}\s*(?:->|=>|→)(?:\s*{_KEY})?"
    rf"|(?:->|=>|→)\s*{_KEY}"
    rf"|\b{_KEY}\s*(?:field|param(?:eter)?|argument|字段|参数)s?\b"
    rf"|[{{\[]\s*(?:[\w?]{{1,64}}\s*,\s*){{0,20}}{_KEY}\s*(?=[,}}\]?:])"
    rf"|[\w.]\(\s*(?:[\w?]{{1,64}}\s*,\s*){{0,20}}{_KEY}\s*(?=[,)?])"
    rf"|(?:{PARAM}|参数|入参|字段)(?:\s(?:of|for)\s[\w:`\-]{{1,80}})?(?:\s+(?:are|is|include)\b|\s*[:：,，为有是])?\s*{_LISTED}`?{_KEY}{_LIST_GOES_ON}"
    rf"|\b(?:takes?|accepts?|expects?|wants?|needs?|requires?)\s{_LISTED}{_KEY}\s*(?=,|and\b)",
    re.IGNORECASE,
)
_DENIED: Final = re.compile(
    r"\b(?:no|without|(?:not|isn't|nor|lacks?|never)(?:\san?)?)[^\S\n](?:(?:any|known|other|further|listed|documented|such|real)[^\S\n]){0,2}"
    r"(?:(?:known[\s\-])?(?:issues?|bugs?|problems?)|warnings?|cautions?|gotchas?|caveats?|pitfalls?|traps?|limitations?"
    r"|work[\s\-]?arounds?|owners?|maintainers?|on-?call|escalation|credentials?|fix\sfor|(?:point\sof\s)?contacts?)\b"
    r"|(?:无|没有?|未(?:发现|设|知|提供)|不是|并非|不算)(?:任何|什么|已知的?|相关的?|明确的?|其他|一个){0,2}"
    r"(?:已知(?:问题|缺陷|限制)|问题|注意事项|警告|坑|陷阱|变通(?:方法|方案|办法)?|规避(?:方法|办法)?|解决(?:方法|方案|办法)|替代方案"
    r"|负责(?:人|团队)|责任人|(?:联系|对接|接口)人|维护(?:者|人|团队)|值班|升级路径|凭据|凭证)",
    re.IGNORECASE,
)
_NOTES_ON_A_FORMAT: Final = re.compile(
    r"(?:参数|调用|字段|接口|工具用法|格式|映射|文档)(?:的)?注意事项", re.IGNORECASE
)
"""Says that notes on a format follow: of lasting use only where they are not guesses or failures."""


def is_durable(text: str) -> bool:
    """Whether a text, as `plain_of` makes it, is of lasting use."""
    if not (_DURABLE.search(text) or _BEHAVIOUR.search(text)):
        return False
    told = _DENIED.sub(" ", _FIELD.sub(" ", text))
    guessed = _GUESS.search(told) is not None
    if guessed:
        told = _NOTES_ON_A_FORMAT.sub(" ", told)
    return bool(_DURABLE.search(told)) or (not guessed and bool(_BEHAVIOUR.search(told)))
