"""Stop a turn when the client that asked for it has closed its stream and does not come back.

For protocols in which closing the connection is all that Stop does. The grace lets a client that
lost its connection send its request again.
A turn whose client left before its end is kept in mind, so that the same request again gets it.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import anyio

from gateway.chat.intake import Intake
from gateway.chat.parts import ChatParts
from gateway.conversations.model import Turn
from gateway.errors import Conflict, NotFound
from gateway.ids import ConversationId, TurnId, UserId
from gateway.turns.requests import Accepted, WhenBusy

GRACE_S = 5.0
REPEAT_S = 150.0
"""How long after its turn has ended a request is taken for a repetition: longer than the waits of a
client that repeats six times, each twice as long as the one before."""
_MOST_UNREAD = 1000


class Departures:
    """Counts who reads a turn, and stops one that nobody waits for any more."""

    def __init__(self, parts: ChatParts, intake: Intake, *, grace_s: float = GRACE_S) -> None:
        self._lanes = parts.lanes
        self._intake = intake
        self._grace_s = grace_s
        self._readers: Counter[TurnId] = Counter()
        self._left: Counter[TurnId] = Counter()
        self._unread: dict[TurnId, None] = {}
        """Turns whose last reader left before their end, oldest first."""
        self._now = parts.now

    @contextmanager
    def reading(self, turn_id: TurnId) -> Iterator[None]:
        """Count a reader."""
        self._unread.pop(turn_id, None)
        with _counted(self._readers, turn_id):
            yield
        self._unread.pop(turn_id, None)

    def when_busy(self, conversation_id: ConversationId | None) -> WhenBusy:
        """Return how a new message meets the turn that runs there: it ends and waits for one that
        its reader has left or that is being stopped, and is refused by any other.
        """
        current = self._lanes.current(conversation_id) if conversation_id else None
        if current is None:
            return "reject"
        is_left = self._left[current.turn.id] > 0 and not self._readers[current.turn.id]
        return "interrupt" if is_left or current.control.is_stopping else "reject"

    def note_unread(self, turn_id: TurnId) -> None:
        """Note that a reader has left before the turn's end."""
        self._unread[turn_id] = None
        while len(self._unread) > _MOST_UNREAD:
            del self._unread[next(iter(self._unread))]

    def is_unread(self, turn: Turn) -> bool:
        """Return whether a turn's client left before its end, and the turn was not stopped."""
        if turn.id not in self._unread or self._readers[turn.id]:
            return False
        if turn.result is not None:
            return bool(turn.result["stop_reason"] != "user_interrupt")
        ticket = self._lanes.find(turn.id)
        return ticket is None or not ticket.control.is_stopping

    def is_recent(self, turn: Turn) -> bool:
        """Return whether a turn has not ended, or not long ago."""
        ended_at = turn.finished_at
        return ended_at is None or (self._now() - ended_at).total_seconds() <= REPEAT_S

    async def left(self, user_id: UserId, accepted: Accepted) -> None:
        """Interrupt a running turn unless somebody reads it after the grace; to be called when a
        reader has left. A shutdown ends the wait.
        """
        self.note_unread(accepted.turn_id)
        with _counted(self._left, accepted.turn_id), anyio.move_on_after(self._grace_s):
            await self._intake.wait_shut_down()
            return
        if self._readers[accepted.turn_id]:
            return
        with suppress(Conflict, NotFound):
            await self._intake.interrupt(
                user_id, accepted.conversation_id, turn_id=accepted.turn_id
            )


@contextmanager
def _counted(counter: Counter[TurnId], turn_id: TurnId) -> Iterator[None]:
    counter[turn_id] += 1
    try:
        yield
    finally:
        counter[turn_id] -= 1
        if not counter[turn_id]:
            del counter[turn_id]
