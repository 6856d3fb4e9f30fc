"""Restarts background loops that fail."""

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import anyio
from anyio.abc import TaskStatus

_log = logging.getLogger(__name__)

_PAUSE_S: Final = 1.0

OnFailure = Callable[[str], None]
"""Called with the name of a loop that failed."""


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
