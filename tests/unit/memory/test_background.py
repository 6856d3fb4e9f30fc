"""Loops that are started again."""

import anyio
import pytest

from memory.background import keep_running


async def test_a_loop_that_raises_is_started_again_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    faults = [OSError("no descriptor is left"), ExceptionGroup("two", [ValueError(), OSError()])]
    failed: list[str] = []

    async def run() -> None:
        await anyio.lowlevel.checkpoint()
        if faults:
            raise faults.pop()

    with anyio.fail_after(30):
        await keep_running("files", run, failed.append, pause_s=0)
    assert failed == ["files", "files"]
    assert [record.message for record in caplog.records] == ["background_loop_failed"] * 2


async def test_a_cancelled_loop_is_not_started_again() -> None:
    starts: list[int] = []

    async def run() -> None:
        starts.append(1)
        await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        await tasks.start(keep_running, "files", run)
        assert starts == [1]  # it has started when the task has
        tasks.cancel_scope.cancel()
    assert starts == [1]
