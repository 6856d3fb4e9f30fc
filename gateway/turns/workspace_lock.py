"""The lock of a workspace: one call that changes it runs at a time, whichever conversation made it.

The policy's verdict on a call is true for the files as they were. Under the lock no other call can
change them between the verdict and the end of the call.
"""

import logging
from contextlib import suppress
from typing import Final

import anyio

from gateway.conversations.leases import Node
from gateway.conversations.sql.leases import LeaseStore
from memory.errors import StoreUnavailable

WAIT_S: Final = 60.0
"""How long a call waits for the others; then it is denied."""
_LOOK_S: Final = 0.05
"""How often it is asked whether another server has given a lock back."""
_AGAIN_S: Final = 1.0
_log = logging.getLogger(__name__)


class LocksOfServers:
    """Locks by name, of which one of the servers of a database has each. `run` gives them back."""

    def __init__(self, leases: LeaseStore, node: Node) -> None:
        self._leases = leases
        self._node = node
        self._unused: dict[str, bool] = {}
        """Locks that this server does not need; True for those that it has for certain."""
        self._has_unused = anyio.Event()
        self._changing = anyio.Lock()
        """Held while the database is asked, so that what is given back is not taken meanwhile."""

    async def take(self, name: str) -> None:
        """Wait until no other living server has a lock; cancellation gives it up."""
        has_it = False
        try:
            while not has_it:
                has_it = await self._try_to_take(name)
                if not has_it:
                    await anyio.sleep(_LOOK_S)
        finally:
            if not has_it:  # an answer of the database may have been lost
                self.give_back(name, is_certain=False)

    async def _try_to_take(self, name: str) -> bool:
        has_it = False
        with anyio.CancelScope(shield=True), suppress(StoreUnavailable):
            async with self._changing:
                was_kept = self._unused.pop(name, False)
                has_it = was_kept or await self._leases.lock(self._node, name)
        return has_it

    def give_back(self, name: str, *, is_certain: bool = True) -> None:
        """Release a lock soon; without `is_certain` another server may hold it already."""
        self._unused[name] = is_certain
        self._has_unused.set()

    async def run(self) -> None:
        """Release unused locks until cancelled; a release that cannot be stored is tried again."""
        while True:
            await self._has_unused.wait()
            self._has_unused = anyio.Event()
            for name in list(self._unused):
                await self._unlock(name)

    async def _unlock(self, name: str) -> None:
        try:
            async with self._changing:
                if name in self._unused:
                    await self._leases.unlock(self._node, name)
                    self._unused.pop(name, None)
        except StoreUnavailable as exc:
            _log.warning("workspace_not_unlocked", extra={"reason": str(exc)})
            self._has_unused.set()
            await anyio.sleep(_AGAIN_S)


class WorkspaceLock:
    """Held by one call at a time, in the order in which they asked.

    Among several servers the one that has the lock of this `name` passes it on when none of its
    calls wants it.
    """

    def __init__(
        self, *, wait_s: float = WAIT_S, name: str = "", servers: LocksOfServers | None = None
    ) -> None:
        self._wait_s = wait_s
        self._name = name
        self._servers = servers
        self._calls = anyio.CapacityLimiter(1)

    @property
    def waiting(self) -> int:
        """The number of calls that wait."""
        return self._calls.statistics().tasks_waiting

    async def acquire(self, holder: object) -> bool:
        """Wait for the lock; return False if it was not free in time. Cancellation gives it up."""
        with anyio.move_on_after(self._wait_s):
            await self._calls.acquire_on_behalf_of(holder)
            if self._servers is not None:
                await self._take_from(self._servers, holder)
            return True
        return False

    async def _take_from(self, servers: LocksOfServers, holder: object) -> None:
        try:
            await servers.take(self._name)
        except anyio.get_cancelled_exc_class():
            self._calls.release_on_behalf_of(holder)
            raise

    def release(self, holder: object) -> None:
        """Pass the lock on."""
        if self._servers is not None:
            self._servers.give_back(self._name)
        self._calls.release_on_behalf_of(holder)
