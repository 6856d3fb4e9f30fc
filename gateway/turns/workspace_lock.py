"""The lock of a workspace: one call that changes it runs at a time, whichever conversation made it.

The policy's verdict on a call is true for the files as they were. Under the lock no other call can
change them between the verdict and the end of the call.
"""

from typing import Final

import anyio

WAIT_S: Final = 60.0
"""How long a call waits for the others; then it is denied."""


class WorkspaceLock:
    """Held by one call at a time, in the order in which they asked."""

    def __init__(self, *, wait_s: float = WAIT_S) -> None:
        self._wait_s = wait_s
        self._calls = anyio.CapacityLimiter(1)

    @property
    def waiting(self) -> int:
        """The number of calls that wait."""
        return self._calls.statistics().tasks_waiting

    async def acquire(self, holder: object) -> bool:
        """Wait for the lock; return False if it was not free in time. Cancellation gives it up."""
        with anyio.move_on_after(self._wait_s):
            await self._calls.acquire_on_behalf_of(holder)
            return True
        return False

    def release(self, holder: object) -> None:
        """Pass the lock on."""
        self._calls.release_on_behalf_of(holder)
