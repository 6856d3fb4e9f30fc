"""Does a sentence tell how a tool of an agent is called?

Most of what is called a tool is none of an agent's: a build tool, a crane, 压测工具. Parameters, schemas and
failed calls are in every program. So two things must come together: a name that an agent's tool has, and
words about how something is called. The surer the name, the fewer words it takes. A few phrases are said
of nothing else and stand alone.

English and Chinese; texts are given as `plain_of` makes them. Every repetition is bounded: a text of any
length is read in one go.
"""

import re
from typing import Final

from policies.recall_lasting import is_durable
from policies.recall_markers import (
    UNATTRIBUTED_USAGE,
    UNATTRIBUTED_WORDS,
    USAGE,
    USAGE_BESIDE_A_NAME,
)
from policies.recall_names import ToolNames
from policies.tool_forms import ACTION_NAME, CAMEL, CERTAIN_NAME, COMPOUND, LIKELY_NAME, SNAKE

_SOME_TOOL: Final = re.compile(r"\btools?\b|工具|\bfunction[ -]call|函数调用", re.IGNORECASE)

_TYPE: Final = (
    r"(?:str(?:ing)?|int(?:eger)?|number|float|bool(?:ean)?|array|object|list|dict|enum"
    r"|字符串|整数|数字|浮点|布尔|数组|对象|列表)"
)
_TYPED: Final = re.compile(
    rf"[\w\"'`]\??\s?(?::|=|\()\s?[\"'`]?{_TYPE}(?![A-Za-z])",
    re.IGNORECASE,
)
"""A field with its type, as it is written down."""
_CALL: Final = re.compile(
    r"\{\s?[\"'`]?[A-Za-z_][\w\-]{0,60}[\"'`]?\s?[:=,}]"
    r"|[A-Za-z0-9_]{3}\((?:[\"'{\[]|[A-Za-z_]\w{1,60}\s?[=:,)])"
)
"""A call as it is written down: `{topic: …`, `query(topic, …`."""
_IS_A_TYPE: Final = re.compile(
    rf"\b(?:is|are|as|be) (?:an? )?{_TYPE}(?![A-Za-z])|(?:是|为){_TYPE}", re.IGNORECASE
)
_FORM: Final = re.compile(
    r"\b(?:required|mandatory|missing|unexpected|unknown|unrecognized|invalid) (?:required )?"
    r"(?:propert(?:y|ies)|parameters?|params?|arguments?|fields?|keys?|keyword|inputs?)\b"
    r"|\binput ?validation ?error\b|\btype ?error\b"
    r"|必填|(?:缺少|缺失|未知|多余)的?(?:必填)?(?:参数|字段|属性)|(?:参数|字段)(?:错误|缺失|校验失败|不合法)|类型错误",
    re.IGNORECASE,
)
"""What a tool says where the form of a call is wrong."""
_PARAMETER: Final = (
    r"(?:param(?:eter)?s?|arguments?|args|fields?|propert(?:y|ies)|inputs?|schemas?|signatures?)"
)
_PARAMETER_ZH: Final = r"(?:参数|字段|入参|签名|schema)"
_PARAMETERS: Final = re.compile(rf"\b{_PARAMETER}\b|{_PARAMETER_ZH}", re.IGNORECASE)
_GUESSED: Final = re.compile(
    rf"{_PARAMETERS.pattern}|{_CALL.pattern}|\b(?:takes|wants|expects)\b|要传",
    re.IGNORECASE,
)
"""What is guessed of an action's name."""
_TAKES: Final = re.compile(
    rf"\b(?:takes?|expects?|wants?|needs?|requires?|accepts?|rejects?|rejected|has|have|uses?)\b.{{0,60}}\b{_PARAMETER}\b"
    r"|\b(?:takes|expects|wants|accepts) (?!time\b)[a-z_]\w{0,60}(?:, [a-z_]\w{0,60}){0,9},? and [a-z_]"
    rf"|\b{_PARAMETER}(?: (?:of|for|to|are|is)\b| ?:)|: ?{_PARAMETER} [a-z_]"
    rf"|(?:需要?|要求|期望|接[受收]|只收|要|用|的|有|传入?)[^,。;]{{0,20}}{_PARAMETER_ZH}"
    rf"|{_PARAMETER_ZH}(?:是|为|有|包括|:|\s?[A-Za-z_`])",
    re.IGNORECASE,
)
_NAMES_A_FIELD: Final = re.compile(
    r"\b(?:with|wants?|rejects?|takes?|expects?|accepts?|needs?|requires?|set|pass)\b[^.;\n]{0,20}"
    rf"(?<![\w\-./])[`\"']?(?:(?:{SNAKE}|{CAMEL})(?![\w\-]|\.\w)|[a-z]\w{{0,40}}=\w)"
    rf"|(?<![\w\-./:])(?:{SNAKE}|{CAMEL})[`\"']? (?:(?:must|should|has to|needs to) be|is (?:required|mandatory|optional))\b"
    rf"|(?<![\w\-./:])(?:{SNAKE}|{CAMEL})[`\"']?(?:,? (?:not|instead of|rather than)\b|\s?(?:填|传|设为|写))"
)
"""An identifier where an argument stands: `with teamId`, `set top_k`."""
_CALLED_WITH: Final = re.compile(
    r"\b(?:call(?:s|ed|ing)?|invok(?:e|es|ed|ing)) (?:it )?(?:with|as)\b"
    r"|\b(?:call|invoke) [\w:\-`]{1,80} with (?!an?\b|the\b|care\b|caution\b)"
    r"|\b(?:to|when|for) (?:you |we )?(?:call|invok|us)(?:e|ing)?\b.{0,100}\b(?:pass|send|give|set|provide|specify)\b"
    r"|\b(?:takes|expects|wants|accepts) (?:[`\"'][\w\-]{1,60}[`\"']|[a-z_]\w{0,60}, not\b|[a-z_]\w{0,60} instead of\b)"
    r"|\b(?:that|because|since|if|when) [`\"']?\w{1,60}[`\"']? (?:is|was) missing\b|缺少?\s?[`\"']?[A-Za-z_]"
    r"|\b(?:takes|expects|wants|accepts) (?!long\b|time\b|ages\b|forever\b|minutes\b|hours\b)[a-z_][\w.]{0,60}[.,;]?$"
    r"|\bmust be (?!\w{1,40}ed\b)\w{1,40} or \w|必须(?:是|为)[^,。;]{1,20}(?:或|、)"
    rf"|\b{_PARAMETER}\b|\benum\b|\bmappings?\b|\bmaps? (?:\w{{1,40}} ){{1,3}}to\b"
    r"|\bcall(?:s|ed|ing)?\b.{0,60}\b(?:failed|fails|rejected)\b"
    r"|传(?:入|参|了?\s?[`\"']?[A-Za-z_])|[用传填写带]\s?[`\"']?[A-Za-z_]\w{0,60}[`\"']?\s?,?\s?(?:而?不是|而非|不要)"
    rf"|{_PARAMETER_ZH}|映射|不能为空|调用.{{0,60}}(?:失败|报错)",
    re.IGNORECASE,
)
"""Words that tell of a call only beside a certain name."""
_SAID_OF_TOOLS_ALONE: Final = re.compile(
    r"\bguess(?:ed|es|ing)?\b[^.;\n]{0,20}\b(?:call|calling|tool|invocation)[ -](?:formats?|schemas?|signatures?|syntax|names?)\b"
    r"|猜(?:测|想)?(?:到|出来?)?的?(?:工具|调用|参数|字段)的?(?:格式|方式|名称?|签名|语法|映射|schema)"
    rf"|^\W{{0,12}}(?i:failed|guessed)(?: tool)?[ -]calls?(?: log)?\s?:\s?[`\"'「“]?(?:[\w.:\-]{{1,80}}\(|{COMPOUND})"
    rf"|^\W{{0,12}}(?:失败|猜测)的?(?:工具)?调用(?:记录|原文|日志)?\s?:\s?[`\"'「“]?(?:[\w.:\-]{{1,80}}\(|{COMPOUND})"
    r"|\b(?i:failed tool[ -]calls?) ?:|\bInputValidationError ?:"
    r"|\"(?:arguments|tool_input|input_schema)\" ?: ?[{\"]|\btool_(?:call|use)\"? ?:"
    r"|\"tool(?:_?name)?\" ?: ?\"[^\"]{1,80}\" ?, ?\"(?:input|args|parameters|params)\" ?:"
    r"|^\W{0,12}调用(?:格式|语法)\s?(?:是|为|:)[^。\n]{0,20}传"
)
_OF_WRITTEN_CALLS: Final = re.compile(
    r"\bcall(?:ing)? (?:formats?|syntax|signatures?)\b|\binputvalidationerror\b"
    r"|\btool[ -](?:schemas?|definitions?)\b|调用(?:的)?(?:格式|语法|签名)|工具\s?的?\s?(?:schema|定义)",
    re.IGNORECASE,
)
"""Words that tell of a tool where a call is written down beside them."""
_POINTERS: Final = (
    "mcp",
    "::",
    "tool",
    "工具",
    "call",
    "调用",
    "guess",
    "猜",
    "试出",
    "inputvalidation",
    *("probably", "maybe", "perhaps", "not yet", "not tried", "not tested", "not verified"),
    *("估计", "大概", "可能", "没试过", "未验证", "未试过"),
)
"""Nothing here matches a text that has none of these and no known name."""
_OF_A_PROGRAM: Final = re.compile(r"(?<![\w\-])--?[a-z][\w\-]{1,40}(?![\w\-]*\()")
"""An option of a command line: the tool is a program, whatever it is called."""
_WHERE: Final = re.compile(
    rf"\b{_PARAMETER}(?: (?:of|for) [\w:\-`]{{1,80}})?(?:\s(?:are|is|stands?|lives?|comes?|kept|defined|set|documented|read|stored|declared)){{0,3}}"
    r"\s(?:in|from|at|under)\s(?:the |our |its |an? )?[`\"']?"
    r"(?:[\w.\-]{0,60}[./][\w./\-]{1,60}|readme|wiki|docs?\b|documentation|repo|config|environment|settings|vault)"
    r"|(?:参数|入参|字段|schema)(?:的?(?:定义|格式|说明|配置))?(?:都|全部|统一)?(?:写|放|存|记|配置|定义)?(?:在|见|来自|取自)",
    re.IGNORECASE,
)
"""Where parameters are written says nothing of what they are."""

_LASTING: Final = re.compile(
    r"\bconfirmed\b|\b(?:fixed|solved|cured|resolved) (?:by|with|in|since)\b|\bwent away\b|\broot cause\b"
    r"|注意(?!力)|责任人|踩过?的?坑|有个?坑|确认有效|已验证|修复|解决了|根因|后(?:就|又|即|都)?(?:恢复|正常|解决|好了)",
    re.IGNORECASE,
)
"""What was learned of a failure; beside the form of a call it may be just another guess."""
_LIST: Final = re.compile(
    r"(?:\b(?:are|is)\s|:\s?)[`\"']?[a-z]\w{0,40}(?:[`\"']?(?:, ?| and |、)[`\"']?[a-z]\w{0,40}){1,12}"
)
"""Fields one after another: `are owner, repo and title` names no owner."""
_GUESS: Final = re.compile(
    r"\bguess|^\W{0,12}(?:probably|maybe|perhaps)\b|\bnot (?:yet )?(?:tried|tested|verified)\b"
    r"|猜|试出|^\W{0,12}(?:估计|大概|可能)|没试过|未(?:验证|试过)",
    re.IGNORECASE,
)


def may_tell_of_a_call(text: str, known: ToolNames) -> bool:
    """Whether a closer look is worth it; cheap."""
    folded = text.lower()
    return any(one in folded for one in _POINTERS) or known.may_be_in(text)


def tells_of_a_call(sentence: str, known: ToolNames) -> bool:
    """Whether a sentence says how an agent's tool is called, and nothing of lasting use.

    `known` are names of tools beside those that can be told by their form.
    """
    return _is_about_a_call(sentence, known) and not _is_lasting(sentence)


def names_a_tool(sentence: str, known: ToolNames) -> bool:
    """Whether a sentence names a tool of an agent."""
    return bool(CERTAIN_NAME.search(sentence) or LIKELY_NAME.search(sentence)) or bool(
        known.distinct_in(sentence)
    )


def goes_on_about_a_call(sentence: str) -> bool:
    """Whether a sentence behind one that names a tool goes on with how that is called."""
    told = UNATTRIBUTED_USAGE.match(sentence) or UNATTRIBUTED_WORDS.match(sentence)
    return told is not None and not _is_lasting(sentence)


def _is_about_a_call(sentence: str, known: ToolNames) -> bool:
    if _SAID_OF_TOOLS_ALONE.search(sentence):
        return True
    told = _WHERE.sub(" ", sentence)
    if CERTAIN_NAME.search(sentence) or known.distinct_in(sentence):
        return _has_form(told) or any(
            words.search(told) for words in (USAGE, USAGE_BESIDE_A_NAME, _TAKES, _CALLED_WITH)
        )
    if _GUESS.search(sentence) and ACTION_NAME.search(sentence) and _GUESSED.search(told):
        return True
    if LIKELY_NAME.search(sentence) and not _OF_A_PROGRAM.search(sentence):
        return _has_form(told) or bool(USAGE.search(told) or _TAKES.search(told))
    if _OF_WRITTEN_CALLS.search(sentence) and _is_written_down(sentence):
        return True
    if not (_SOME_TOOL.search(sentence) and _TYPED.search(sentence)):
        return False
    return bool(_CALL.search(sentence) or _PARAMETERS.search(sentence))


def _has_form(sentence: str) -> bool:
    return any(
        words.search(sentence) for words in (_TYPED, _IS_A_TYPE, _CALL, _FORM, _NAMES_A_FIELD)
    )


def _is_written_down(sentence: str) -> bool:
    return any(words.search(sentence) for words in (_TYPED, _IS_A_TYPE, _CALL))


def _is_lasting(sentence: str) -> bool:
    if is_durable(_LIST.sub(" ", sentence)):
        return True
    learned = _LASTING.search(sentence) and not _GUESS.search(sentence)
    return bool(learned) and not (_TYPED.search(sentence) or _CALL.search(sentence))
