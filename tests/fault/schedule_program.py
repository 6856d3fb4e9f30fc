"""Runs a due schedule in processes that are killed at one of their writes; run by `test_schedules_killed.py`."""

import os
import signal
import traceback
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from gateway.ids import LOCAL_USER as ME
from memory.stores.sqlite.database import Database
from tests.support.child_programs import say
from tests.support.services import RunningServices, running_services

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
HOURLY: dict[str, Any] = {
    "name": "Hours",
    "cron": "0 * * * *",
    "time_zone": "UTC",
    "message": "hello",
    "conversation_id": None,
    "project_id": None,
    "enabled": True,
}


def _was_killed(work: Callable[[], Awaitable[None]]) -> bool:
    """Do some work in a forked process; return whether it was killed. Runs where no loop does."""
    child = os.fork()
    if child == 0:
        try:
            anyio.run(work)
            os._exit(0)
        finally:
            traceback.print_exc()
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert status in {0, signal.SIGKILL}
    return status != 0


async def _with_services(
    root: Path, hours: float, work: Callable[[RunningServices], Awaitable[None]]
) -> None:
    """Do some work on services whose clock stands still."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("gateway.assemble.utc_now", lambda: NOON + timedelta(hours=hours))
        async with running_services(root, schedules="on") as services:
            await work(services)


async def _add(services: RunningServices) -> None:
    await services.chat.schedules.create(ME, HOURLY)


async def _run_until(step: int, services: RunningServices) -> None:
    """Run what is due; kill this process before the write of this number, or at the end."""
    write, passed = Database.write, 0

    async def counted(database: Database, *args: Any, **options: Any) -> Any:
        nonlocal passed
        passed += 1
        if passed == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return await write(database, *args, **options)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Database, "write", counted)
        await services.chat.schedules.runner.run_due(lambda _: True)
    os._exit(0)


async def _tell(services: RunningServices) -> None:
    """Run what is still due, twice; say what there is."""
    for _ in range(2):
        await services.chat.schedules.runner.run_due(lambda _: True)
    (view,) = await services.chat.schedules.listed(ME)
    conversations = await services.views()
    say(
        turns=[
            turn.id
            for one in conversations
            for turn in await services.messages_of(one.conversation.id)
        ],
        last=view.schedule.last_turn_id,
        missed=view.schedule.last_missed,
        following=view.next_runs[0].hour,
    )


async def kill_at_each_write(directory: str) -> None:
    """Kill before the first write of a due run, the second and so on, until none is left.

    Say each time what the next start makes of it.
    """
    await anyio.to_thread.run_sync(_kill_at_each_write_blocking, directory)


def _kill_at_each_write_blocking(directory: str) -> None:
    for step in count(1):
        root = Path(directory) / str(step)
        root.mkdir()
        assert not _was_killed(partial(_with_services, root, 0, _add))
        killed = _was_killed(partial(_with_services, root, 1.5, partial(_run_until, step)))
        say(killed=killed)
        assert not _was_killed(partial(_with_services, root, 1.6, _tell))
        if not killed:
            return
