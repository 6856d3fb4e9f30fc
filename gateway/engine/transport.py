"""Repairs the agent program's output before the SDK reads it.

A model's tool input is passed on verbatim. Deep nesting would make the SDK's reader fail and end
the session; the SDK's parser drops a call or a result that lacks a field.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import anyio
import psutil
from anyio.streams.text import TextReceiveStream
from claude_agent_sdk import ClaudeAgentOptions, Message

from gateway.engine.private_sdk import MessageParseError, SubprocessCLITransport, parse_message
from gateway.engine.protocol import EngineError, EngineUnavailable, SessionGone
from gateway.nesting import bound_depth

MAX_LINE_DEPTH = 100
"""The deepest nesting of a line. The policy denies inputs far less deep, so no cut call runs."""

_MISSING: dict[object, dict[str, Any]] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"id": None, "name": None, "input": {}},
    "tool_result": {"tool_use_id": None},
}
"""Defaults for a block's missing fields."""


_SESSION_IS_GONE = (
    "No conversation found with session ID",
    "No message found with message.uuid",
    "--resume requires a valid session ID",
)


class AgentTransport(SubprocessCLITransport):
    """The SDK's transport with lines bounded in depth.

    Pieces of text go to `deliver` at once, past the SDK's own tasks and queue, which take longer
    than all the rest of the reading; but only if the stream event before them has been `received`,
    so that the order holds.
    """

    def __init__(
        self,
        options: ClaudeAgentOptions,
        deliver: Callable[[Message], None],
        on_compacting: Callable[[bool], None],
    ) -> None:
        asks_gateway = replace(options, permission_prompt_tool_name="stdio")
        super().__init__("", asks_gateway)  # prompts are sent later
        self.agent: psutil.Process | None = None
        """The agent's process, once it has been started."""
        self.received: object = None
        """The `event` of the last stream event that came out of the SDK."""
        self._deliver = deliver
        self._on_compacting = on_compacting
        """Called, before the calls that follow are asked about, when a summary begins or ends."""

    async def connect(self) -> None:
        """Start the process."""
        await super().connect()
        if self._process is not None:
            with suppress(psutil.Error):
                self.agent = await anyio.to_thread.run_sync(psutil.Process, self._process.pid)
        if self._stdout_stream is not None:
            self._stdout_stream = BoundedLines(self._stdout_stream, self._max_buffer_size)

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the agent's messages, but for the pieces that were delivered."""
        last: object = None
        async for data in super().read_messages():
            event = data.get("event")
            is_piece = isinstance(event, dict) and event.get("type") == "content_block_delta"
            if is_piece and last is not None and last is self.received:
                with suppress(MessageParseError):  # the SDK's own reading reports it
                    if (piece := parse_message(data)) is not None:
                        self._deliver(piece)
                        continue
            if not str(data.get("type")).startswith("control_"):
                last = event
            if data.get("subtype") == "status":
                self._on_compacting(data.get("status") == "compacting")
            yield data


class BoundedLines(TextReceiveStream):
    """Reads whole lines from a text stream and bounds each in depth; the last one may be
    incomplete.
    """

    def __init__(self, stream: TextReceiveStream, max_chars: int) -> None:
        super().__init__(stream.transport_stream)
        self._max_chars = max_chars
        self._pending: list[str] = []
        self._pending_chars = 0

    async def receive(self) -> str:
        """Return the next lines; a line that is too long is returned in pieces, which the reader
        refuses.
        """
        while True:
            try:
                chunk = await super().receive()
            except anyio.EndOfStream:
                if not self._pending:
                    raise
                return self._take("")
            lines, newline, rest = chunk.rpartition("\n")
            if newline:
                text = self._take(lines + newline)
                self._keep(rest)
                return "\n".join(bound_depth(line, MAX_LINE_DEPTH) for line in text.split("\n"))
            self._keep(chunk)
            if self._pending_chars > self._max_chars:
                return self._take("")

    def _keep(self, text: str) -> None:
        if text:
            self._pending.append(text)
            self._pending_chars += len(text)

    def _take(self, text: str) -> str:
        whole = "".join([*self._pending, text])
        self._pending, self._pending_chars = [], 0
        return whole


def repair(refused: MessageParseError) -> Message | None:
    """Return the message that the SDK's parser refused, with its blocks completed; None if that
    fails.
    """
    data = refused.data or {}
    message = data.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(content, list):
        return None
    blocks = [
        {**_MISSING.get(block.get("type"), {}), **block}
        for block in content
        if isinstance(block, dict) and isinstance(block.get("type"), str)
    ]
    try:
        return parse_message({**data, "message": {**message, "content": blocks}})
    except MessageParseError:
        return None


def read_refusal(exc: Exception, stderr: Sequence[str]) -> EngineError:
    """Return the error that a failed connect stands for."""
    detail = "\n".join([str(exc) or type(exc).__name__, *stderr])
    refusal: EngineError
    if any(sign in detail for sign in _SESSION_IS_GONE):
        refusal = SessionGone("The session is gone.", detail=detail)
    else:
        refusal = EngineUnavailable("The agent could not be started.", detail=detail)
    refusal.__cause__ = exc
    return refusal
