"""A run of the SDK's agent, and what is asked of the task that owns its client."""

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
        """The prompt's, by which its result is known."""
        self.queue = EventQueue()
        self.calls = RunCalls(self.queue.put, calls_before=calls_before)
        self.interrupt_waits = False
        self.heard_at = anyio.current_time()
        """See `AgentRun.heard_at`."""
        self._request_interrupt = request_interrupt

    def hear(self, message: Message) -> None:
        """Note that a message has come, whatever it says."""
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
    """The command to send a run's prompt; `failure` holds what went wrong once `done` is set."""

    run: SdkRun
    text: str
    done: anyio.Event = field(default_factory=anyio.Event)
    failure: str | None = None
    is_taken: bool = False
    is_withdrawn: bool = False


@dataclass(eq=False, slots=True)
class Interrupt:
    """The command to interrupt a run, if it is still in progress."""

    run: SdkRun
