"""The words by which a text is about how a tool is called, and those by which it is of lasting use.

English and Chinese, inflected and hyphenated. A word of lasting use does not count where it is a field of
the very schema that is told (`owner: string`): there it says nothing.
"""

import re
import unicodedata
from typing import Final

_GAP = r"[\s\-]{1,3}"
_PARAM = r"(?:param(?:eter)?s?|arguments?|args|fields?|inputs?|outputs?)"
_GUESSED = r"(?:calls?|tools?|usages?|formats?|param\w*|arg\w*|schemas?|signatures?|fields?)"

_ENGLISH: Final = "|".join(
    (
        rf"failed{_GAP}(?:tool{_GAP})?(?:calls?|invocations?|attempts?)",
        rf"(?:tool{_GAP})?calls?{_GAP}(?:that{_GAP}|has{_GAP}|have{_GAP}|which{_GAP})?(?:failed|failures?)",
        rf"failing{_GAP}(?:tool{_GAP})?calls?",
        rf"(?:fields?|param(?:eter)?s?){_GAP}mappings?",
        rf"guess(?:ed|es|ing)?{_GAP}(?:(?:the|a|at|its|about){_GAP})*(?:tool{_GAP})?{_GUESSED}",
        rf"(?:input|output|json|tool|calls?|request|response|api|function|arguments?|args|param(?:eter)?s?){_GAP}schemas?",
        r"input_schema|inputschema",
        rf"{_PARAM}{_GAP}(?:formats?|names?|types?|lists?|shapes?|order|specs?|definitions?|docs?|documentation)",
        rf"(?:required|optional|mandatory){_GAP}{_PARAM}",
        rf"(?:tool{_GAP})?(?:call(?:ing)?|invocation|request|usage){_GAP}(?:formats?|conventions?|signatures?|syntax|shapes?|examples?)",
        rf"tool{_GAP}(?:usages?|definitions?|signatures?|arguments?|param(?:eter)?s?)",
        rf"usage{_GAP}references?",
    )
)
_CHINESE_FORMS: Final = (
    r"参数(?:的)?\s?(?:格式|模式|结构|说明|列表|名称?|类型|定义|顺序|表|规范|映射|schema)",
    r"入参|出参(?!数化)|传参|(?:必填|可选|必选|请求|工具|调用)(?:的)?参数|必填(?:字段|项)",
    r"调用(?:的)?(?:格式|方式|方法|语法|约定|示例|签名|样例|规范)|函数签名",
    r"字段(?:的)?(?:映射|对应|对照|定义|说明|列表)",
    r"失败(?:的|了的)?(?:工具)?调用|(?:工具)?调用(?:时|总是|又)?(?:失败|报错|出错)",
    r"猜测?(?:的|出的|出来的|了)?(?:工具|调用|参数|格式|字段|用法)|试出来的(?:参数|格式|调用)",
    r"(?:接口|api)\s?(?:的)?(?:文档|说明|定义|规范|格式)",
    r"工具(?:的)?\s?(?:用法|使用说明|使用方法|使用方式|使用参考|模式|定义|schema|文档)",
    r"用法参考|使用参考|请求格式|返回(?:值)?格式|(?:工具|参数|输入|输出)\s?(?:schema|模式)",
)
_CHINESE: Final = "|".join(_CHINESE_FORMS)
USAGE_NOUNS: Final = f"{_ENGLISH}|{_CHINESE}"
"""What a text may say of how something is called; an alternation without groups that capture."""

_WORD_START = r"(?<![a-z0-9_/\\.\-])"
_WORD_END = r"(?![a-z0-9_/\\]|[.\-][a-z0-9])"
"""Neither in a longer word nor in a path: `config/parameters.yaml` tells of no call."""

USAGE: Final = re.compile(rf"{_WORD_START}(?:{_ENGLISH}){_WORD_END}|{_CHINESE}", re.IGNORECASE)

USAGE_BESIDE_A_NAME: Final = re.compile(
    rf"{_WORD_START}(?:{_PARAM}|schemas?|signatures?|usage|api{_GAP}(?:docs?|documentation|references?)){_WORD_END}"
    r"|参数(?!化)|用法|使用方法|使用说明",
    re.IGNORECASE,
)
"""Words that tell of a call only where the tool is told of in the same sentence."""

_NOT_OF_A_CALL: Final = (
    "(?!展开|扩展|替换|替代|解析|文件|传递|个数|数量|脚本|处理|化|[在写放存从由])"
)
"""`Bash 参数展开` tells of a language, `参数在 deploy.yaml` of a place."""
RIGHT_AT_A_NAME: Final = (
    rf"使用(?:方法|方式|说明|参数)|调用(?:方法|方式|说明|参数)|(?:必填|可选|必需|输入|全部)?(?:参数|入参|传参){_NOT_OF_A_CALL}"
    rf"|用法(?!律)|(?:怎么|如何|怎样)(?:用|使用|调用|传)"
)
"""Words that tell of a call where they stand right behind a tool's name."""
_GOES_ON: Final = r"(?=\s{0,2}(?:[:：=({（\[]|-\s|[—–]|(?:is|are|include)\b|$))"
WORDS_AT_A_NAME: Final = rf"(?i:usage|parameters?|params|arguments?|args|inputs?){_GOES_ON}"
_CLAUSE_HEAD: Final = r"[\s#>*\-\d.、`]{0,12}(?:(?:here\s(?:is|are)\s)?(?:the|its|their|this|these|an?)\s|其|它的|该工具的?|工具的)?"
UNATTRIBUTED_USAGE: Final = re.compile(
    rf"{_CLAUSE_HEAD}(?:(?:{_ENGLISH}){_WORD_END}(?!\s+(?:of|for|in|on)\s)|(?:{_CHINESE})(?!文件))",
    re.IGNORECASE,
)
"""A clause that tells first of all how something is called, and does not say what."""
UNATTRIBUTED_WORDS: Final = re.compile(
    rf"{_CLAUSE_HEAD}(?:{_PARAM}|schemas?|signatures?|usage|参数|用法|使用方法|使用说明)\s?[:：]",
    re.IGNORECASE,
)

_DURABLE: Final = re.compile(
    "|".join(
        (
            r"\bwarn(?:ings?|ed)?\b|\bcautions?\b|\b(?:gotchas?|caveats?|pitfalls?)\b",
            rf"\bknown{_GAP}(?:issues?|bugs?|problems?|defects?|limitations?)\b",
            r"\bwork[\s\-]?arounds?\b",
            rf"\b(?:owners?|ownership|owned{_GAP}by|maintainers?|maintained{_GAP}by|on-?call)\b",
            r"\bescalat(?:e|es|ed|ing|ions?)\b",
            r"\bcredentials?\b",
            r"警告|告警提示|注意事项|请注意|务必|切勿|已知(?:的)?(?:问题|缺陷|故障|限制|bug)|踩坑|避坑|坑点|陷阱",
            r"变通|规避|绕过(?:方法|方案|办法)|临时方案|解决办法|权宜",
            r"负责人|负责团队|所有者|归属|维护(?:者|人|团队)|值班|联系人",
            r"升级(?:路径|流程|渠道|联系)|上报(?:路径|流程|渠道)",
            r"凭据|凭证|(?:密钥|令牌|口令)(?:的)?(?:位置|存放|存储|在|放在|保存)",
        )
    ),
    re.IGNORECASE,
)
_BEHAVIOUR: Final = re.compile(
    r"\bsilent(?:ly)?\b|\b(?:always|never)\s+(?:pass|set|send|use|omit|call)\b"
    r"|\buse\b[^.;\n]{0,60}\binstead\b(?!\s+of)|\bpaginate\b[^.;\n]{0,60}\binstead\b|静默|改用",
    re.IGNORECASE,
)
"""A warning by what it says; it does not count beside what was guessed."""
_GUESS: Final = re.compile(r"\bguess|\bfailed\b|猜|失败|报错|试出", re.IGNORECASE)

_TYPE: Final = (
    r"(?:str(?:ing)?|int(?:eger)?|num(?:ber)?|float|bool(?:ean)?|array|object|list|dict|enum|null|any|required|optional"
    r"|字符串|整数|数字|布尔|数组|对象|列表|必填|可选)"
)
_KEY: Final = r"(?:warnings?|owners?|credentials?|maintainers?|ownership|负责人|所有者|凭据|凭证|警告|联系人|归属)"
_FIELD: Final = re.compile(
    rf"[\"'`]{_KEY}[\"'`]"
    rf"|\b{_KEY}\s*[:：(（=|-]\s*[\"'`\[{{(]?{_TYPE}(?![a-z])"
    rf"|\b{_KEY}\s*[:：]\s*[\"'{{]*type\b"
    rf"|\b{_KEY}\s*[:：-][^\n.。]{{0,60}}[(（\[`](?:str|int|num|bool|array|object|list|字符串|整数|数字|布尔|数组|对象)"
    rf"|\b{_KEY}\s*(?:=(?!=)|:\s*[{{\[]|->|=>|→)"
    rf"|(?:->|=>|→)\s*{_KEY}"
    rf"|\b{_KEY}\s*(?:field|param(?:eter)?|argument|字段|参数)s?\b"
    rf"|[{{\[]\s*(?:[\w?]{{1,64}}\s*,\s*){{0,20}}{_KEY}\s*(?=[,}}\]?:])"
    rf"|[\w.]\(\s*(?:[\w?]{{1,64}}\s*,\s*){{0,20}}{_KEY}\s*(?=[,)?])"
    rf"|(?:(?:{_PARAM})|参数|入参|字段)(?:\s+(?:are|is|include)|\s*[:：为有])\s*(?:[\w`]{{1,64}}\s*[,、，]\s*){{0,20}}`?{_KEY}`?\s*(?=[,、，.。)\n]|and\b|和|$)",
    re.IGNORECASE,
)
_NOTHING_KNOWN: Final = re.compile(
    r"\b(?:no|without) (?:any )?(?:known[ -]issues?|warnings?|gotchas?)\b"
    r"|(?:无|没有|暂无)(?:任何)?(?:已知问题|注意事项|警告)",
    re.IGNORECASE,
)
_NOTES_ON_A_FORMAT: Final = re.compile(
    r"(?:参数|调用|字段|接口|工具用法|格式|映射|文档)(?:的)?注意事项", re.IGNORECASE
)
"""Says that notes on a format follow: of lasting use only where they are not guesses or failures."""

_INVISIBLE: Final = re.compile(r"[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_TRADITIONAL_CHARACTERS: Final = "參數調馬證憑據負責敗誤題級徑報變規繞過臨時決辦權歸屬護聯繫絡鑰對應結構說類義順範傳選請項約語簽樣"
_SIMPLIFIED: Final = str.maketrans(
    _TRADITIONAL_CHARACTERS,
    "参数调马证凭据负责败误题级径报变规绕过临时决办权归属护联系络钥对应结构说类义顺范传选请项约语签样",
)
_TRADITIONAL: Final = re.compile(f"[{_TRADITIONAL_CHARACTERS}]")


def plain_of(text: str) -> str:
    """Give a text in one form: compatibility forms resolved, nothing invisible, simplified Chinese."""
    if text.isascii():
        return text
    clean = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    return clean.translate(_SIMPLIFIED) if _TRADITIONAL.search(clean) else clean


def is_durable(text: str) -> bool:
    """Whether a text is of lasting use, also while the tool that it names is in use."""
    if not (_DURABLE.search(text) or _BEHAVIOUR.search(text)):
        return False
    told = _NOTHING_KNOWN.sub(" ", _FIELD.sub(" ", text))
    guessed = _GUESS.search(told) is not None
    if guessed:
        told = _NOTES_ON_A_FORMAT.sub(" ", told)
    return bool(_DURABLE.search(told)) or (not guessed and bool(_BEHAVIOUR.search(told)))
