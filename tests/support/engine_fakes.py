"""A stand-in for the SDK's client, and the messages that it would give."""

from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import Any

import anyio
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    Message,
    ResultMessage,
    StreamEvent,
    TextBlock,
)

from tests.support.engine_talk import until


class FakeSdk:
    """Behaves as `ClaudeSDKClient` does towards its owner; the test says what the agent does."""

    made: "list[FakeSdk]"

    def __init__(self, options: ClaudeAgentOptions, transport: object = None) -> None:
        self.options = options
        self.transport = transport
        self.calls: list[tuple[str, int]] = []
        """What was called, and by which task."""
        self.sent: list[dict[str, Any]] = []
        self.refuse_connect: Exception | None = None
        self.refuse_query: Exception | None = None
        self.hold_query: anyio.Event | None = None
        self.stays_until: Callable[[], bool] = lambda: True
        self.overstayed = False
        """Nobody ended it, however long it stayed."""
        self.interrupts = 0
        self.hold_interrupt: anyio.Event | None = None
        self._out, self._in = anyio.create_memory_object_stream[Message | Exception | None](1000)
        type(self).made.append(self)

    def _note(self, name: str) -> None:
        self.calls.append((name, anyio.get_current_task().id))

    async def connect(self) -> None:
        self._note("connect")
        await anyio.lowlevel.checkpoint()
        if self.refuse_connect is not None:
            raise self.refuse_connect

    async def query(self, messages: AsyncIterable[dict[str, Any]]) -> None:
        self._note("query")
        if self.refuse_query is not None:
            raise self.refuse_query
        async for message in messages:
            self.sent.append(message)
        if self.hold_query is not None:
            await self.hold_query.wait()

    async def interrupt(self) -> None:
        self._note("interrupt")
        self.interrupts += 1
        if self.hold_interrupt is not None:
            await self.hold_interrupt.wait()
        await anyio.lowlevel.checkpoint()

    async def receive_messages(self) -> AsyncIterator[Message]:
        self._note("receive")
        async for item in self._in:
            if item is None:
                return
            if isinstance(item, Exception):
                raise item
            yield item

    async def disconnect(self) -> None:
        self._note("disconnect")
        self._out.close()
        self._in.close()
        with anyio.CancelScope(shield=True):  # as the SDK's own
            try:
                await until(self.stays_until)
            except TimeoutError:
                self.overstayed = True

    def give(self, *items: Message | Exception | None) -> None:
        """Send these as the agent; None ends its output."""
        for item in items:
            self._out.send_nowait(item)


def result(*, uuids: list[str] | None = None, **more: Any) -> ResultMessage:
    """Make the message that ends a turn."""
    given: dict[str, Any] = {
        "subtype": "success",
        "duration_ms": 1,
        "duration_api_ms": 1,
        "is_error": False,
        "num_turns": 1,
        "session_id": "s",
        "result": "",
        "user_message_uuid": uuids[-1] if uuids else None,
        "user_message_uuids": uuids,
    }
    return ResultMessage(**{**given, **more})


def says(text: str, *, uuids: list[str] | None = None, **more: Any) -> AssistantMessage:
    """Make a message of the model's."""
    return AssistantMessage(
        content=[TextBlock(text=text)], model="m", user_message_uuids=uuids, **more
    )


def streams(text: str, *, uuids: list[str] | None = None) -> StreamEvent:
    """Make a piece of streamed text."""
    delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}
    return StreamEvent(uuid="u", session_id="s", event=delta, user_message_uuids=uuids)
