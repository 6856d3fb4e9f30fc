"""Decides what of a text may become memory.

A greeting, a heartbeat, a progress bar or the bare schema of a tool is refused as a whole. Sentences that
describe how a tool is called are taken out. What is of lasting use stays: confirmed workarounds, gotchas,
known issues, owners, escalation paths. English and Chinese. Every way of writing memory asks here.
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
from policies.patterns import read_patterns

Refusal = Literal["empty", "greeting", "heartbeat", "progress", "tool_schema", "never_saved"]
"""Why a text may not become memory, in a word that goes out over HTTP."""

_PATTERNS = read_patterns(__file__)
_GREETING: Final = re.compile(_PATTERNS["greeting"], re.IGNORECASE)
_MAX_GREETING_CHARS = 300

_HEARTBEAT: Final = re.compile(_PATTERNS["heartbeat"], re.IGNORECASE)
_ALL_WELL: Final = re.compile(_PATTERNS["all_well"], re.IGNORECASE)

_PARAMETER: Final = re.compile(_PATTERNS["parameter"], re.IGNORECASE)
_SCHEMA_HEAD: Final = re.compile(_PATTERNS["schema_head"], re.IGNORECASE)
_FENCE: Final = re.compile(r"^\s{0,8}(?:```|~~~)\w{0,16}\s*$")
_SCHEMA_KEYS: Final = frozenset(
    {"input_schema", "inputSchema", "parameters", "properties", "$schema"}
)
_MIN_PARAMETERS = 2
_LABEL: Final = re.compile(r"[\s\-*•>#]{0,12}(?:[^\W\d_]+[ \-]?){1,3}\**\s?[:：]")
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
    """Return whether a text is only the definition of a tool, as JSON or as a list of parameters."""
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

    `tools` are names or signatures of tools beside those that are known by their form. A name that is an
    ordinary word, such as `Read`, proves nothing and is not looked for, nor is such a parameter.
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
