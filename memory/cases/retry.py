"""How the book decides: off the event loop, one after another where it matters, anew where others were faster.

What a long text asks for can take seconds. In a worker thread it stops nobody else, and whoever waits for
it may give up: what it then still comes to is thrown away.
"""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import anyio
import anyio.to_thread

from memory.cases.results import CaseRefused
from memory.errors import StoreConflict

_TRIES: Final = 8
"""So often somebody else may be faster before a call is given up."""
_MAX_DECIDING: Final = 2

T = TypeVar("T")


class Deciding:
    """Runs pure decisions in worker threads, a few at a time; safe to use from many tasks."""

    def __init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(_MAX_DECIDING)

    async def run(self, decide: Callable[[], T]) -> T:
        """Give what a pure function gives; cancelled, it returns at once and the rest is thrown away."""
        return await anyio.to_thread.run_sync(decide, abandon_on_cancel=True, limiter=self._limiter)


async def deciding_anew(decide: Callable[[], Awaitable[T]]) -> T:
    """Decide on what is there now, again and again while somebody else is faster.

    Raises:
        CaseRefused: somebody else always was.
    """
    for _ in range(_TRIES):
        try:
            return await decide()
        except StoreConflict:
            await anyio.lowlevel.checkpoint()
    raise CaseRefused("STORE_UNAVAILABLE", "Too many change this case just now; try again.")


class InTurn:
    """One after another for each name, an owner's or a case's, in the order in which they came."""

    def __init__(self) -> None:
        self._locks: dict[str, anyio.Lock] = {}
        self._users: Counter[str] = Counter()

    @asynccontextmanager
    async def of(self, name: str) -> AsyncIterator[None]:
        """Wait for one's turn and hold it while the block runs."""
        lock = self._locks.setdefault(name, anyio.Lock())
        self._users[name] += 1
        try:
            async with lock:
                yield
        finally:
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name], self._locks[name]
