"""One lane per conversation: its turns run one after another. Lanes never wait for each other.

A lane exists while it has work. Waiting turns are in the store as well; the lane is only the order
in which this server runs them.
"""

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from gateway.conversations.event_log import TurnEvents
from gateway.conversations.model import Conversation, Turn
from gateway.ids import ConversationId, TurnId
from gateway.turns.control import TurnControl
from gateway.turns.turn_trace import NO_TRACE, TurnTrace

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """A turn in a lane."""

    turn: Turn
    """Queued; or running, if it was accepted into a free lane."""
    events: TurnEvents
    control: TurnControl = field(default_factory=TurnControl)
    conversation: Conversation | None = None
    """As it was when a turn was accepted as running; None for a queued one."""
    trace: TurnTrace = NO_TRACE


RunTurn = Callable[[Ticket], Awaitable[None]]
OnIdle = Callable[[ConversationId], Awaitable[None]]


@dataclass(slots=True)
class _Lane:
    waiting: deque[Ticket] = field(default_factory=deque)
    running: Ticket | None = None


class Lanes:
    """All lanes, and the tickets of all turns that are accepted and not finished."""

    def __init__(self, run_turn: RunTurn, tasks: TaskGroup) -> None:
        self._run_turn = run_turn
        self._tasks = tasks
        self._lanes: dict[ConversationId, _Lane] = {}
        self._tickets: dict[TurnId, Ticket] = {}
        self._closed = False
        self._on_idle: OnIdle | None = None
        self._empty = anyio.Event()

    @property
    def running_in(self) -> list[ConversationId]:
        """The conversations in which a turn runs."""
        return [where for where, lane in self._lanes.items() if lane.running is not None]

    @property
    def queued_count(self) -> int:
        """Number of waiting turns."""
        return sum(len(lane.waiting) for lane in self._lanes.values())

    @property
    def live_count(self) -> int:
        """Number of turns that are accepted and not finished."""
        return len(self._tickets)

    @property
    def is_empty(self) -> bool:
        """True if no turn runs or waits anywhere."""
        return not self._lanes

    def find(self, turn_id: TurnId) -> Ticket | None:
        """Return the ticket of a turn that is not finished."""
        return self._tickets.get(turn_id)

    def finish(self, ticket: Ticket) -> None:
        """Note that a turn's result is stored, or that it has none to come."""
        self._tickets.pop(ticket.turn.id, None)
        ticket.control.finished.set()

    def is_busy(self, conversation_id: ConversationId) -> bool:
        """True if a turn runs or waits there."""
        return conversation_id in self._lanes

    def running(self, conversation_id: ConversationId) -> Ticket | None:
        """Return the turn that runs there, or None."""
        lane = self._lanes.get(conversation_id)
        return lane.running if lane else None

    def current(self, conversation_id: ConversationId) -> Ticket | None:
        """Return the turn that runs there or is about to, or None."""
        lane = self._lanes.get(conversation_id)
        if lane is None or lane.running is not None or self._closed:
            return lane.running if lane else None
        return lane.waiting[0] if lane.waiting else None

    def waiting(self, conversation_id: ConversationId) -> list[Ticket]:
        """List the turns that wait there, next first; not the one that is about to run."""
        lane = self._lanes.get(conversation_id)
        current = self.current(conversation_id)
        return [ticket for ticket in lane.waiting if ticket is not current] if lane else []

    def join(self, ticket: Ticket) -> int:
        """Put a turn at the end of its lane; return its place: 0 runs at once, 1 is next, and so
        on.

        A turn that is running already needs a free lane, and open lanes.
        """
        self._tickets[ticket.turn.id] = ticket
        lane = self._lanes.get(ticket.turn.conversation_id)
        if lane is not None:
            lane.waiting.append(ticket)
            return len(lane.waiting) - (lane.running is None and not self._closed)
        lane = self._lanes[ticket.turn.conversation_id] = _Lane()
        if ticket.turn.state == "running":
            lane.running = ticket
        else:
            lane.waiting.append(ticket)
        if not self._closed:
            self._tasks.start_soon(self._run, ticket.turn.conversation_id, lane)
        return 0

    def take_back(self, conversation_id: ConversationId, turn_id: TurnId) -> Ticket | None:
        """Remove a turn that has not begun from its lane; return None if it is not there (any
        more).
        """
        lane, ticket = self._lanes.get(conversation_id), self._tickets.get(turn_id)
        if lane is None or ticket is None or ticket not in lane.waiting:
            return None
        lane.waiting.remove(ticket)
        return ticket

    def take_all_back(self, conversation_id: ConversationId) -> list[Ticket]:
        """Remove all turns that have not begun from a lane."""
        lane = self._lanes.get(conversation_id)
        taken = list(lane.waiting) if lane else []
        if lane is not None:
            lane.waiting.clear()
        return taken

    def lose(self, conversation_id: ConversationId) -> None:
        """Release a conversation that another server runs now: its turns are that server's."""
        for ticket in self.take_all_back(conversation_id):
            ticket.events.lose()
            self.finish(ticket)
        running = self.running(conversation_id)
        if running is not None:
            running.events.lose()
            running.control.stop("shutdown", "shutdown")

    async def close(self, *, grace_s: float, on_idle: OnIdle | None = None) -> None:
        """Start nothing more; running turns get `grace_s` to finish and are then stopped.

        Returns when none runs. Waiting turns stay in the store for the next start, or for another
        server: `on_idle` is called with each conversation whose running turn has ended.
        """
        self._closed, self._on_idle = True, on_idle
        with anyio.move_on_after(grace_s):
            await self._wait_idle()
            return
        for lane in self._lanes.values():
            if lane.running is not None:
                lane.running.control.stop("shutdown", "shutdown")
        await self._wait_idle()

    async def _wait_idle(self) -> None:
        while self.running_in:
            await self._empty.wait()

    async def _run(self, conversation_id: ConversationId, lane: _Lane) -> None:
        try:
            while lane.running is not None or (lane.waiting and not self._closed):
                ticket = lane.running = lane.running or lane.waiting.popleft()
                try:
                    await self._run_turn(ticket)
                except Exception:  # noqa: BLE001  one turn must not stop those behind it
                    _log.exception("lane_failed")
                finally:
                    lane.running = None
                    self.finish(ticket)
        finally:
            if not lane.waiting:
                del self._lanes[conversation_id]
            self._empty.set()
            self._empty = anyio.Event()
        if self._on_idle is not None:
            await self._on_idle(conversation_id)
