"""Decides what of a text may become memory.

A greeting, a heartbeat, a progress bar or the bare schema of a tool is refused as a whole.
Sentences that describe how a tool is called are taken out. What is of lasting use stays: confirmed
workarounds, gotchas, known issues, owners, escalation paths. English and Chinese. Every way of
writing memory asks here.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from policies.content.parameters import PARAMETER
from policies.content.progress import progress_of
from policies.content.tool_names import TOOL
from policies.content.tool_usage import (
    SENTENCE_END,
    ActiveTools,
    UsageReader,
    describes_call,
    is_durable,
)

Refusal = Literal["empty", "greeting", "heartbeat", "progress", "tool_schema", "never_saved"]
"""Why a text may not become memory, in a word that goes out over HTTP."""

_TYPE_WORD = (
    "(?:string|str|integer|int|number|float|boolean|bool|array|object|list|dict|enum|null"
    "|字符串|整数|数字|浮点数?|布尔值?|数组|对象|列表)"
)
_GREETING: Final = re.compile(
    r"(?:[\s\W_]|\b(?:hi|hello|hey|hiya|yo|there|good (?:morning|afternoon|evening|night"
    "|day)|greetings"
    "|thanks?|thank you|thx|cheers|very much|so much|a lot|ok|okay|bye|goodbye|see you"
    "|later|welcome"
    "|you'?re welcome|you are welcome|how are you(?: doing)?|how can i help(?: you)?"
    "|today|got it|sure|great"
    "|nice to meet you|no problem|everyone|all|team|claude|done|understood|noted|alright"
    r"|fine|yes|no|yep|nope)\b"
    "|你好|您好|大家好|早上好|上午好|中午好|下午好|晚上好|早安|晚安|早|谢谢|多谢|感谢"
    "|再见|拜拜|辛苦了|不客气|不用谢"
    "|收到|在吗|哈喽|哈啰|嗨|明白了?|了解|好的|嗯+|完成了?|是的?|对的?|没问题|没事|您|你"
    "|大家|各位|请问|有什么可以帮(?:助|到)?(?:您|你)的?|[吗啊呀呢吧哈了])+",
    re.IGNORECASE,
)
_MAX_GREETING_CHARS = 300

_HEARTBEAT: Final = re.compile(
    "(?:heart-?beats?|ping|pong|keep-?alive|still (?:alive|running|waiting|here)|alive"
    "|health[ -]?checks?|liveness|readiness|心跳|保活|健康检查|存活检查)",
    re.IGNORECASE,
)
_ALL_WELL: Final = re.compile(
    r"(?:[\s\d\W_]|(?<=\d)[TZ]|\b(?:ok|okay|pass(?:ed)?|success(?:ful)?|healthy|received"
    "|sent|from|to|at|seq|no"
    r"|info|debug|trace|[tz]|ms|s|true|alive|status|node|worker|service|check)\b"
    "|正常|通过|成功|收到|发送|检测|信息|服务|节点|运行中|一切)*",
    re.IGNORECASE,
)

_PARAMETER: Final = re.compile(
    r"""^[\s\-*•|]{0,12}[`\"']?[\w.\-]{1,64}[`\"']?\s?(?:[(（:：|]"""
    rf"""|-)[\s`\"']{{0,4}}{_TYPE_WORD}(?![A-Za-z]).*$""",
    re.IGNORECASE,
)
_SCHEMA_HEAD: Final = re.compile(
    r"^[\s#*\-`>]{0,12}(?:tool|name|description|parameters?|arguments?|args"
    "|input[_ ]?schema|inputs?|schema|required"
    r"|returns?|usage|mcp__\w+|[\w\-]+::[\w\-]+|工具|名称|描述|说明|参数|入参|必填"
    "|返回)(?![A-Za-z]).{0,200}$",
    re.IGNORECASE,
)
_FENCE: Final = re.compile(r"^\s{0,8}(?:```|~~~)\w{0,16}\s*$")
_SCHEMA_KEYS: Final = frozenset(
    {"input_schema", "inputSchema", "parameters", "properties", "$schema"}
)
_MIN_PARAMETERS = 2
_LABEL: Final = re.compile(r"[\s\-*•>#]{0,12}(?:[^\W\d_]++[ \-]?+){1,3}+\**\s?[:：]")
"""`Gotcha:`, `**注意**：`."""
_CLAUSE_END: Final = re.compile(r"(?<=[;；])")
_POINTER: Final = re.compile(
    rf"{TOOL}|{PARAMETER}|mcp|::|tool|call|guess|input_?validation|工具|调用|呼叫|猜|估计|试出",
    re.IGNORECASE,
)
"""A sentence with none of these is not judged."""


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A text without what must never be saved."""

    text: str
    removed: int
    """The number of sentences removed."""


def refuse_worthless(text: str) -> Refusal | None:
    """Return why a text is worth nothing, or None if it may be worth something."""
    if not any(map(str.isalnum, text)):
        return "empty"
    if len(text) <= _MAX_GREETING_CHARS and _GREETING.fullmatch(text):
        return "greeting"
    lines = [line for line in text.splitlines() if line.strip()]
    if all(_is_heartbeat(line) for line in lines):
        return "heartbeat"
    if all(progress_of(line) is not None or _is_heartbeat(line) for line in lines):
        return "progress"
    return "tool_schema" if is_tool_schema(text) else None


def _is_heartbeat(line: str) -> bool:
    rest, beats = _HEARTBEAT.subn("", line[:_MAX_GREETING_CHARS])
    return beats > 0 and len(line) <= _MAX_GREETING_CHARS and bool(_ALL_WELL.fullmatch(rest))


def is_tool_schema(text: str) -> bool:
    """Return whether a text is only the definition of a tool, as JSON or as a
    list of parameters.
    """
    lines = [line for line in text.splitlines() if line.strip() and not _FENCE.match(line)]
    begin = next((at for at, line in enumerate(lines) if line.lstrip()[:1] in {"{", "["}), None)
    if begin is not None and all(_SCHEMA_HEAD.match(line) for line in lines[:begin]):
        try:
            return _is_schema(json.loads("\n".join(lines[begin:])))
        except (ValueError, RecursionError):
            pass  # it only looks like JSON
    parameters = [line for line in lines if _PARAMETER.match(line)]
    rest = [line for line in lines if not _PARAMETER.match(line)]
    return len(parameters) >= _MIN_PARAMETERS and all(_SCHEMA_HEAD.match(line) for line in rest)


def _is_schema(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(map(_is_schema, value))
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
    """Remove the sentences that must never be saved; all else stays as it is.

    `tools` are names or signatures of tools beside those that are known by their form. A name that
    is an ordinary word, such as `Read`, proves nothing and is not looked for, nor is such a
    parameter.
    """
    active = ActiveTools.of(tools, with_words=False)
    if not _POINTER.search(text) and active.mark(text) == text:
        return Cleaned(text, 0)
    reader = UsageReader(active, by_form=True)
    removed = 0
    kept_lines: list[str] = []
    for line in text.split("\n"):
        sentences = [
            clause
            for sentence in SENTENCE_END.split(line)
            for clause in _CLAUSE_END.split(sentence)
        ]
        kept = list(_savable(reader, line, sentences))
        removed += len(sentences) - len(kept)
        if len(kept) == len(sentences):
            kept_lines.append(line)
        elif any(any(map(str.isalnum, sentence)) for sentence in kept):
            kept_lines.append(" ".join(sentence.strip() for sentence in kept if sentence.strip()))
    return Cleaned("\n".join(kept_lines), removed)


def _savable(reader: UsageReader, line: str, sentences: Sequence[str]) -> Iterator[str]:
    """Yield the sentences of a line that may be saved; a labelled warning keeps its whole line."""
    reader.begin_line(line)
    read = [reader.read(sentence) for sentence in sentences]
    if _LABEL.match(line) and is_durable(read[0][0]):
        yield from sentences
        return
    for sentence, readings in zip(sentences, read, strict=True):
        if not any(_POINTER.search(reading) and describes_call(reading) for reading in readings):
            yield sentence
