"""A turn as chat completion chunks, or as one chat completion.

What the agent did stands in the text as folded details, never as `tool_calls`: a client would try
to run those itself.
"""

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from http import HTTPStatus
from typing import Any, Final

from gateway.conversations.model import TurnEvent
from gateway.doors.pieces import (
    Asked,
    CallEnded,
    Ended,
    Piece,
    PieceReader,
    Text,
    Thinking,
    has_failed,
    is_cut_off,
    pieces_of,
    sentence_of,
)
from gateway.errors import GatewayError
from gateway.jsonsafe import json_text


class ModelFailed(GatewayError, code="engine_failed", status=HTTPStatus.BAD_GATEWAY):
    """The model's service, the agent process or the server ended it; what ran may not run twice."""


_LIMITS: Final = frozenset({"max_turns", "timeout", "model_timeout", "budget", "doom_loop"})
DONE: Final = b"data: [DONE]\n\n"


def finish_reason(result: Mapping[str, Any]) -> str:
    """Return how a turn ended in OpenAI's words."""
    reason = result["stop_reason"]
    if reason == "refusal":
        return "content_filter"
    is_limited = reason in _LIMITS or reason == "context_window" or is_cut_off(result)
    return "length" if is_limited else "stop"


def usage_of(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a turn's tokens in OpenAI's words; cached ones are part of the prompt's."""
    usage = result["usage"]
    cached = usage.get("cache_read_input_tokens") or 0
    prompt = usage["input_tokens"] + cached + (usage.get("cache_creation_input_tokens") or 0)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage["output_tokens"],
        "total_tokens": prompt + usage["output_tokens"],
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def line(fields: Mapping[str, Any]) -> bytes:
    """Return one event of a stream."""
    return f"data: {json_text(fields)}\n\n".encode()


def failure(error: GatewayError, request_id: str) -> bytes:
    """Return an error that ends a stream; clients raise it."""
    return line(error.body(request_id))


class Chunks:
    """Writes one turn's stream."""

    def __init__(
        self,
        head: Mapping[str, Any],
        *,
        with_usage: bool,
        request_id: str,
        is_repeated: bool = False,
    ) -> None:
        """Initialise; `head` are the fields of every chunk. For `is_repeated` see `failure_of`."""
        self._head = head
        self._with_usage = with_usage
        self._request_id = request_id
        self._reader = PieceReader(tells_failure=False)
        self._content = _Content()
        self._has_begun = False
        self._is_repeated = is_repeated
        self.has_ended = False

    def __call__(self, events: Iterable[TurnEvent]) -> Iterator[bytes]:
        """Yield the stream's events for a turn's next events."""
        if not self._has_begun:
            self._has_begun = True
            yield self._chunk({"role": "assistant", "content": ""})
        for piece in self._reader.read(events):
            if isinstance(piece, Ended):
                yield from self._end(piece.result)
            elif isinstance(piece, Thinking):
                yield self._chunk({"reasoning_content": piece.text})
            elif text := self._content.more(piece):
                yield self._chunk({"content": text})

    def _chunk(self, delta: Mapping[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return line({**self._head, "choices": [choice]})

    def _end(self, result: Mapping[str, Any]) -> Iterator[bytes]:
        self.has_ended = True
        failed = failure_of(result, is_repeated=self._is_repeated)
        if failed is not None:
            yield failure(failed, self._request_id)
            return
        yield self._chunk({}, finish_reason(result))
        if self._with_usage:
            yield line({**self._head, "choices": [], "usage": usage_of(result)})
        yield DONE


def completion(head: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a finished turn as a chat completion."""
    pieces = list(pieces_of(result))
    thinking = "\n\n".join(piece.text for piece in pieces if isinstance(piece, Thinking))
    content = "".join(map(_Content().more, pieces))
    message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
    if thinking:
        message["reasoning_content"] = thinking
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": finish_reason(result),
    }
    return {**head, "choices": [choice], "usage": usage_of(result)}


def failure_of(result: Mapping[str, Any], *, is_repeated: bool = False) -> GatewayError | None:
    """Return the error of a turn that failed or was cut by a shutdown; else None.

    `is_repeated`: the request did not begin this turn, which the message says.
    """
    if not has_failed(result):
        return None
    message = f"{sentence_of(result)} {_REPEATED}" if is_repeated else sentence_of(result)
    place = {
        "X-Candor-Conversation": result["conversation_id"],
        "X-Candor-Turn": result["turn_id"],
    }
    return ModelFailed(message, code=result["stop_reason"], headers=place)


_REPEATED: Final = (
    "This answers a request that was repeated; one with another body or another `Idempotency-Key`"
    " begins a new turn at once."
)
"""When an equal request begins one depends on its key, its count and the turn's calls."""


_CALL_BEGINS: Final = '<details type="tool_calls"'
_CALL_ENDS: Final = "</details>"
_QUESTION_BEGINS: Final = "> Waiting for a person: "


class _Content:
    """The text of one answer, as it grows."""

    def __init__(self) -> None:
        self._has_begun = False

    def more(self, piece: Piece) -> str:
        """Return what a piece adds."""
        match piece:
            case Text(text, is_apart):
                more = f"\n\n{text}" if is_apart else text
            case CallEnded(fields):
                more = f"\n\n{_details(fields)}"
            case Asked(fields):
                more = f"\n\n{question(fields)}"
            case _:
                return ""
        if not self._has_begun:
            more = more.lstrip("\n")
        self._has_begun = True
        return more


def question(fields: Mapping[str, Any]) -> str:
    """Return what waits for a person, with where to answer."""
    return (
        f"{_QUESTION_BEGINS}`{fields['summary']}`. Allow or deny it on Candor's page, or with"
        f" `POST /approvals/{fields['approval_id']}`."
    )


def said_alone(text: str) -> str:
    """Return what the agent said in an answer that a client sends back: without calls and questions
    to a person, which are no part of the reply.
    """
    parts: list[str] = []
    at = 0
    while (begin := text.find(_CALL_BEGINS, at)) >= 0:
        end = text.find(_CALL_ENDS, begin)
        if end < 0:
            break
        parts.append(text[at:begin])
        at = end + len(_CALL_ENDS)
    lines = "".join([*parts, text[at:]]).split("\n")
    return "\n".join(line for line in lines if not line.startswith(_QUESTION_BEGINS))


def _details(fields: Mapping[str, Any]) -> str:
    status, error = fields["status"], fields.get("error")
    attributes = {
        "type": "tool_calls",
        "done": "true",
        "id": fields["tool_use_id"],
        "name": fields["name"],
        "arguments": json_text(fields["summary"]),
        "result": json_text(error or status),
    }
    written = " ".join(f'{name}="{escape(value)}"' for name, value in attributes.items())
    told = escape(f"{fields['name']}: {fields['summary']} ({status})")
    return f"<details {written}>\n<summary>{told}</summary>\n{_CALL_ENDS}"
