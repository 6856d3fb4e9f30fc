"""One turn for a request that an impatient client sends again.

Official clients repeat a request after a time-out or a lost connection, without an idempotency key:
only a count of the attempt tells a repetition from a person who says the same twice.
"""

from collections.abc import Awaitable, Callable
from hashlib import sha256
from weakref import WeakValueDictionary

import anyio

from gateway.chat.parts import ChatParts
from gateway.errors import NotFound
from gateway.ids import UserId
from gateway.turns.requests import Accepted

ARRIVAL = "arrival:"
"""What the keys begin with."""
_PERIOD_S = 600
"""A repetition belongs to an arrival of this period of the clock or the one before."""


class Arrivals:
    """Gives each request a key, and a repeated one that of its first arrival."""

    def __init__(self, parts: ChatParts) -> None:
        self._parts = parts
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()

    async def accept(
        self,
        user_id: UserId,
        request: bytes,
        attempt: int,
        take: Callable[[str], Awaitable[Accepted]],
    ) -> Accepted:
        """Return the turn that `take` starts with a new idempotency key; for a repetition
        (`attempt` above 0) of a known request that of its first arrival.

        `request` is the route and the digest of the body, and what else tells requests apart.
        Raises as `take` does, and `NotFound` if the turn of a repeated request was deleted.
        """
        period = int(self._parts.now().timestamp() // _PERIOD_S)
        digest = sha256(request).hexdigest()
        lock = self._locks.setdefault(f"{user_id} {digest}", anyio.Lock())
        async with lock:  # a repetition waits until its first arrival is stored
            free, arrived = await self._free_key(user_id, digest, period)
            if attempt and arrived is None:
                _, arrived = await self._free_key(user_id, digest, period - 1)
            if attempt and arrived is not None:
                return arrived
            return await take(free)

    async def _free_key(
        self, user_id: UserId, digest: str, period: int
    ) -> tuple[str, Accepted | None]:
        """Return a period's first free key, and the turn of its last arrival."""
        number, last = 0, None
        while known := await self._parts.turns.find_key(
            user_id, key := f"{ARRIVAL}{digest}:{period}:{number}"
        ):
            last = known.turn_id or last  # none: the key was withdrawn
            number += 1
        if last is None:
            return key, None
        turn = await self._parts.turns.get(last)
        if turn is None:
            raise NotFound("The turn of this request was deleted.")
        return key, Accepted(conversation_id=turn.conversation_id, turn_id=turn.id)
