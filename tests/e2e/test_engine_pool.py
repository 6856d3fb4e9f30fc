"""The pool on real agent processes."""

from pathlib import Path

import anyio
import pytest

from gateway.engine.pool import ClientPool, PoolLimits
from gateway.engine.protocol import SessionOrigin
from tests.support.engine_processes import marked
from tests.support.engine_talk import LONG_S, ask, script, until
from tests.support.engine_world import FRESH, MODEL, real_world

pytestmark = pytest.mark.e2e

LIMITS = PoolLimits(
    max_live=2, prewarmed=1, idle_s=1000, stale_grace_s=1000, max_memory_bytes=10**12
)


async def test_few_processes_serve_many_conversations_and_all_remember(tmp_path: Path) -> None:
    async with real_world(tmp_path) as world:
        pool = ClientPool(world.engine, MODEL, LIMITS, world.tasks)
        world.tasks.start_soon(pool.run)
        sessions: dict[str, str | None] = {}
        most = 0
        with anyio.fail_after(LONG_S):
            await until(lambda: pool.warm_count == 1, pause_s=0.01)
            for name in ("heron", "otter", "adder", "heron"):
                known = name in sessions
                origin = SessionOrigin(resume=sessions[name]) if known else FRESH
                lease = await pool.acquire(name, MODEL, origin)
                assert (lease.origin == "woken") is known
                told = await ask(lease.client, f"{name}\n" + script({"echo": "messages"}))
                assert told.text.count(f'"{name}\\n') >= (2 if known else 1)
                sessions[name] = lease.client.session_id
                pool.release(name)
                most = max(most, len(await marked(world.setup.owner)))
            await pool.keep_memory_bound()
            assert pool.memory_bytes > 50_000_000
            assert most <= LIMITS.max_live + LIMITS.prewarmed
            await pool.close()
        assert not await marked(world.setup.owner)


async def test_a_pool_closed_while_it_warms_leaves_no_process(tmp_path: Path) -> None:
    async with real_world(tmp_path) as world:
        for delay_s in (0.05, 0.25):
            pool = ClientPool(world.engine, MODEL, LIMITS, world.tasks)
            world.tasks.start_soon(pool.run)
            await anyio.sleep(delay_s)
            with anyio.fail_after(LONG_S):
                await pool.close()
            assert not await marked(world.setup.owner)
