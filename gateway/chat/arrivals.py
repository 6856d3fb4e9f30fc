"""One turn for a request that an impatient client sends again.

Clients repeat a request after a time-out, a lost connection or a failure, most without an
idempotency key. A count of the attempt, or that the first request got no answer, tells a repetition
from a person who says the same twice. A count does not say of which request: the same message may
have been answered before, and be meant again by a request that was refused or never arrived.
"""

from collections.abc import Awaitable, Callable
from hashlib import sha256
from weakref import WeakValueDictionary

import anyio

from gateway.chat.departures import Departures
from gateway.chat.parts import ChatParts
from gateway.conversations.model import Turn
from gateway.conversations.store import KeyedTurn
from gateway.errors import NotFound
from gateway.ids import TurnId, UserId
from gateway.turns.requests import Accepted

ARRIVAL = "arrival:"
"""What the keys begin with."""
_PERIOD_S = 600
"""A repetition belongs to an arrival of this period of the clock or the one before."""
_MOST_REFUSED = 1000


class Arrivals:
    """Gives each request a key, and a repeated one that of its first arrival."""

    def __init__(self, parts: ChatParts, departures: Departures) -> None:
        self._parts = parts
        self._departures = departures
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()
        self._refused: dict[str, TurnId | None] = {}
        """The turn before of each request that was refused, the oldest refusal first."""

    async def accept(
        self,
        user_id: UserId,
        request: bytes,
        attempt: int,
        take: Callable[[str], Awaitable[Accepted]],
        is_wanted: Callable[[Turn], bool] = lambda _: False,
    ) -> Accepted:
        """Return the turn that `take` starts with a new idempotency key; for a repetition of a
        known request that of its last arrival: the turn `is_wanted` again, or `attempt` is above 0
        and a client may still be waiting for that turn.

        `request` is the route and the digest of the body, and what else tells requests apart.
        Raises as `take` does, and `NotFound` if the turn of a repeated request was deleted.
        """
        period = int(self._parts.now().timestamp() // _PERIOD_S)
        digest = sha256(request).hexdigest()
        name = f"{user_id} {digest}"
        lock = self._locks.setdefault(name, anyio.Lock())
        async with lock:  # a repetition waits until its first arrival is stored
            free, last = await self._free_key(user_id, digest, period)
            if last is None:
                _, last = await self._free_key(user_id, digest, period - 1)
            turn = None if last is None else await self._parts.turns.get(last)
            if attempt and last is not None and turn is None:
                raise NotFound("The turn of this request was deleted.")
            if turn is not None and ((attempt and self._may_wait(turn, name)) or is_wanted(turn)):
                return Accepted(conversation_id=turn.conversation_id, turn_id=turn.id)
            try:
                return await take(free)
            except Exception:
                self._note_refused(name, last)
                raise

    def _may_wait(self, turn: Turn, name: str) -> bool:
        """Return whether a client that repeats a request may not have got the answer of a turn: it
        is recent, and no later arrival was refused.
        """
        return self._refused.get(name) != turn.id and self._departures.is_recent(turn)

    def _note_refused(self, name: str, last: TurnId | None) -> None:
        self._refused.pop(name, None)
        self._refused[name] = last
        while len(self._refused) > _MOST_REFUSED:
            del self._refused[next(iter(self._refused))]

    async def _free_key(
        self, user_id: UserId, digest: str, period: int
    ) -> tuple[str, TurnId | None]:
        """Return a period's first free key, and the turn of its last arrival.

        Keys are numbered without a gap, so a message that is sent very often costs few looks.
        """

        def key_of(number: int) -> str:
            return f"{ARRIVAL}{digest}:{period}:{number}"

        async def find(number: int) -> KeyedTurn | None:
            return await self._parts.turns.find_key(user_id, key_of(number))

        taken, free, last = -1, 0, None
        while (known := await find(free)) is not None:
            taken, free, last = free, 2 * free + 1, known
        while free - taken > 1:
            middle = (taken + free) // 2
            if (known := await find(middle)) is None:
                free = middle
            else:
                taken, last = middle, known
        while last is not None and not last.turn_id and taken > 0:  # the key was withdrawn
            taken -= 1
            last = await find(taken)
        return key_of(free), (last and last.turn_id) or None
