"""Decides what of a text may become memory.

A greeting, a heartbeat, a progress bar or the bare schema of a tool is refused as a whole.
Sentences that describe how a tool is called are taken out. What is of lasting use stays: confirmed
workarounds, gotchas, known issues, owners, escalation paths. English and Chinese. Every way of
writing memory asks here.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from policies.content.parameters import PARAMETER
from policies.content.progress import progress_of
from policies.content.tool_definitions import is_tool_definition, without_tool_definitions
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
    """The number of sentences and definitions of tools removed."""


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
    return "tool_schema" if is_tool_definition(text) else None


def _is_heartbeat(line: str) -> bool:
    rest, beats = _HEARTBEAT.subn("", line[:_MAX_GREETING_CHARS])
    return beats > 0 and len(line) <= _MAX_GREETING_CHARS and bool(_ALL_WELL.fullmatch(rest))


def without_unsavable(text: str, *, tools: Sequence[str] = ()) -> Cleaned:
    """Remove the definitions of tools and the sentences that must never be saved; all else stays.

    `tools` are names or signatures of tools beside those that are known by their form. A name that
    is an ordinary word, such as `Read`, proves nothing and is not looked for, nor is such a
    parameter.
    """
    text, removed = without_tool_definitions(text)
    active = ActiveTools.of(tools, with_words=False)
    if not _POINTER.search(text) and active.mark(text) == text:
        return Cleaned(text, removed)
    reader = UsageReader(active, by_form=True)
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
