"""Stop a turn when the client that asked for it has closed its stream and does not come back.

For protocols in which closing the connection is all that Stop does. The grace lets a client that
lost its connection send its request again.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import anyio

from gateway.chat.intake import Intake
from gateway.errors import Conflict, NotFound
from gateway.ids import TurnId, UserId
from gateway.turns.requests import Accepted

GRACE_S = 5.0


class Departures:
    """Counts who reads a turn, and stops one that nobody waits for any more."""

    def __init__(self, intake: Intake, *, grace_s: float = GRACE_S) -> None:
        self._intake = intake
        self._grace_s = grace_s
        self._readers: Counter[TurnId] = Counter()

    @contextmanager
    def reading(self, turn_id: TurnId) -> Iterator[None]:
        """Count a reader."""
        self._readers[turn_id] += 1
        try:
            yield
        finally:
            self._readers[turn_id] -= 1
            if not self._readers[turn_id]:
                del self._readers[turn_id]

    async def left(self, user_id: UserId, accepted: Accepted) -> None:
        """Interrupt a running turn unless somebody reads it after the grace; to be called when a
        reader has left. A shutdown ends the wait.
        """
        with anyio.move_on_after(self._grace_s):
            await self._intake.wait_shut_down()
            return
        if self._readers[accepted.turn_id]:
            return
        with suppress(Conflict, NotFound):
            await self._intake.interrupt(
                user_id, accepted.conversation_id, turn_id=accepted.turn_id
            )
