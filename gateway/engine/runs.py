"""A run of the SDK's agent, and the commands to the task that owns its client."""

import math
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel
from claude_agent_sdk import Message, SystemMessage

from gateway.engine.calls import RunCalls
from gateway.engine.events import ClientLost, EngineEvent, RunFinished


class EventQueue:
    """Keeps a run's events until they are read, however late; `RunFinished` or `ClientLost` ends it.

    It is unbounded: an agent that had to wait for a reader could not ask for permission either (SDK #779).
    """

    def __init__(self) -> None:
        self._kept: deque[EngineEvent] = deque()
        self._more = anyio.Event()
        self._ended = False

    @property
    def is_ended(self) -> bool:
        """The last event was put in."""
        return self._ended

    def put(self, event: EngineEvent) -> None:
        """Add an event; what comes after the last one is dropped."""
        if self._ended:
            return
        self._ended = isinstance(event, RunFinished | ClientLost)
        self._kept.append(event)
        self._more.set()

    async def read(self) -> AsyncIterator[EngineEvent]:
        """Yield the events in order up to the last one. For one reader."""
        while True:
            await anyio.lowlevel.checkpoint()
            if self._kept:
                yield self._kept.popleft()
            elif self._ended:
                return
            else:
                self._more = anyio.Event()
                await self._more.wait()


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
        return self.queue.read()

    async def interrupt(self) -> None:
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
