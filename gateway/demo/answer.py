"""What one model call is answered with: values, and the Messages API's JSON of them, which `server`
sends.
"""

import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

NEW_ID: Final = object()
"""Stands for an id that the wire makes up."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text block; it may be empty."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """A thinking block; the wire makes up its signature."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call. A script may use any JSON value as name, input and id; None leaves the name or
    id out.
    """

    name: object
    arguments: object
    raw_arguments: str | None = None
    """Sent verbatim instead of `arguments`; it need not be JSON."""
    id: object = NEW_ID


Block: TypeAlias = Text | Thinking | ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How slowly a reply is sent."""

    delay_ms: int = 0
    """Before the first byte."""
    delta_delay_ms: int | None = None
    """Between chunks; None means the server's cadence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A complete answer: its blocks in order, and any stop reason."""

    blocks: tuple[Block, ...]
    stop_reason: str = "end_turn"
    pace: Pace = Pace()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An HTTP error in the API's shape."""

    status: int
    error_type: str
    message: str
    retry_after_s: float | None = None
    pace: Pace = Pace()


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """An answer that ends early."""

    ending: Literal["drop", "hang"] | Failure
    """A cut connection, silence until the client leaves, or an `error` event in the stream."""
    after_chars: int | None = None
    """How much of `text` is sent; None: not even the response's headers."""
    text: str = ""
    pace: Pace = Pace()


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """A body that is sent verbatim."""

    body: str
    status: int = 200
    content_type: str = "application/json"
    pace: Pace = Pace()


Reply: TypeAlias = Answer | Failure | Broken | Raw


def say(text: str) -> Answer:
    """Return the answer that consists of `text`."""
    return Answer(blocks=(Text(text),))


def call(*calls: ToolCall) -> Answer:
    """Return the answer that makes `calls` at once."""
    return Answer(blocks=calls, stop_reason="tool_use")


DEMO_MODEL = "candor-demo"

JsonObject: TypeAlias = dict[str, object]

_CHARS_PER_TOKEN = 4
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# A chunk is a few words or Chinese characters; long texts get larger chunks, so that they end in
# time.
_PIECES_PER_CHUNK = 4
_MAX_CHUNKS = 600
_PIECE = re.compile(r"[\u3000-\u9fff\uff00-\uffef]|[^\s\u3000-\u9fff\uff00-\uffef]{1,40}\s?|\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A server-sent event; `is_delta` marks those after which the server pauses."""

    data: JsonObject
    is_delta: bool = False

    def encode(self) -> bytes:
        """Return the bytes of the event."""
        return f"event: {self.data['type']}\ndata: {encode_json(self.data)}\n\n".encode()


def encode_json(value: object) -> str:
    """Return `value` as JSON; lone surrogates, which a script can spell, become U+FFFD."""
    return _LONE_SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False))


def estimate_tokens(value: object) -> int:
    """Return a plausible token count for a JSON value: at least one."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return max(1, len(text) // _CHARS_PER_TOKEN)


def stream_answer(answer: Answer, *, model: str, input_tokens: int) -> Iterator[Event]:
    """Yield the events of a streamed answer, from `message_start` to `message_stop`."""
    start = {**_message(model, input_tokens, output_tokens=1), "content": [], "stop_reason": None}
    yield Event(data={"type": "message_start", "message": start})
    yield Event(data={"type": "ping"})
    for index, block in enumerate(answer.blocks):
        yield from _stream_block(index, block)
    delta = {"stop_reason": answer.stop_reason, "stop_sequence": None}
    usage = {"output_tokens": _output_tokens(answer)}
    yield Event(data={"type": "message_delta", "delta": delta, "usage": usage})
    yield Event(data={"type": "message_stop"})


def answer_body(answer: Answer, *, model: str, input_tokens: int) -> JsonObject:
    """Return the answer as one JSON body, for requests that do not stream."""
    message = _message(model, input_tokens, _output_tokens(answer))
    content = [_block_body(block) for block in answer.blocks]
    return {**message, "content": content, "stop_reason": answer.stop_reason}


def error_body(error_type: str, message: str) -> JsonObject:
    """Return an error in the API's shape, with a new request id."""
    error = {"type": error_type, "message": message}
    return {"type": "error", "error": error, "request_id": _new_id("req_")}


def cut_chunks(text: str) -> Iterator[str]:
    """Yield the pieces that a stream sends one by one; joined they are `text`."""
    pieces: list[str] = _PIECE.findall(text)
    size = max(_PIECES_PER_CHUNK, -(-len(pieces) // _MAX_CHUNKS))
    for start in range(0, len(pieces), size):
        yield "".join(pieces[start : start + size])


def _stream_block(index: int, block: Block) -> Iterator[Event]:
    match block:
        case Text(text):
            yield _block_start(index, {"type": "text", "text": ""})
            for chunk in cut_chunks(text):
                yield _block_delta(index, {"type": "text_delta", "text": chunk})
        case Thinking(text):
            yield _block_start(index, {"type": "thinking", "thinking": "", "signature": ""})
            for chunk in cut_chunks(text):
                yield _block_delta(index, {"type": "thinking_delta", "thinking": chunk})
            yield _block_delta(index, {"type": "signature_delta", "signature": _new_id("sig_")})
        case ToolCall():
            yield _block_start(index, {**_block_body(block), "input": {}})
            payload = _arguments_text(block)
            middle = len(payload) // 2
            for part in (payload[:middle], payload[middle:]):
                yield _block_delta(index, {"type": "input_json_delta", "partial_json": part})
    yield Event(data={"type": "content_block_stop", "index": index})


def _message(model: str, input_tokens: int, output_tokens: int) -> JsonObject:
    return {
        "id": _new_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "stop_sequence": None,
        "usage": {"input_tokens": input_tokens, "output_tokens": output_tokens},
    }


def _block_start(index: int, block: JsonObject) -> Event:
    return Event(data={"type": "content_block_start", "index": index, "content_block": block})


def _block_delta(index: int, delta: JsonObject) -> Event:
    data = {"type": "content_block_delta", "index": index, "delta": delta}
    return Event(data=data, is_delta=True)


def _block_body(block: Block) -> JsonObject:
    match block:
        case Text(text):
            return {"type": "text", "text": text}
        case Thinking(text):
            return {"type": "thinking", "thinking": text, "signature": _new_id("sig_")}
        case ToolCall():
            own_id = _new_id("toolu_") if block.id is NEW_ID else block.id
            fields = {"type": "tool_use", "id": own_id, "name": block.name}
            raw = block.raw_arguments
            named = {key: value for key, value in fields.items() if value is not None}
            return {**named, "input": block.arguments if raw is None else raw}


def _arguments_text(call: ToolCall) -> str:
    return encode_json(call.arguments) if call.raw_arguments is None else call.raw_arguments


def _output_tokens(answer: Answer) -> int:
    return sum(
        estimate_tokens(_arguments_text(block) if isinstance(block, ToolCall) else block.text)
        for block in answer.blocks
    )


def _new_id(prefix: str) -> str:
    return f"{prefix}{uuid.uuid4().hex[:24]}"
