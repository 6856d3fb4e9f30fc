"""What the agent program writes, made readable before the SDK reads it.

A model's tool input comes through as it is. Nested deep enough, it makes the SDK's reader fail and so
ends the whole session; a call or a result that lacks a field is dropped by the SDK's parser.
"""

from dataclasses import replace
from typing import Any

import anyio
from anyio.streams.text import TextReceiveStream
from claude_agent_sdk import ClaudeAgentOptions, Message
from claude_agent_sdk._errors import MessageParseError
from claude_agent_sdk._internal.message_parser import parse_message
from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport

from gateway.nesting import bound_depth

MAX_LINE_DEPTH = 100
"""How deep a line may be nested. The policy denies inputs far less deep, so none runs that was cut."""

_MISSING: dict[object, dict[str, Any]] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"id": None, "name": None, "input": {}},
    "tool_result": {"tool_use_id": None},
}
"""What stands in for a block's missing fields."""


class AgentTransport(SubprocessCLITransport):
    """The SDK's transport; the lines that it reads are bounded in depth."""

    def __init__(self, options: ClaudeAgentOptions) -> None:
        asked_through_us = replace(options, permission_prompt_tool_name="stdio")
        super().__init__("", asked_through_us)  # each prompt is sent when it is there

    async def connect(self) -> None:
        """Start the process and read its lines bounded."""
        await super().connect()
        if self._stdout_stream is not None:
            self._stdout_stream = BoundedLines(self._stdout_stream, self._max_buffer_size)


class BoundedLines(TextReceiveStream):
    """Whole lines out of a stream of text, each bounded in depth; the last one may lack its end."""

    def __init__(self, stream: TextReceiveStream, max_chars: int) -> None:
        super().__init__(stream.transport_stream)
        self._max_chars = max_chars
        self._pending: list[str] = []
        self._pending_chars = 0

    async def receive(self) -> str:
        """Return the next lines; a line that is too long goes on in pieces, for the reader to refuse."""
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
    """Return the message that the SDK's parser refused, with its blocks completed; None if that fails."""
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
