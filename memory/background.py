"""Restarts background loops that fail, and keeps several servers from running them at once."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Protocol

import anyio
from anyio.abc import TaskStatus

_log = logging.getLogger(__name__)

_PAUSE_S: Final = 1.0

OnFailure = Callable[[str], None]
"""Called with the name of a loop that failed."""
Work = Callable[[], Awaitable[None]]


class Duties(Protocol):
    """Keeps servers that share a database from doing the same at once."""

    async def while_held(
        self,
        work: Work,
        wake: Callable[[], None] = lambda: None,
        otherwise: Work = anyio.sleep_forever,
    ) -> None:
        """Do some work whenever no other server does it, until it returns; else do `otherwise`.

        `wake` is called now and then, since what other servers do wakes nobody here.
        """

    def alone(self, what: str) -> AbstractAsyncContextManager[None]:
        """Keep other servers from doing the same while the block runs; wait for one that does.

        Raise `StoreUnavailable`.
        """


class NoOthers:
    """The duties of a server that has its database alone."""

    async def while_held(
        self,
        work: Work,
        wake: Callable[[], None] = lambda: None,  # noqa: ARG002
        otherwise: Work = anyio.sleep_forever,  # noqa: ARG002
    ) -> None:
        """Do the work."""
        await work()

    @asynccontextmanager
    async def alone(self, what: str) -> AsyncIterator[None]:  # noqa: ARG002
        """Do nothing."""
        yield


async def keep_running(
    name: str,
    run: Callable[[], Awaitable[None]],
    on_failure: OnFailure = lambda _: None,
    *,
    pause_s: float = _PAUSE_S,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Run a loop until it returns or is cancelled; start it again whenever it raises.

    An error in one loop (no descriptor left, a disk error, a defect) is logged and reported to
    `on_failure`; it does not reach the task group that all loops share. `run` must be able to
    continue after a failure with the work that was waiting. It has started when this task has.
    """
    task_status.started()
    while True:
        try:
            await run()
        except Exception:  # noqa: BLE001  supervises a loop: logged, counted, started again
            _log.exception("background_loop_failed", extra={"loop": name})
            on_failure(name)
        else:
            return
        await anyio.sleep(pause_s)
