"""A turn as the events of a response.

The same events of the log always give the same events here, in order, so `sequence_number` means
the same at each reading, and a client resumes after any of them.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gateway.conversations.model import Turn, TurnEvent
from gateway.doors.openai.chunks import question
from gateway.doors.openai.response_objects import (
    Fields,
    Status,
    call_item,
    end_call,
    message_item,
    reasoning_item,
    response_of,
    status_of,
    text_part,
)
from gateway.doors.pieces import (
    Asked,
    CallEnded,
    CallStarted,
    Ended,
    Piece,
    PieceReader,
    Text,
    Thinking,
)
from gateway.errors import GatewayError, UnprocessableEntity
from gateway.jsonsafe import json_text

_ENDS = {"completed": "completed", "failed": "failed"}
"""The last event by the status; of all others `incomplete`."""


class ResponseWriter:
    """Writes one turn's response, and keeps it as far as it is written."""

    def __init__(self, turn: Turn, before: Turn | None, *, is_in_background: bool = False) -> None:
        """Initialise; `before` is the turn before it in its conversation. `is_in_background` is
        what its request said, which is not stored.
        """
        self._turn = turn
        self._is_in_background = is_in_background
        self._before = before
        self._reader = PieceReader(tells_failure=False)
        self._status: Status | None = None
        self._output: list[Fields] = []
        self._open: Fields | None = None
        """The message or reasoning that goes on."""
        self._calls: dict[int, Fields] = {}
        """Those that have not ended, by their number."""
        self._result: Mapping[str, Any] | None = None
        self.number = 0
        """Of the next event."""

    @property
    def has_ended(self) -> bool:
        """Whether the turn's end was read."""
        return self._result is not None

    def response(self) -> Fields:
        """Return the response as far as it is written."""
        fields = response_of(
            self._turn,
            self._before,
            status=self._status or "queued",
            output=self._output,
            result=self._result,
        )
        return fields | {"background": self._is_in_background}

    def write(self, events: Iterable[TurnEvent]) -> Iterator[Fields]:
        """Yield the events for a turn's next events."""
        for event in events:
            yield from self._begin(event.type)
            yield from self.write_pieces(self._reader.read([event]))

    def write_pieces(self, pieces: Iterable[Piece]) -> Iterator[Fields]:
        """Yield the events for a turn's next pieces."""
        yield from self._begin("")
        for piece in pieces:
            yield from self._piece(piece)

    def _begin(self, kind: str) -> Iterator[Fields]:
        if self._status is None:
            self._status = "queued" if kind == "turn.queued" else "in_progress"
            yield self._whole("created")
            yield self._whole(self._status)
        elif self._status == "queued" and kind == "turn.started":
            self._status = "in_progress"
            yield self._whole("in_progress")

    def _piece(self, piece: Piece) -> Iterator[Fields]:
        match piece:
            case Text(text, is_apart):
                yield from self._text(text, is_new=is_apart)
            case Thinking(text):
                yield from self._thinking(text)
            case Asked(fields):
                yield from self._text(question(fields), is_new=True)
                yield from self._close()
            case CallStarted(fields):
                yield from self._start_call(fields, json_text(fields["input"]))
            case CallEnded(fields):
                if fields["index"] not in self._calls:
                    yield from self._start_call(fields, json_text({"summary": fields["summary"]}))
                yield from self._end_call(fields)
            case Ended(result):
                yield from self._end(result)

    def _text(self, text: str, *, is_new: bool) -> Iterator[Fields]:
        item = self._open
        if is_new or item is None or item["type"] != "message":
            item = message_item(self._id("msg"))
            yield from self._add(item)
            item["content"] = [text_part("")]
            yield self._of(item, "content_part.added", content_index=0, part=item["content"][0])
        item["content"][0]["text"] += text
        yield self._of(item, "output_text.delta", content_index=0, delta=text, logprobs=[])

    def _thinking(self, text: str) -> Iterator[Fields]:
        item = self._open
        if item is None or item["type"] != "reasoning":
            item = reasoning_item(self._id("rs"))
            yield from self._add(item)
            item["summary"] = [{"type": "summary_text", "text": ""}]
            part = item["summary"][0]
            yield self._of(item, "reasoning_summary_part.added", summary_index=0, part=part)
        item["summary"][0]["text"] += text
        yield self._of(item, "reasoning_summary_text.delta", summary_index=0, delta=text)

    def _start_call(self, fields: Mapping[str, Any], arguments: str) -> Iterator[Fields]:
        item = call_item(self._id("mcp"), fields["name"], arguments)
        yield from self._add(item)
        self._open = None
        self._calls[fields["index"]] = item
        yield self._of(item, "mcp_call.in_progress")
        yield self._of(item, "mcp_call_arguments.done", arguments=arguments)

    def _end_call(self, fields: Mapping[str, Any]) -> Iterator[Fields]:
        item = self._calls.pop(fields["index"])
        end_call(item, fields)
        is_done = item["status"] == "completed"
        yield self._of(item, "mcp_call.completed" if is_done else "mcp_call.failed")
        yield self._done(item)

    def _end(self, result: Mapping[str, Any]) -> Iterator[Fields]:
        yield from self._close()
        for index in list(self._calls):
            yield from self._end_call({"index": index, "status": "unknown"})
        self._result = result
        self._status = status_of(result)
        yield self._whole(_ENDS.get(self._status, "incomplete"))

    def _add(self, item: Fields) -> Iterator[Fields]:
        """Begin an item behind all others."""
        yield from self._close()
        self._output.append(item)
        self._open = item
        yield self._event("output_item.added", output_index=len(self._output) - 1, item=dict(item))

    def _close(self) -> Iterator[Fields]:
        """End the message or reasoning that goes on."""
        item, self._open = self._open, None
        if item is None:
            return
        if item["type"] == "message":
            (part,) = item["content"]
            text = part["text"]
            yield self._of(item, "output_text.done", content_index=0, text=text, logprobs=[])
            yield self._of(item, "content_part.done", content_index=0, part=part)
        else:
            (part,) = item["summary"]
            text = part["text"]
            yield self._of(item, "reasoning_summary_text.done", summary_index=0, text=text)
            yield self._of(item, "reasoning_summary_part.done", summary_index=0, part=part)
        item["status"] = "completed"
        yield self._done(item)

    def _done(self, item: Fields) -> Fields:
        return self._event("output_item.done", output_index=self._output.index(item), item=item)

    def _of(self, item: Fields, kind: str, **fields: Any) -> Fields:
        at = self._output.index(item)
        return self._event(kind, item_id=item["id"], output_index=at, **fields)

    def _whole(self, kind: str) -> Fields:
        return self._event(kind, response=self.response())

    def _event(self, kind: str, **fields: Any) -> Fields:
        number = self.number
        self.number += 1
        return {"type": f"response.{kind}", "sequence_number": number, **fields}

    def _id(self, kind: str) -> str:
        return f"{kind}_{self._turn.id}_{len(self._output) + 1}"


class ResponseStream:
    """Writes the stream of a response, without the events up to `after`."""

    def __init__(self, writer: ResponseWriter, *, after: int = -1) -> None:
        self._writer = writer
        self._after = after

    def __call__(self, events: Iterable[TurnEvent]) -> Iterator[bytes]:
        """Yield the stream's text for a turn's next events. Raises as `lines` does."""
        return self.lines(self._writer.write(events))

    def lines(self, events: Iterable[Fields]) -> Iterator[bytes]:
        """Yield events of a response as text.

        Raise `UnprocessableEntity` if the response has ended before the event `after`.
        """
        for event in events:
            if event["sequence_number"] > self._after:
                yield _line(event)
        last = self._writer.number - 1
        if self._writer.has_ended and self._after > last:
            raise UnprocessableEntity(
                f"`starting_after` is {self._after}, but the last event of this response is {last}."
            )

    def failure(self, error: GatewayError, request_id: str) -> bytes:
        """Return an error that ends the stream; clients raise it."""
        told = error.body(request_id)
        fields = {"code": error.specific_code, "message": error.message, "param": None}
        return _line({"type": "error", "sequence_number": self._writer.number, **fields, **told})


def _line(event: Fields) -> bytes:
    return f"event: {event['type']}\ndata: {json_text(event)}\n\n".encode()
