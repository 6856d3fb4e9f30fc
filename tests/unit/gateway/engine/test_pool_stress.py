"""Many conversations, few slots, cancellations at every await: no slot and no process is lost."""

import contextlib
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from gateway.engine.held_client import PoolLimits
from gateway.engine.pool import ClientPool
from gateway.engine.protocol import (
    AgentClient,
    ClientDead,
    ClientSpec,
    EngineUnavailable,
    SessionOrigin,
)
from tests.support.engine_talk import ask, script
from tests.support.engine_watched import WatchedEngine

MAX_LIVE = 3
CONVERSATIONS = 12
TURNS = 25
SPECS = (ClientSpec(model="one"), ClientSpec(model="two"))


class _Lane:
    """One conversation's turns, one after another."""

    def __init__(self, name: str, pool: ClientPool, rng: random.Random) -> None:
        self.name = name
        self.pool = pool
        self.rng = rng
        self.session: str | None = None
        self.served = 0

    async def run(self, in_use: set[AgentClient]) -> None:
        for _ in range(TURNS):
            if self.session is not None and self.rng.random() < 0.3:
                self.pool.wake(self.name, SPECS[0], SessionOrigin(resume=self.session))
                await _pause(self.rng)
            await self._turn(in_use)

    async def _turn(self, in_use: set[AgentClient]) -> None:
        spec = SPECS[0] if self.rng.random() < 0.9 else SPECS[1]
        with anyio.CancelScope() as scope:
            if self.rng.random() < 0.4:
                steps = self.rng.randrange(20)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(_cancel_after, scope, steps)
                    await self._take_turn(spec, in_use)
                    tasks.cancel_scope.cancel()
            else:
                await self._take_turn(spec, in_use)

    async def _take_turn(self, spec: ClientSpec, in_use: set[AgentClient]) -> None:
        try:
            lease = await self.pool.acquire(self.name, spec, SessionOrigin(resume=self.session))
        except EngineUnavailable:
            return
        assert lease.client not in in_use, "two turns share a client"
        in_use.add(lease.client)
        try:
            with contextlib.suppress(ClientDead):  # it was left or killed in between
                with anyio.CancelScope(shield=True):
                    await ask(lease.client, script({"text": self.name}))
                self.session = lease.client.session_id
            self.served += 1
            await anyio.lowlevel.checkpoint()
        finally:
            in_use.remove(lease.client)
            if self.rng.random() < 0.1:
                with anyio.CancelScope(shield=True):
                    await self.pool.discard(self.name)
            else:
                self.pool.release(self.name)


async def _pause(rng: random.Random) -> None:
    for _ in range(rng.randrange(30)):
        await anyio.lowlevel.checkpoint()


async def _cancel_after(scope: anyio.CancelScope, steps: int) -> None:
    for _ in range(steps):
        await anyio.lowlevel.checkpoint()
    scope.cancel()


async def _disturb(pool: ClientPool, engine: WatchedEngine, rng: random.Random) -> None:
    """Leave conversations, kill idle processes, measure, for ever."""
    while True:
        await _pause(rng)
        name = str(rng.randrange(CONVERSATIONS))
        what = rng.random()
        if what < 0.4:
            pool.leave(name)
        elif what < 0.7:
            idle = [item for item in engine.living if item.session_id is None]
            if idle:
                await rng.choice(idle).die()
        else:
            await pool.keep_memory_bound()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.engine.pool._STAYS_S", 0)
    monkeypatch.setattr("gateway.engine.prewarm._CALM_S", 0.05)


@asynccontextmanager
async def disturbed(
    root: Path, seed: int, *, prewarmed: int, max_woken: int
) -> AsyncIterator[tuple[ClientPool, WatchedEngine, list[_Lane]]]:
    """Open a pool that is disturbed all the time, with its conversations; it must close empty."""
    rng = random.Random(seed)
    engine = WatchedEngine(root, rng=rng)
    limits = PoolLimits(
        max_live=MAX_LIVE,
        prewarmed=prewarmed,
        idle_s=0.01,
        stale_grace_s=0.005,
        max_memory_bytes=10**12,
        max_woken=max_woken,
    )
    with anyio.fail_after(60):
        async with anyio.create_task_group() as background:
            pool = ClientPool(engine, lambda: SPECS[0], limits, background)
            background.start_soon(pool.run)
            background.start_soon(_disturb, pool, engine, rng)
            yield pool, engine, [_Lane(str(n), pool, rng) for n in range(CONVERSATIONS)]
            await pool.close()
            assert (engine.live, pool.live_count, pool.warm_count) == (0, 0, 0)
            for _ in range(50):
                await anyio.lowlevel.checkpoint()
            assert engine.live == 0
            background.cancel_scope.cancel()
    assert engine.peak <= MAX_LIVE + max(prewarmed, MAX_LIVE)


@pytest.mark.parametrize("seed", range(3))
async def test_no_slot_and_no_process_is_lost(tmp_path: Path, seed: int) -> None:
    in_use: set[AgentClient] = set()
    async with disturbed(tmp_path, seed, prewarmed=1, max_woken=1) as (pool, engine, lanes):
        async with anyio.create_task_group() as turns:
            for lane in lanes:
                turns.start_soon(lane.run, in_use)
        assert all(lane.served for lane in lanes)
        # Every slot is still there: so many conversations can be held at once.
        engine.rng = None
        for number in range(MAX_LIVE):
            await pool.acquire(f"last-{number}", SPECS[0], SessionOrigin())
        assert pool.live_count == MAX_LIVE


@pytest.mark.parametrize("seed", range(3))
async def test_a_close_in_the_middle_of_everything_leaves_nothing(
    tmp_path: Path, seed: int
) -> None:
    in_use: set[AgentClient] = set()
    async with anyio.create_task_group() as turns:
        async with disturbed(tmp_path, seed, prewarmed=2, max_woken=2) as (_, _, lanes):
            for lane in lanes:
                turns.start_soon(lane.run, in_use)
            for _ in range(random.Random(seed).randrange(400)):
                await anyio.lowlevel.checkpoint()
        turns.cancel_scope.cancel()
