"""A run of the SDK's agent, and the commands to the task that owns its client."""

import asyncio
import math
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

import anyio
import anyio.lowlevel
from claude_agent_sdk import Message, StreamEvent, SystemMessage

from gateway.engine.calls import RunCalls
from gateway.engine.events import (
    ClientLost,
    EngineEvent,
    RunFinished,
    ServiceFailed,
    TextDelta,
    ThinkingDelta,
)
from gateway.engine.protocol import Prompt
from gateway.relay.reports import ModelCall, ServiceReport
from gateway.relay.supervisor import RelayProcess

_REPORT_GRACE_S = 0.25
_GROUP_S = 0.008
"""How long a piece of text that follows another one waits for more at most, while few streams
run."""
_MOST_GROUPS = 4
"""A piece that is woken for alone costs as much as several that are joined."""
_FEW_READERS = 8
"""Each further so many readers that are woken together make the wait longer by `_GROUP_S`."""


class EventQueue:
    """Keeps a run's events until they are read, however late; `RunFinished` or `ClientLost` ends
    it.

    It is unbounded: an agent that had to wait for a reader could not ask for permission either (SDK
    #779). The first piece of a text wakes the reader at once, later ones at the next tick, the same
    for all queues so that their readers run together. Pieces of a kind that wait together are
    joined. A piece that ends in half a character, as UTF-16 cuts it, leaves that half to the next
    one.
    """

    def __init__(self) -> None:
        self._kept: deque[EngineEvent] = deque()
        self._more = asyncio.Event()
        self._ended = False
        self._in_text = False
        """The reader's last event was a piece of text."""
        self._waits_for_tick = False
        self._half: TextDelta | ThinkingDelta | None = None

    @property
    def is_ended(self) -> bool:
        """The last event was put in."""
        return self._ended

    def put(self, event: EngineEvent) -> None:
        """Add an event; what comes after the last one is dropped."""
        if self._ended:
            return
        half, self._half = self._half, None
        if half is not None and isinstance(event, type(half)):
            event = replace(half, text=_join_halves(half.text + event.text))
        elif half is not None:
            self._keep(half)
        if isinstance(event, TextDelta | ThinkingDelta) and _ends_in_half(event.text):
            self._half = replace(event, text=event.text[-1])
            event = replace(event, text=event.text[:-1])
            if not event.text:
                return
        self._keep(event)

    def _keep(self, event: EngineEvent) -> None:
        self._ended = isinstance(event, RunFinished | ClientLost)
        self._kept.append(event)
        if not (self._in_text and isinstance(event, TextDelta | ThinkingDelta)):
            self._more.set()
        elif not self._waits_for_tick:
            self._waits_for_tick = True
            _tickers.setdefault(asyncio.get_running_loop(), _Ticker()).add(self)

    def wake(self) -> None:
        """Pass the waiting pieces on to the reader, at each tick."""
        self._waits_for_tick = False
        self._more.set()

    async def read(self) -> AsyncIterator[EngineEvent]:
        """Yield the events in order up to the last one. For one reader."""
        while True:
            await self._more.wait()
            while self._kept:
                event = self._take()
                self._in_text = isinstance(event, TextDelta | ThinkingDelta)
                yield event
                if self._kept:
                    await anyio.lowlevel.checkpoint()
            if self._ended:
                return
            self._more.clear()

    def _take(self) -> EngineEvent:
        """Take the next event, with the pieces of its kind that follow it."""
        event = self._kept.popleft()
        if isinstance(event, TextDelta | ThinkingDelta):
            more = []
            while self._kept and isinstance(piece := self._kept[0], type(event)):
                more.append(piece.text)
                self._kept.popleft()
            if more:
                event = replace(event, text="".join([event.text, *more]))
        return event


def _ends_in_half(text: str) -> bool:
    """Return whether a text ends in the first half of a character, a high surrogate."""
    return "\ud800" <= text[-1:] <= "\udbff"


def _join_halves(text: str) -> str:
    """Put halves of a character that have come together into one character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def next_tick(now_s: float, readers: int) -> float:
    """Return when to wake the readers that wait; `readers` were woken last."""
    interval_s = _GROUP_S * min(_MOST_GROUPS, max(1, readers // _FEW_READERS))
    return math.ceil(now_s / interval_s) * interval_s


class _Ticker:
    """Wakes the queues of one loop whose readers wait."""

    def __init__(self) -> None:
        self._queues: list[EventQueue] = []
        self._woken = 0

    def add(self, queue: EventQueue) -> None:
        if not self._queues:
            loop = asyncio.get_running_loop()
            loop.call_at(next_tick(loop.time(), self._woken), self._wake)
        self._queues.append(queue)

    def _wake(self) -> None:
        queues, self._queues = self._queues, []
        self._woken = len(queues)
        for queue in queues:
            queue.wake()


_tickers: WeakKeyDictionary[asyncio.AbstractEventLoop, _Ticker] = WeakKeyDictionary()


class SdkRun:
    """See `AgentRun`: one prompt in the agent process."""

    def __init__(
        self,
        request_interrupt: Callable[["SdkRun"], None],
        calls_before: int = 0,
        *,
        relay: RelayProcess | None = None,
        on_model_call: Callable[[ModelCall], None] | None = None,
    ) -> None:
        self.uuid = str(uuid.uuid4())
        """The uuid of the prompt; results name it."""
        self.queue = EventQueue()
        self.calls = RunCalls(self.queue.put, calls_before=calls_before)
        self.interrupt_waits = False
        self._silent_since = math.inf if relay else anyio.current_time()
        self._relay = relay
        self._on_model_call = on_model_call
        self._reported = anyio.Event()
        self._request_interrupt = request_interrupt

    @property
    def silent_since(self) -> float:
        """See `AgentRun`; a relay that is down passes nothing on, and reports nothing."""
        if self._relay is None:
            return math.inf if self.calls.runs_subagent else self._silent_since
        return min(self._silent_since, self._relay.down_since)

    def hear_service(self, report: ServiceReport) -> None:
        """Take what the relay reports: a failure, a pause that begins or ends, a call's end."""
        if isinstance(report, ModelCall):
            if self._on_model_call is not None:
                self._on_model_call(report)
            return
        if report.kind not in {"silent", "heard"}:
            self._reported.set()
            self.queue.put(ServiceFailed(report=report))
            return
        is_silent = report.kind == "silent"
        self._silent_since = anyio.current_time() - report.silent_s if is_silent else math.inf

    async def await_report(self, message: Message) -> None:
        """Wait a moment for the relay's report of a failure that the agent tells: it may be under
        way.
        """
        if self._relay and isinstance(message, SystemMessage) and message.subtype == "api_retry":
            with anyio.move_on_after(_REPORT_GRACE_S):
                await self._reported.wait()
            self._reported = anyio.Event()

    def hear(self, message: Message) -> None:
        """Record the arrival of a message, from which silence is inferred without the relay."""
        if self._relay or (
            isinstance(message, StreamEvent) and message.event.get("type") == "ping"
        ):
            return
        compacts = (
            isinstance(message, SystemMessage)
            and message.subtype == "status"
            and message.data.get("status") == "compacting"
        )
        self._silent_since = math.inf if compacts else anyio.current_time()

    def events(self) -> AsyncIterator[EngineEvent]:
        return self.queue.read()

    async def interrupt(self) -> None:
        await anyio.lowlevel.checkpoint()
        self._request_interrupt(self)


@dataclass(eq=False, slots=True)
class Send:
    """The command to send a run's prompt; once `done` is set, `failure` holds the error, if any."""

    run: SdkRun
    prompt: Prompt
    done: anyio.Event = field(default_factory=anyio.Event)
    failure: str | None = None
    is_taken: bool = False
    is_withdrawn: bool = False

    async def messages(self) -> AsyncIterator[dict[str, object]]:
        """Yield the prompt as the SDK sends it."""
        text, pictures = self.prompt.text, self.prompt.pictures
        content = [*pictures, {"type": "text", "text": text}] if pictures else text
        await anyio.lowlevel.checkpoint()
        yield {
            "type": "user",
            "message": {"role": "user", "content": content},
            "parent_tool_use_id": None,
            "session_id": "default",
            "uuid": self.run.uuid,
            # else `@path` and `/…` in a message are expanded past the gate
            "client_composed": not self.prompt.is_command,
        }


@dataclass(eq=False, slots=True)
class Rewind:
    """The command to take the session back to before a run's prompt; once `done` is set, `rewound`
    tells.
    """

    run: SdkRun
    done: anyio.Event = field(default_factory=anyio.Event)
    rewound: bool = False


@dataclass(eq=False, slots=True)
class Interrupt:
    """The command to interrupt a run, if it is still in progress."""

    run: SdkRun
