"""Generates what a model, or what calls itself one, may answer in one turn: whole, malformed or cut off.

A drawn turn is a plan without names; `replies` makes the events of it, with paths that no other
turn uses, so that whatever is found on disk can be attributed to one call.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.support.raw_model import Ending, RawReply, block, message, text_block


@dataclass(frozen=True, slots=True)
class Places:
    """Where calls act: what the gate allows and what it denies."""

    workspace: Path
    outside: Path


Kind = Callable[[str, Places], tuple[Any, Any]]
"""Makes the tool's name and its input, given a mark that no other call has."""


def _bash(command: str) -> tuple[str, dict[str, str]]:
    return "Bash", {"command": command}


def _write(path: Path, mark: str) -> tuple[str, dict[str, str]]:
    return "Write", {"file_path": str(path), "content": mark}


KINDS: Mapping[str, Kind] = {
    "write": lambda mark, at: _write(at.workspace / f"{mark}.txt", mark),
    "copy": lambda mark, _: _bash(f"cp memory/README.md {mark}.txt"),
    "mkdir": lambda mark, _: _bash(f"mkdir {mark}"),
    "write outside": lambda mark, at: _write(at.outside / f"{mark}.txt", mark),
    "write protected": lambda mark, at: _write(at.workspace / ".claude" / f"{mark}.txt", mark),
    "copy outside": lambda mark, at: _bash(f"cp memory/README.md {at.outside}/{mark}.txt"),
    "missing file": lambda mark, _: _bash(f"cat {mark}.txt"),
    "missing field": lambda mark, at: ("Write", {"file_path": str(at.workspace / f"{mark}.txt")}),
    "unknown tool": lambda mark, _: ("Frobnicate", {"mark": mark}),
    "list": lambda mark, _: ("Write", [mark]),
    "string": lambda mark, _: ("Bash", f"mkdir {mark}"),
    "number": lambda _, __: ("Bash", 5),
    "null": lambda _, __: ("Bash", None),
    "no name": lambda mark, _: (None, {"command": f"mkdir {mark}"}),
    "name is a number": lambda mark, _: (5, {"command": f"mkdir {mark}"}),
    "empty name": lambda mark, _: ("", {"command": f"mkdir {mark}"}),
}
RAW_INPUTS = ('{"command": "mkdir ', "", '{"a": ' + "[" * 3000 + "]" * 3000 + "}")
"""Cut off, empty, and nested deeper than Python's stack."""
IDS = ("toolu_same", "toolu_same", "toolu_other", "", None, 7, "new")
STOP_REASONS = (
    "tool_use",
    "tool_use",
    "tool_use",
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "refusal",
    "pause_turn",
    "model_context_window_exceeded",
    "never_heard_of",
    None,
)
SHAPES = (
    "whole",
    "same index",
    "gaps",
    "reversed",
    "starts first",
    "no stops",
    "delta first",
    "two starts",
    "no end",
    "late block",
)


@dataclass(frozen=True, slots=True)
class Words:
    """A block of text or thinking, or of a type that nobody knows."""

    type: str
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call."""

    kind: str
    id: Any
    again: bool = False
    """True if it repeats the call before it exactly."""
    raw_input: str | None = None
    """Sent instead of its input, as it is."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of the model."""

    blocks: tuple[Words | Call, ...]
    stop_reason: str | None
    shape: str = "whole"
    cut: int | None = None
    """After how many events the stream ends, modulo their number."""
    ending: Ending = "whole"
    times: int = 1
    """How often it is sent, to the letter, one model call after another."""


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """The answers of one turn, in order."""

    answers: tuple[Answer, ...]


_words = st.builds(
    Words,
    st.sampled_from(["text", "text", "text", "thinking", "banana"]),
    st.sampled_from(["I did it.", "做好了。", "", "   ", "{"]),
)
_calls = st.builds(
    Call,
    st.sampled_from(sorted(KINDS)) | st.sampled_from(["write", "mkdir", "write outside"]),
    st.sampled_from(IDS),
    again=st.sampled_from([False, False, False, True]),
    raw_input=st.sampled_from([None] * 12 + [*RAW_INPUTS]),
)
_blocks = st.lists(st.one_of(_calls, _calls, _words), max_size=4).map(tuple)
_whole = st.builds(Answer, _blocks, st.sampled_from(STOP_REASONS))
_empty = st.just(Answer((), "end_turn"))
_repeated = st.builds(Answer, _blocks, st.just("tool_use"), times=st.sampled_from([2, 7]))
_malformed = st.builds(Answer, _blocks, st.sampled_from(STOP_REASONS), st.sampled_from(SHAPES))
_cut = st.builds(
    Answer,
    _blocks,
    st.just("tool_use"),
    cut=st.integers(0, 20),
    ending=st.sampled_from(["closed", "dropped"]),
)
model_turns = st.lists(
    st.one_of(_whole, _whole, _whole, _whole, _malformed, _cut, _empty, _repeated),
    min_size=1,
    max_size=5,
).map(lambda answers: ModelTurn(tuple(answers)))


def replies(turn: ModelTurn, name: str, places: Places) -> list[RawReply]:
    """Return the raw replies of a turn; `name` makes the marks of its calls unique."""
    builder = _Builder(name, places)
    return [reply for answer in turn.answers for reply in [builder.reply(answer)] * answer.times]


class _Builder:
    def __init__(self, name: str, places: Places) -> None:
        self._name = name
        self._places = places
        self._count = 0
        self._last: tuple[Any, Any] | None = None

    def reply(self, answer: Answer) -> RawReply:
        content = [self._block(n, one) for n, one in enumerate(answer.blocks)]
        events = _shape(answer.shape, content, answer.stop_reason)
        if answer.cut is not None:
            events = events[: answer.cut % len(events)]
        return RawReply(events, answer.ending)

    def _block(self, index: int, part: Words | Call) -> list[dict[str, Any]]:
        if isinstance(part, Call):
            return self._call(index, part)
        if part.type == "text":
            return text_block(index, part.text)
        start = {"type": part.type, part.type: "", "signature": ""}
        return block(index, start, {"type": f"{part.type}_delta", part.type: part.text})

    def _call(self, index: int, call: Call) -> list[dict[str, Any]]:
        self._count += 1
        mark = f"m{self._name}_{self._count}"
        if not (call.again and self._last):
            self._last = KINDS[call.kind](mark, self._places)
        name, value = self._last
        given = f"toolu_{mark}" if call.id == "new" else call.id
        fields = {"type": "tool_use", "id": given, "name": name}
        start = {key: one for key, one in fields.items() if one is not None} | {"input": {}}
        text = json.dumps(value) if call.raw_input is None else call.raw_input
        half = len(text) // 2
        parts = (
            {"type": "input_json_delta", "partial_json": item}
            for item in (text[:half], text[half:])
        )
        return block(index, start, *parts)


def _shape(
    shape: str, content: Sequence[list[dict[str, Any]]], stop_reason: str | None
) -> list[dict[str, Any]]:
    """Return the events of a message that breaks the protocol in one way."""
    blocks = [list(events) for events in content]
    match shape:
        case "same index":
            blocks = [[{**event, "index": 0} for event in events] for events in blocks]
        case "gaps":
            blocks = [
                [{**event, "index": event["index"] * 3 + 2} for event in events]
                for events in blocks
            ]
        case "reversed":
            blocks = blocks[::-1]
        case "starts first":
            blocks = [[events[0] for events in blocks], *(events[1:] for events in blocks)]
        case "no stops":
            blocks = [events[:-1] for events in blocks]
        case "delta first":
            blocks = [[*events[1:2], events[0], *events[2:]] for events in blocks]
        case _:
            pass
    events = message(blocks, stop_reason)
    match shape:
        case "two starts":
            events.insert(len(events) // 2, events[0])
        case "no end":
            del events[-2:]
        case "late block":
            events[-1:-1] = text_block(len(content), "One more thing.")
        case _:
            pass
    return events
