"""Stop a turn when the client that asked for it has closed its stream and does not come back.

For protocols in which closing the connection is all that Stop does. The grace lets a client that
lost its connection send its request again.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import anyio

from gateway.chat.intake import Intake
from gateway.chat.parts import ChatParts
from gateway.errors import Conflict, NotFound
from gateway.ids import ConversationId, TurnId, UserId
from gateway.turns.requests import Accepted, WhenBusy

GRACE_S = 5.0


class Departures:
    """Counts who reads a turn, and stops one that nobody waits for any more."""

    def __init__(self, parts: ChatParts, intake: Intake, *, grace_s: float = GRACE_S) -> None:
        self._lanes = parts.lanes
        self._intake = intake
        self._grace_s = grace_s
        self._readers: Counter[TurnId] = Counter()
        self._left: Counter[TurnId] = Counter()

    @contextmanager
    def reading(self, turn_id: TurnId) -> Iterator[None]:
        """Count a reader."""
        with _counted(self._readers, turn_id):
            yield

    def when_busy(self, conversation_id: ConversationId | None) -> WhenBusy:
        """Return how a new message meets the turn that runs there: it ends and waits for one that
        its reader has left or that is being stopped, and is refused by any other.
        """
        current = self._lanes.current(conversation_id) if conversation_id else None
        if current is None:
            return "reject"
        is_left = self._left[current.turn.id] > 0 and not self._readers[current.turn.id]
        return "interrupt" if is_left or current.control.is_stopping else "reject"

    async def left(self, user_id: UserId, accepted: Accepted) -> None:
        """Interrupt a running turn unless somebody reads it after the grace; to be called when a
        reader has left. A shutdown ends the wait.
        """
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
