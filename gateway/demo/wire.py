"""The Messages API's shapes: an answer as server-sent events or as one JSON body, errors, the model list.

Pure: ids come in through `NewId`, pauses are the server's affair (an event says whether one belongs after it).
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from gateway.demo.answer import NEW_ID, Answer, Block, Text, Thinking, ToolCall

DEMO_MODEL = "candor-demo"

JsonObject: TypeAlias = dict[str, object]
NewId: TypeAlias = Callable[[str], str]
"""Makes an id that was never used before, with the given prefix."""

_CHARS_PER_TOKEN = 4
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# A chunk is a few words, or as many Chinese characters; long texts get larger chunks so that they still end.
_PIECES_PER_CHUNK = 4
_MAX_CHUNKS = 600
_PIECE = re.compile(r"[\u3000-\u9fff\uff00-\uffef]|[^\s\u3000-\u9fff\uff00-\uffef]{1,40}\s?|\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One server-sent event; `is_delta` marks those after which a typist would pause."""

    data: JsonObject
    is_delta: bool = False

    def encode(self) -> bytes:
        """The event as it goes over the wire."""
        return f"event: {self.data['type']}\ndata: {encode_json(self.data)}\n\n".encode()


def encode_json(value: object) -> str:
    """JSON that can be sent: halves of characters, which a script can spell, become U+FFFD."""
    text = json.dumps(value, ensure_ascii=False)
    return _LONE_SURROGATE.sub("\ufffd", text)


def estimate_tokens(value: object) -> int:
    """A plausible count for any JSON value: at least one."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return max(1, len(text) // _CHARS_PER_TOKEN)


def stream_answer(
    answer: Answer, *, model: str, input_tokens: int, new_id: NewId
) -> Iterator[Event]:
    """The events of a streamed answer, from `message_start` to `message_stop`."""
    yield message_start(model=model, input_tokens=input_tokens, new_id=new_id)
    yield Event(data={"type": "ping"})
    for index, block in enumerate(answer.blocks):
        yield from _stream_block(index, block, new_id)
    yield Event(
        data={
            "type": "message_delta",
            "delta": {"stop_reason": answer.stop_reason, "stop_sequence": None},
            "usage": {"output_tokens": _output_tokens(answer)},
        }
    )
    yield Event(data={"type": "message_stop"})


def message_start(*, model: str, input_tokens: int, new_id: NewId) -> Event:
    """The opening event."""
    message = _message([], model=model, usage=_usage(input_tokens, 1), new_id=new_id)
    return Event(data={"type": "message_start", "message": message})


def stream_text_start(index: int) -> Event:
    """The opening of a text block."""
    return _block_start(index, {"type": "text", "text": ""})


def stream_text_deltas(index: int, text: str) -> Iterator[Event]:
    """The chunks of a text block."""
    for chunk in cut_chunks(text):
        yield _block_delta(index, {"type": "text_delta", "text": chunk})


def answer_body(answer: Answer, *, model: str, input_tokens: int, new_id: NewId) -> JsonObject:
    """The whole answer as one JSON body, for requests that do not stream."""
    content = [_block_body(block, new_id) for block in answer.blocks]
    message = _message(
        content, model=model, usage=_usage(input_tokens, _output_tokens(answer)), new_id=new_id
    )
    return {**message, "stop_reason": answer.stop_reason}


def error_body(error_type: str, message: str, *, request_id: str) -> JsonObject:
    """An error in the API's shape."""
    return {
        "type": "error",
        "error": {"type": error_type, "message": message},
        "request_id": request_id,
    }


def model_body() -> JsonObject:
    """The one model there is."""
    return {
        "type": "model",
        "id": DEMO_MODEL,
        "display_name": "Candor demo (scripted answers)",
        "created_at": "2025-01-01T00:00:00Z",
    }


def models_body() -> JsonObject:
    """The answer of `GET /v1/models`."""
    return {
        "data": [model_body()],
        "has_more": False,
        "first_id": DEMO_MODEL,
        "last_id": DEMO_MODEL,
    }


def cut_chunks(text: str) -> Iterator[str]:
    """Cut `text` into what a stream would send at once; joined again they are `text`."""
    pieces: list[str] = _PIECE.findall(text)
    size = max(_PIECES_PER_CHUNK, -(-len(pieces) // _MAX_CHUNKS))
    for start in range(0, len(pieces), size):
        yield "".join(pieces[start : start + size])


def _stream_block(index: int, block: Block, new_id: NewId) -> Iterator[Event]:
    match block:
        case Text(text):
            yield stream_text_start(index)
            yield from stream_text_deltas(index, text)
        case Thinking(text):
            yield _block_start(index, {"type": "thinking", "thinking": "", "signature": ""})
            for chunk in cut_chunks(text):
                yield _block_delta(index, {"type": "thinking_delta", "thinking": chunk})
            yield _block_delta(index, {"type": "signature_delta", "signature": new_id("sig_")})
        case ToolCall():
            yield _block_start(index, {**_block_body(block, new_id), "input": {}})
            payload = _arguments_text(block)
            middle = len(payload) // 2
            for part in (payload[:middle], payload[middle:]):
                yield _block_delta(index, {"type": "input_json_delta", "partial_json": part})
    yield Event(data={"type": "content_block_stop", "index": index})


def _block_start(index: int, block: JsonObject) -> Event:
    return Event(data={"type": "content_block_start", "index": index, "content_block": block})


def _block_delta(index: int, delta: JsonObject) -> Event:
    return Event(
        data={"type": "content_block_delta", "index": index, "delta": delta}, is_delta=True
    )


def _block_body(block: Block, new_id: NewId) -> JsonObject:
    match block:
        case Text(text):
            return {"type": "text", "text": text}
        case Thinking(text):
            return {"type": "thinking", "thinking": text, "signature": new_id("sig_")}
        case ToolCall():
            fields = {
                "id": new_id("toolu_") if block.id is NEW_ID else block.id,
                "name": block.name,
            }
            named = {key: value for key, value in fields.items() if value is not None}
            raw = block.raw_arguments
            return {"type": "tool_use", **named, "input": block.arguments if raw is None else raw}


def _arguments_text(call: ToolCall) -> str:
    return encode_json(call.arguments) if call.raw_arguments is None else call.raw_arguments


def _message(
    content: list[JsonObject], *, model: str, usage: Mapping[str, object], new_id: NewId
) -> JsonObject:
    return {
        "id": new_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }


def _usage(input_tokens: int, output_tokens: int) -> JsonObject:
    return {
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    }


def _output_tokens(answer: Answer) -> int:
    return sum(
        estimate_tokens(_arguments_text(block) if isinstance(block, ToolCall) else block.text)
        for block in answer.blocks
    )
