"""Agent programs that will not start, will not listen, or will not end."""

from pathlib import Path

import anyio
import pytest

from gateway.engine import client as client_module
from gateway.engine import processes
from gateway.engine.events import ClientLost
from gateway.engine.protocol import EngineUnavailable
from tests.support.engine_processes import marked
from tests.support.engine_stub import (
    COMPLAINS,
    GREETS,
    IGNORES_TERM,
    NEVER_READS,
    STAYS,
    write_agent,
)
from tests.support.engine_talk import LONG_S, prompt, read, until
from tests.support.engine_world import FRESH, MODEL, RealWorld, real_world

pytestmark = pytest.mark.fault


@pytest.fixture(autouse=True)
def _short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "CLOSE_GRACE_S", 0.3)


async def with_agent(world: RealWorld, root: Path, before: str, after: str = "pass") -> None:
    program = write_agent(root / "stub", before=before, after=after)
    start = await anyio.to_thread.run_sync(processes.launch_script_blocking, root / "data", program)
    world.engine = world.engine_with(cli_path=start)


async def test_an_agent_that_ignores_every_farewell_is_ended(tmp_path: Path) -> None:
    async with real_world(tmp_path) as world:
        await with_agent(world, tmp_path, IGNORES_TERM, STAYS)
        for ending in ("close", "kill"):
            client = await world.connect()
            run = await client.start_run(prompt("hello"))
            with anyio.fail_after(LONG_S):
                await getattr(client, ending)()
            assert not await marked(world.setup.owner)
            assert isinstance((await read(run)).events[-1], ClientLost)


async def test_a_connect_that_hangs_can_be_cancelled(tmp_path: Path) -> None:
    async with real_world(tmp_path) as world:
        await with_agent(world, tmp_path, f"{IGNORES_TERM}\n{NEVER_READS}")
        with anyio.fail_after(LONG_S):
            with anyio.move_on_after(0.5) as scope:
                await world.engine.connect(MODEL, FRESH)
            assert scope.cancelled_caught
        assert not await marked(world.setup.owner)


async def test_a_connect_that_hangs_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "CONNECT_TIMEOUT_S", 0.5)
    async with real_world(tmp_path) as world:
        await with_agent(world, tmp_path, NEVER_READS)
        with pytest.raises(EngineUnavailable):
            await world.connect()
        assert not await marked(world.setup.owner)


async def test_an_agent_that_cannot_start_is_told_with_its_last_words(tmp_path: Path) -> None:
    async with real_world(tmp_path) as world:
        await with_agent(world, tmp_path, COMPLAINS)
        with pytest.raises(EngineUnavailable) as told:
            await world.connect()
        assert "out of luck" in told.value.detail
        world.engine = world.engine_with(cli_path=tmp_path / "nothing")
        assert await world.engine.ping() is not None
        with pytest.raises(EngineUnavailable):
            await world.connect()


async def test_a_prompt_that_the_agent_never_reads_holds_nothing_up(tmp_path: Path) -> None:
    """The pipe to it is full, so the prompt is never quite written."""
    async with real_world(tmp_path) as world:
        await with_agent(world, tmp_path, f"{IGNORES_TERM}\n{GREETS}\n{NEVER_READS}")
        client = await world.connect()
        with anyio.fail_after(LONG_S):
            with anyio.move_on_after(0.5):
                await client.start_run(prompt("字" * 2_000_000))
            await client.close()
        assert not await marked(world.setup.owner)


async def test_what_the_agent_writes_to_standard_error_is_kept_to_a_bound(tmp_path: Path) -> None:
    async with real_world(tmp_path) as world:
        noise = "for n in range(1000): print('noise', n, file=sys.stderr, flush=True)"
        await with_agent(world, tmp_path, noise)
        client = await world.connect()
        await until(lambda: "noise 999" in client.stderr_tail(), pause_s=0.01)
        assert len(client.stderr_tail()) == 200
        assert client.is_alive()
        await client.close()
