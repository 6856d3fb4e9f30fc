"""The loop's start: the backend is looked at, and what a process before this one had begun is made."""

import logging
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from memory.outbox.backend import BackendHealth
from tests.unit.memory.outbox.open_outbox import AT, LIMITS, World, world


async def started(here: World) -> None:
    """Run the loop until it has delivered once."""
    async with anyio.create_task_group() as group:
        went = anyio.Event()

        async def tell() -> None:
            went.set()
            await anyio.lowlevel.checkpoint()

        here.backend.meanwhile = tell
        await group.start(here.delivering.run)
        await went.wait()
        group.cancel_scope.cancel()


async def test_what_was_leased_by_a_process_that_died_is_made_at_once(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.put("epi_1")
        until = here.now.replace(hour=here.now.hour + 1)
        assert len(await here.store.due("memu", AT, limit=LIMITS.batch, until=until)) == 1
        assert await here.delivering.drain() == 0, "its lease runs on"
        await started(here)
        assert [call[1] for call in here.backend.calls] == ["epi_1"]


@pytest.mark.parametrize("state", ["ok", "rebuilding", "failing"])
async def test_a_backend_that_does_not_answer_at_the_start_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, state: str
) -> None:
    async with world(tmp_path) as here:
        here.backend.health = BackendHealth(name="memu", state=state, detail="It is away.")
        await here.put("epi_1")
        with caplog.at_level(logging.WARNING):
            await started(here)
        assert here.backend.checks == 1
        told = [record for record in caplog.records if record.message == "backend_not_ready"]
        reasons = [(vars(entry)["backend"], vars(entry)["reason"]) for entry in told]
        assert reasons == ([("memu", "It is away.")] if state == "failing" else [])
