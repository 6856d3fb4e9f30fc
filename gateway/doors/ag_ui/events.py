"""A turn as the events of runs of AG-UI: one run, or several where a person is asked in between."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from gateway.conversations.model import TurnEvent
from gateway.doors.pieces import (
    Asked,
    CallEnded,
    CallStarted,
    Ended,
    Piece,
    PieceReader,
    Text,
    Thinking,
    has_failed,
    sentence_of,
)
from gateway.errors import GatewayError
from gateway.jsonsafe import json_text

PROTOCOL: Final = "1.0"
_TOLD: Final = ("conversation_id", "turn_id", "outcome", "stop_reason", "notices", "usage")
"""What a run's result has of the turn's."""
_ANSWER: Final = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "message": {"type": "string"},
        "answers": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["approved"],
}

Fields = dict[str, Any]


class Run:
    """Writes the stream of one run."""

    def __init__(self, thread_id: str, run_id: str, *, answered: Collection[str] = ()) -> None:
        """Initialise; the run begins behind the last of the turn's approvals `answered`."""
        self._names = {"threadId": thread_id, "runId": run_id}
        self._answered = set(answered)
        self._reader = PieceReader(tells_failure=False)
        self._has_begun = False
        self._open: tuple[str, str] | None = None
        """The message that goes on: `TEXT` or `REASONING`, and its id."""
        self._calls: dict[int, str] = {}
        """The ids of those that have not ended, by their number."""
        self._messages = 0
        self.is_over = False
        """True if nothing may follow."""

    def __call__(self, events: Iterable[TurnEvent]) -> Iterator[bytes]:
        """Yield the stream's text for a turn's next events."""
        yield from map(_line, self._write(events))

    def failure(self, error: GatewayError, request_id: str) -> bytes:
        """Return an error that ends the run."""
        _ = request_id  # the protocol has no place for it
        told = [*self._begin(), _failed(error.message, error.specific_code)]
        return b"".join(map(_line, told))

    def whole(self, pieces: Iterable[Piece]) -> bytes:
        """Return the stream of a turn that is told by pieces alone."""
        told = [*self._begin(), *(event for piece in pieces for event in self._piece(piece))]
        return b"".join(map(_line, told))

    def _write(self, events: Iterable[TurnEvent]) -> Iterator[Fields]:
        yield from self._begin()
        for event in events:
            for piece in self._reader.read([event]):
                if self.is_over:
                    return
                yield from self._skip(piece) if self._answered else self._piece(piece)

    def _begin(self) -> Iterator[Fields]:
        if not self._has_begun:
            self._has_begun = True
            yield {"type": "RUN_STARTED", **self._names, "protocolVersion": PROTOCOL}

    def _skip(self, piece: Piece) -> Iterator[Fields]:
        """Pass over what an earlier run told."""
        match piece:
            case CallStarted(fields):
                self._calls[fields["index"]] = fields["tool_use_id"]
            case CallEnded(fields):
                self._calls.pop(fields["index"], None)
            case Asked(fields):
                self._answered.discard(fields["approval_id"])
            case Ended():  # it does not hold these approvals
                self._answered.clear()
                yield from self._piece(piece)
            case _:
                pass

    def _piece(self, piece: Piece) -> Iterator[Fields]:
        match piece:
            case Text(text, is_apart):
                if is_apart:
                    yield from self._close()
                yield from self._add("TEXT", text)
            case Thinking(text):
                yield from self._add("REASONING", text)
            case CallStarted(fields):
                yield from self._start_call(fields, json_text(fields["input"]))
            case CallEnded(fields):
                yield from self._end_call(fields)
            case Asked(fields):
                yield from self._close()
                yield self._finished({"type": "interrupt", "interrupts": [_interrupt(fields)]})
            case Ended(result):
                yield from self._end(result)

    def _add(self, kind: str, text: str) -> Iterator[Fields]:
        """Add a text to the message that goes on, or begin one."""
        if not text:
            return
        if self._open is None or self._open[0] != kind:
            yield from self._close()
            message = self._message_id()
            self._open = (kind, message)
            if kind == "TEXT":
                yield {"type": "TEXT_MESSAGE_START", "messageId": message, "role": "assistant"}
            else:
                yield {"type": "REASONING_START", "messageId": message}
                start = {"type": "REASONING_MESSAGE_START", "role": "reasoning"}
                yield {**start, "messageId": message}
        yield {"type": f"{kind}_MESSAGE_CONTENT", "messageId": self._open[1], "delta": text}

    def _close(self) -> Iterator[Fields]:
        if self._open is None:
            return
        kind, message = self._open
        self._open = None
        yield {"type": f"{kind}_MESSAGE_END", "messageId": message}
        if kind == "REASONING":
            yield {"type": "REASONING_END", "messageId": message}

    def _start_call(self, fields: Mapping[str, Any], arguments: str) -> Iterator[Fields]:
        yield from self._close()
        call = {"toolCallId": fields["tool_use_id"]}
        self._calls[fields["index"]] = fields["tool_use_id"]
        yield {"type": "TOOL_CALL_START", **call, "toolCallName": fields["name"]}
        yield {"type": "TOOL_CALL_ARGS", **call, "delta": arguments}
        yield {"type": "TOOL_CALL_END", **call}

    def _end_call(self, fields: Mapping[str, Any]) -> Iterator[Fields]:
        if fields["index"] not in self._calls:
            yield from self._start_call(fields, json_text({"summary": fields["summary"]}))
        yield from self._close()
        told = fields.get("error") or fields.get("output") or fields["status"]
        yield self._returned(self._calls.pop(fields["index"]), told)

    def _returned(self, call: str, told: str) -> Fields:
        message = {"messageId": self._message_id(), "role": "tool"}
        return {"type": "TOOL_CALL_RESULT", **message, "toolCallId": call, "content": told}

    def _end(self, result: Mapping[str, Any]) -> Iterator[Fields]:
        yield from self._close()
        for call in self._calls.values():
            yield self._returned(call, "unknown")
        if has_failed(result):
            self.is_over = True
            yield _failed(sentence_of(result), result["stop_reason"])
            return
        kind = "cancelled" if result["outcome"] == "interrupted" else "success"
        told = {name: result[name] for name in _TOLD if result.get(name) is not None}
        yield {**self._finished({"type": kind}), "result": told}

    def _finished(self, outcome: Fields) -> Fields:
        self.is_over = True
        return {"type": "RUN_FINISHED", **self._names, "outcome": outcome}

    def _message_id(self) -> str:
        self._messages += 1
        return f"{self._names['runId']}:{self._messages}"


def _interrupt(fields: Mapping[str, Any]) -> Fields:
    """Return what a person is asked: what would run, not what the model wrote."""
    told = {
        "id": fields["approval_id"],
        "reason": "approval",
        "message": f"{fields['name']}: {fields['summary']}",
        "toolCallId": fields["tool_use_id"],
        "responseSchema": _ANSWER,
    }
    expires_at = fields.get("expires_at")
    return {**told, "expiresAt": expires_at} if expires_at else told


def _failed(message: str, code: str) -> Fields:
    return {"type": "RUN_ERROR", "message": message, "code": code}


def _line(event: Fields) -> bytes:
    return f"data: {json_text(event)}\n\n".encode()
