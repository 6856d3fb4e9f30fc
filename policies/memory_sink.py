"""May this text become memory?

Two questions. Is it worth anything: a greeting, a heartbeat, a progress bar or the bare schema of a tool is
not. And is there something in it that must never be saved: what a tool's parameters are called, how its
fields map, how somebody guessed that it is called, the raw text of a call that failed. The live definition
of a tool is right and memory is not, and an old guess misleads for ever. What is learned the hard way
stays: confirmed workarounds, gotchas, known issues, owners, where to escalate.

Both languages, and no model: whoever writes memory, by whatever way, asks here.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from policies.progress import progress_of
from policies.recall_names import ToolNames
from policies.recall_plain import plain_of
from policies.tool_talk import (
    goes_on_about_a_call,
    may_tell_of_a_call,
    names_a_tool,
    tells_of_a_call,
)

Refusal = Literal["empty", "greeting", "heartbeat", "progress", "tool_schema", "never_saved"]
"""Why a text may not become memory, in a word that goes out over HTTP."""

_GREETING: Final = re.compile(
    r"(?:[\s\W_]|\b(?:hi|hello|hey|hiya|yo|there|good (?:morning|afternoon|evening|night|day)|greetings"
    r"|thanks?|thank you|thx|cheers|very much|so much|a lot|ok|okay|bye|goodbye|see you|later|welcome"
    r"|you'?re welcome|you are welcome|how are you(?: doing)?|how can i help(?: you)?|today|got it|sure|great"
    r"|nice to meet you|no problem|everyone|all|team|claude|done|understood|noted|alright|fine|yes|no|yep|nope)\b"
    r"|你好|您好|大家好|早上好|上午好|中午好|下午好|晚上好|早安|晚安|早|谢谢|多谢|感谢|再见|拜拜|辛苦了|不客气|不用谢"
    r"|收到|在吗|哈喽|哈啰|嗨|明白了?|了解|好的|嗯+|完成了?|是的?|对的?|没问题|没事|您|你|大家|各位|请问|有什么可以帮(?:助|到)?(?:您|你)的?|[吗啊呀呢吧哈了])+",
    re.IGNORECASE,
)
_MAX_GREETING_CHARS = 300

_HEARTBEAT: Final = re.compile(
    r"(?:heart-?beats?|ping|pong|keep-?alive|still (?:alive|running|waiting|here)|alive"
    r"|health[ -]?checks?|liveness|readiness|心跳|保活|健康检查|存活检查)",
    re.IGNORECASE,
)
_ALL_WELL: Final = re.compile(
    r"(?:[\s\d\W_]|(?<=\d)[TZ]|\b(?:ok|okay|pass(?:ed)?|success(?:ful)?|healthy|received|sent|from|to|at|seq|no"
    r"|info|debug|trace|[tz]|ms|s|true|alive|status|node|worker|service|check)\b"
    r"|正常|通过|成功|收到|发送|检测|信息|服务|节点|运行中|一切)*",
    re.IGNORECASE,
)

_TYPE_WORD: Final = (
    r"(?:string|str|integer|int|number|float|boolean|bool|array|object|list|dict|enum|null"
    r"|字符串|整数|数字|浮点数?|布尔值?|数组|对象|列表)"
)
_PARAMETER: Final = re.compile(
    rf"^[\s\-*•|]{{0,12}}[`\"']?[\w.\-]{{1,64}}[`\"']?\s?(?:[(（:：|]|-)[\s`\"']{{0,4}}{_TYPE_WORD}(?![A-Za-z]).*$",
    re.IGNORECASE,
)
_SCHEMA_HEAD: Final = re.compile(
    r"^[\s#*\-`>]{0,12}(?:tool|name|description|parameters?|arguments?|args|input[_ ]?schema|inputs?|schema|required"
    r"|returns?|usage|mcp__\w+|[\w\-]+::[\w\-]+|工具|名称|描述|说明|参数|入参|必填|返回)(?![A-Za-z]).{0,200}$",
    re.IGNORECASE,
)
_FENCE: Final = re.compile(r"^\s{0,8}(?:```|~~~)\w{0,16}\s*$")
_SCHEMA_KEYS: Final = frozenset(
    {"input_schema", "inputSchema", "parameters", "properties", "$schema"}
)
_MIN_PARAMETERS = 2

_LEAD: Final = re.compile(
    r"^[\s\-*•>#]{0,12}\**(?:gotcha|warning|caution|known issue|work-?around|注意(?:事项)?|警告|已知问题|踩坑|坑|变通(?:方法|方案)?)\**\s?[:：]",
    re.IGNORECASE,
)
_SENTENCE_END: Final = re.compile(
    r"(?<=[。！？!?])\s*|(?<=\.)(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\bno\.)\s+", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A text without what must never be saved."""

    text: str
    removed: int
    """How many sentences went."""


def refuse_worthless(text: str) -> Refusal | None:
    """Say why a text is worth nothing, or None where it may be worth something."""
    if not any(map(str.isalnum, text)):
        return "empty"
    if len(text) <= _MAX_GREETING_CHARS and _GREETING.fullmatch(text):
        return "greeting"
    lines = [line for line in text.splitlines() if line.strip()]
    if all(_is_heartbeat(line) for line in lines):
        return "heartbeat"
    if all(progress_of(line) is not None or _is_heartbeat(line) for line in lines):
        return "progress"
    if is_tool_schema(text):
        return "tool_schema"
    return None


def _is_heartbeat(line: str) -> bool:
    found, beats = _HEARTBEAT.subn("", line[:_MAX_GREETING_CHARS])
    return beats > 0 and len(line) <= _MAX_GREETING_CHARS and bool(_ALL_WELL.fullmatch(found))


def is_tool_schema(text: str) -> bool:
    """Whether a text is nothing but the definition of a tool, as JSON or as a list of parameters."""
    lines = [line for line in text.splitlines() if line.strip() and not _FENCE.match(line)]
    begin = next((at for at, line in enumerate(lines) if line.lstrip()[:1] in {"{", "["}), None)
    if begin is not None and all(_SCHEMA_HEAD.match(line) for line in lines[:begin]):
        try:
            return _is_schema(json.loads("\n".join(lines[begin:])))
        except (ValueError, RecursionError):
            pass  # it only looked like JSON
    parameters = [line for line in lines if _PARAMETER.match(line)]
    rest = [line for line in lines if not _PARAMETER.match(line)]
    return len(parameters) >= _MIN_PARAMETERS and all(_SCHEMA_HEAD.match(line) for line in rest)


def _is_schema(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_is_schema(one) for one in value)
    if not isinstance(value, dict):
        return False
    for wrapper in ("tools", "function", "functions"):
        if wrapper in value:
            return _is_schema(value[wrapper])
    named = _SCHEMA_KEYS & value.keys()
    return any(isinstance(value[key], (dict, str)) for key in named) and (
        "$schema" in named or "type" in value or "name" in value or "input_schema" in named
    )


def without_unsavable(text: str, *, tools: Sequence[str] = ()) -> Cleaned:
    """Take out the sentences that must never be saved; all else stays as it is.

    `tools` are names of tools beside those that can be told by their form. A sentence that also holds
    something durable (a workaround, a gotcha, an owner) stays.
    """
    known = ToolNames.of(one for one in tools if _LIKE_A_NAME.search(one))
    if not may_tell_of_a_call(plain_of(text), known):
        return Cleaned(text, 0)
    reader = _Reader(known)
    removed = 0
    kept_lines: list[str] = []
    for line in text.split("\n"):
        sentences = [line] if _LEAD.match(line) else _SENTENCE_END.split(line)
        reader.begin(line)
        kept = [one for one in sentences if reader.may_save(one)]
        removed += len(sentences) - len(kept)
        if len(kept) == len(sentences):
            kept_lines.append(line)
        elif any(any(map(str.isalnum, one)) for one in kept):
            kept_lines.append(" ".join(one.strip() for one in kept if one.strip()))
    return Cleaned("\n".join(kept_lines), removed)


_LIKE_A_NAME: Final = re.compile(r"[_\-:\d]|[a-z][A-Z]")
"""A name such as `Read` or `search` is a word of any language: it tells nothing, and is not looked for."""


class _Reader:
    """Reads on from line to line: how a tool is called may stand behind the sentence that names it."""

    def __init__(self, known: ToolNames) -> None:
        self._known = known
        self._is_about_a_tool = False

    def begin(self, line: str) -> None:
        if not line.strip() or line.startswith("#"):
            self._is_about_a_tool = False

    def may_save(self, sentence: str) -> bool:
        plain = plain_of(sentence)
        if self._is_about_a_tool and (_PARAMETER.match(plain) or goes_on_about_a_call(plain)):
            return False
        self._is_about_a_tool = self._is_about_a_tool or names_a_tool(plain, self._known)
        return not tells_of_a_call(plain, self._known)
