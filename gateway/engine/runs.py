"""A run of the SDK's agent, and the commands to the task that owns its client."""

import math
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel
from claude_agent_sdk import Message, SystemMessage

from gateway.engine.calls import RunCalls
from gateway.engine.event_queue import EventQueue
from gateway.engine.events import EngineEvent


class SdkRun:
    """See `AgentRun`: one prompt in the agent process."""

    def __init__(
        self, request_interrupt: Callable[["SdkRun"], None], calls_before: int = 0
    ) -> None:
        self.uuid = str(uuid.uuid4())
        """The uuid of the prompt; results name it."""
        self.queue = EventQueue()
        self.calls = RunCalls(self.queue.put, calls_before=calls_before)
        self.interrupt_waits = False
        self.heard_at = anyio.current_time()
        """See `AgentRun.heard_at`."""
        self._request_interrupt = request_interrupt

    def hear(self, message: Message) -> None:
        """Record the arrival of a message."""
        compacts = (
            isinstance(message, SystemMessage)
            and message.subtype == "status"
            and message.data.get("status") == "compacting"
        )
        self.heard_at = math.inf if compacts else anyio.current_time()

    def events(self) -> AsyncIterator[EngineEvent]:
        """See `AgentRun.events`."""
        return self.queue.read()

    async def interrupt(self) -> None:
        """See `AgentRun.interrupt`."""
        await anyio.lowlevel.checkpoint()
        self._request_interrupt(self)


@dataclass(eq=False, slots=True)
class Send:
    """The command to send a run's prompt; once `done` is set, `failure` holds the error, if any."""

    run: SdkRun
    text: str
    done: anyio.Event = field(default_factory=anyio.Event)
    failure: str | None = None
    is_taken: bool = False
    is_withdrawn: bool = False

    async def messages(self) -> AsyncIterator[dict[str, object]]:
        """Yield the prompt as the SDK sends it."""
        await anyio.lowlevel.checkpoint()
        yield {
            "type": "user",
            "message": {"role": "user", "content": self.text},
            "parent_tool_use_id": None,
            "session_id": "default",
            "uuid": self.run.uuid,
        }


@dataclass(eq=False, slots=True)
class Interrupt:
    """The command to interrupt a run, if it is still in progress."""

    run: SdkRun
