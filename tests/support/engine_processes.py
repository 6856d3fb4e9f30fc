"""Looking at real processes from tests, off the loop."""

from collections.abc import Iterable, Sequence

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


def _marked_blocking(owner: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            mark = process.environ().get(MARK, "")
        except (psutil.Error, OSError):
            continue
        if mark.partition(":")[0] == owner and is_active(process):
            found.append(process)
    return found


async def marked(owner: str) -> list[psutil.Process]:
    """List the living processes that carry an owner's mark."""
    return await anyio.to_thread.run_sync(_marked_blocking, owner)


def _running_blocking(command: Sequence[str]) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.cmdline() == list(command):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


async def wait_running(command: Sequence[str]) -> list[psutil.Process]:
    """Wait until something runs that was started with exactly these words."""
    with anyio.fail_after(LONG_S):
        while not (  # noqa: ASYNC110
            found := await anyio.to_thread.run_sync(_running_blocking, command)
        ):
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
