"""Looking at real processes from tests, off the loop."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

import anyio
import psutil

from gateway.engine.processes import MARK
from tests.support.engine_talk import LONG_S


def is_active(process: psutil.Process) -> bool:
    """Return whether it can still do anything."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def running() -> Iterator[psutil.Process]:
    """Yield the running processes; psutil's own list may name an earlier one with the same id."""
    for pid in psutil.pids():
        with suppress(psutil.Error):
            yield psutil.Process(pid)


async def _find(fits: Callable[[psutil.Process], bool]) -> list[psutil.Process]:
    def find_blocking() -> list[psutil.Process]:
        found = []
        for process in running():
            with suppress(psutil.Error, OSError):
                if fits(process):
                    found.append(process)
        return found

    return await anyio.to_thread.run_sync(find_blocking)


async def marked(owner: str) -> list[psutil.Process]:
    """List the living processes that carry an owner's mark."""
    return await _find(
        lambda process: (
            process.environ().get(MARK, "").partition(":")[0] == owner and is_active(process)
        )
    )


async def wait_running(command: Sequence[str]) -> list[psutil.Process]:
    """Wait until something runs that was started with exactly these words."""
    words = list(command)
    with anyio.fail_after(LONG_S):
        while not (found := await _find(lambda process: process.cmdline() == words)):  # noqa: ASYNC110
            await anyio.sleep(0.02)
        return found


async def wait_gone(processes: Iterable[psutil.Process]) -> None:
    """Wait until all of them have ended."""
    left = list(processes)

    def still() -> list[psutil.Process]:
        return [process for process in left if is_active(process)]

    with anyio.fail_after(LONG_S):
        while await anyio.to_thread.run_sync(still):  # noqa: ASYNC110
            await anyio.sleep(0.05)
