"""A turn's events as pieces that every protocol needs, whatever the order and gaps of the events.

The reply is not always in the deltas: an interrupted or failed turn has its sentence in the result
alone. Behind a call a delta begins with blank lines, which a protocol with separate messages must
not show. What a person is asked about is what would run, not what the model wrote.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from json import loads
from typing import Any

from gateway.conversations.model import COMPLETED, TurnEvent


@dataclass(frozen=True, slots=True)
class Text:
    """A part of the reply."""

    text: str
    is_apart: bool
    """True if it begins a new paragraph: it follows a call, or replaces what was streamed."""


@dataclass(frozen=True, slots=True)
class Thinking:
    """A part of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The fields of `tool.started`."""

    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallEnded:
    """The fields of `tool.finished`, with the call's `summary`."""

    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """A person is asked: the fields of `approval.requested`."""

    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ended:
    """The turn's result."""

    result: Mapping[str, Any]


Piece = Text | Thinking | CallStarted | CallEnded | Asked | Ended


class PieceReader:
    """Reads the events of one turn, in order."""

    def __init__(self, *, from_start: bool = True, tells_failure: bool = True) -> None:
        """Initialise; `from_start` False: the first events were left out. `tells_failure` False:
        the sentence about a failure is no part of the reply, because the door tells it as an error.
        """
        self._from_start = from_start
        self._tells_failure = tells_failure
        self._told = ""
        """The deltas that count, as they came."""
        self._has_begun = False
        self._is_apart = False
        self._summaries: dict[int, str] = {}
        self._numbers: dict[str, int] = {}
        """Of calls of the first servers, which did not number them, by their ids."""

    def read(self, events: Iterable[TurnEvent]) -> Iterator[Piece]:
        """Yield the pieces of some events; the last of a turn is `Ended`."""
        for event in events:
            yield from self._read(event)

    def _read(self, event: TurnEvent) -> Iterator[Piece]:
        match event.type:
            case "text.delta":
                yield from self._text(loads(event.data)["text"])
            case "thinking.delta":
                yield Thinking(loads(event.data)["text"])
            case "tool.started":
                fields = self._call(event)
                self._summaries[fields["index"]] = fields["summary"]
                self._is_apart = self._has_begun
                yield CallStarted(fields)
            case "tool.finished":
                fields = self._call(event)
                self._is_apart = True
                yield CallEnded({"summary": self._summaries.get(fields["index"], ""), **fields})
            case "approval.requested":
                self._is_apart = True
                yield Asked({"input": {}, **self._call(event)})
            case "notice":
                if void := loads(event.data).get("void_text_chars", 0):
                    self._told = self._told[:-void]
                    self._is_apart = self._has_begun
            case kind if kind == COMPLETED:
                result = loads(event.data)
                reply = result["reply"]
                if not self._tells_failure and has_failed(result):
                    reply = reply.removesuffix(sentence_of(result))
                yield from self._rest(reply)
                yield Ended(result)

    def _call(self, event: TurnEvent) -> dict[str, Any]:
        """Return the fields of an event about a call, which has a number."""
        fields: dict[str, Any] = loads(event.data)
        if "index" not in fields:
            known = self._numbers
            fields["index"] = known.setdefault(fields["tool_use_id"], len(known) + 1)
        return fields

    def _text(self, text: str) -> Iterator[Piece]:
        self._told += text
        if self._is_apart or not self._has_begun:
            text = text.lstrip("\n")
        if text:
            yield Text(text, self._is_apart)
            self._has_begun, self._is_apart = True, False

    def _rest(self, reply: str) -> Iterator[Piece]:
        """Yield what the reply has and the deltas had not."""
        told, whole = _plain(self._told), _plain(reply)
        if told == whole:
            return
        begin = 0 if self._from_start else max(0, whole.rfind(told))
        if told and whole.startswith(told, begin):
            reply = _behind(reply, begin + len(told))
        if not reply.strip():
            return
        yield Text(reply.strip("\n"), self._has_begun)


def _plain(text: str) -> str:
    return "".join(text.split())


def _behind(text: str, count: int) -> str:
    """Return what follows the first `count` characters that are not white space."""
    for at, character in enumerate(text):
        if not count:
            return text[at:]
        count -= not character.isspace()
    return ""


def has_failed(result: Mapping[str, Any]) -> bool:
    """Return whether a turn's end is an error to its client: the model's service or the agent
    failed, or the server shut down.
    """
    return bool(result["outcome"] == "engine_failed" or result["stop_reason"] == "shutdown")


def is_cut_off(result: Mapping[str, Any]) -> bool:
    """Return whether the answer ended at the model's output limit."""
    return any(notice["code"] == "max_tokens" for notice in result.get("notices", ()))


def sentence_of(result: Mapping[str, Any]) -> str:
    """Return what the gateway says of a failure; the whole reply if no step has that alone."""
    last = (result.get("steps") or [{}])[-1]
    return str(last["text"] if last.get("by") == "gateway" else result["reply"])


def pieces_of(result: Mapping[str, Any], *, tells_failure: bool = True) -> Iterator[Piece]:
    """Yield the pieces of a turn that has ended, from its result. For `tells_failure` see
    `PieceReader`.
    """
    left_out = None if tells_failure or not has_failed(result) else sentence_of(result)
    calls = {tool["index"]: tool for tool in result["tools"] if "index" in tool}
    is_apart = False
    # turns of the first servers have no steps
    for step in result.get("steps", [{"type": "text", "text": result["reply"]}]):
        match step["type"]:
            case "text" if step["text"] != left_out:
                yield Text(step["text"].strip("\n"), is_apart)
                is_apart = True
            case "thinking":
                yield Thinking(step["text"])
            case "tool" if step["index"] in calls:
                yield CallEnded(calls[step["index"]])
                is_apart = True
    yield Ended(result)
