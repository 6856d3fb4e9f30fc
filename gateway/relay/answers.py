"""Reads the service's answers as they pass: repairs what would crash the agent program, notes what
is wrong.

Every line is passed on as it came, except one: the start of a tool call whose name is no string, at
which the agent program crashes; it gets the name `unnamed`, which no tool has, so that the call
fails and the turn goes on. An incomplete line waits for its end, because no reader of an event
stream can use it before. Pure.
"""

import json
from collections.abc import Iterator
from typing import Any

from gateway.relay.reports import TOKENS, Kind, Token

NO_NAME = "unnamed"

_MAX_LINE = 1024 * 1024
_MAX_BODY = 16 * 1024 * 1024
_TYPES = ("message_start", "ping", "error")
"""How an event stream of the Messages API begins."""
_CONTENT = (
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "error",
)
"""The events that bring an answer on; any other is a sign of life."""
_MAX_SIGN = 1024
"""A longer event is taken for content without a look."""
_MAX_MODEL_CHARS, _MANY_TOKENS = 100, 10**12
"""No name of a model is longer, no figure of a usage as large."""
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The HTTP statuses of the errors that an event stream can report; 500 of any other."""


class AnswerReader:
    """One successful answer to a Messages request; its model and usage if `takes_figures`."""

    def __init__(self, content_type: str, *, takes_figures: bool = False) -> None:
        self._is_stream = content_type.startswith("text/event-stream")
        self._is_json = content_type.startswith("application/json")
        self._rest = bytearray()
        """What waits; it grows in place, however small the pieces are."""
        self._began: bool | None = None if self._is_stream else True
        self.is_whole = False
        """The event stream has ended as it should."""
        self.fault: Kind | None = None
        """What is wrong with the answer, as far as it is known."""
        self.status: int | None = None
        """The HTTP status of an error that the event stream reports."""
        self.has_content = True
        """False if the last piece was nothing but a sign of life."""
        self._takes_figures = takes_figures
        self.model = ""
        self.tokens: dict[Token, int] = {}
        """See `ModelCall`."""
        if not self._is_stream and not self._is_json:
            self.fault = "not_messages"

    @property
    def may_change(self) -> bool:
        """True if the body may get another length."""
        return self._is_json

    def take(self, data: bytes) -> bytes:
        """Return what is to be passed on now."""
        if not self._is_stream and not self._is_json:
            return data
        if self._is_json:
            self._rest += data
            if len(self._rest) <= _MAX_BODY:
                return b""
            self._is_json = False
            return self._take_rest()
        ended = data.rfind(b"\n") + 1
        self._rest += data[:ended]
        lines = self._take_rest() if ended else b""
        self._rest += data[ended:]
        self.has_content = any(map(_brings_content, lines.split(b"\n")))
        if len(self._rest) > _MAX_LINE:
            lines += self._take_rest()
        return self._stream_lines(lines) if lines else b""

    def _take_rest(self) -> bytes:
        rest, self._rest = bytes(self._rest), bytearray()
        return rest

    def end(self) -> bytes:
        """Return the rest, when the answer is complete."""
        rest = self._take_rest()
        if self._is_json:
            body = _parse(rest)
            content = body.get("content") if isinstance(body, dict) else None
            self._take_figures(body)
            if not isinstance(body, dict) or not ({"content", "input_tokens"} & body.keys()):
                self.fault = "not_messages"
            elif isinstance(content, list) and sum(map(_rename, content)):
                return _written(body) or rest
            return rest
        rest = self._stream_lines(rest) if rest else rest
        if self._is_stream and not self._began:
            self.fault = "not_messages"
        elif self._is_stream and not self.is_whole and self.fault is None:
            self.fault = "cut"
        return rest

    def _stream_lines(self, lines: bytes) -> bytes:
        if self._began is None and b"data:" in lines:
            first = lines[lines.index(b"data:") + 5 :].split(b"\n", 1)[0]
            event = _parse(first)
            self._began = isinstance(event, dict) and event.get("type") in _TYPES
            self.fault = None if self._began else "not_messages"
        self.is_whole = self.is_whole or b'"message_stop"' in lines
        for event in _events(lines, b"error"):
            if event.get("type") == "error":
                error = event.get("error")
                kind = error.get("type") if isinstance(error, dict) else None
                self.fault, self.status = "refused", _STATUSES.get(str(kind), 500)
        if self._takes_figures:
            for event in _events(lines, b'"usage"'):
                self._take_figures(event.get("message", event))
        if b"content_block_start" not in lines or b"tool_use" not in lines:
            return lines
        return b"\n".join(_repaired(line) for line in lines.split(b"\n"))

    def _take_figures(self, message: object) -> None:
        """Take the model and the usage of a message, or of its end; later figures count."""
        if not self._takes_figures or not isinstance(message, dict):
            return
        model, usage = message.get("model"), message.get("usage")
        self.model = model[:_MAX_MODEL_CHARS] if isinstance(model, str) else self.model
        figures = usage if isinstance(usage, dict) else {}
        for name in TOKENS:
            if type(figures.get(name)) is int and 0 <= figures[name] < _MANY_TOKENS:
                self.tokens[name] = figures[name]


def _events(lines: bytes, word: bytes) -> Iterator[dict[str, Any]]:
    """Yield the events in whose line there is a word."""
    for line in lines.split(b"\n") if word in lines else ():
        event = _parse(line[5:]) if line.startswith(b"data:") and word in line else None
        if isinstance(event, dict):
            yield event


def _brings_content(line: bytes) -> bool:
    """Return whether a line of the stream brings the answer on: a ping, an empty delta and an event
    that nobody knows do not.
    """
    if not line.startswith(b"data:"):
        return False
    text = line[5:].strip()
    event = _parse(text) if len(text) <= _MAX_SIGN else None
    if not isinstance(event, dict):
        return bool(text)
    delta = event.get("delta")
    if event.get("type") != "content_block_delta" or not isinstance(delta, dict):
        return event.get("type") in _CONTENT
    return any(value for key, value in delta.items() if key != "type")


def _repaired(line: bytes) -> bytes:
    if not line.startswith(b"data:") or b"content_block_start" not in line:
        return line
    event = _parse(line[5:])
    if isinstance(event, dict) and _rename(event.get("content_block")):
        written = _written(event)
        return b"data: " + written if written else line
    return line


def _rename(block: object) -> bool:
    """Name a tool call that has no usable name; return whether it was necessary."""
    if not isinstance(block, dict) or block.get("type") != "tool_use":
        return False
    if isinstance(block.get("name"), str):
        return False
    block["name"] = NO_NAME
    return True


def _written(value: object) -> bytes | None:
    """Return a value as JSON; None if it is nested too deeply to be written."""
    try:
        return json.dumps(value).encode()
    except RecursionError:
        return None


def _parse(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
