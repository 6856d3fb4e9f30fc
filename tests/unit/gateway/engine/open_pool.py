"""An open pool of clients on a watched engine; when it closes, no process may be left."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from gateway.engine.held_client import Lease, PoolLimits
from gateway.engine.pool import ClientPool
from gateway.engine.protocol import ClientSpec, EngineUnavailable, SessionOrigin
from tests.support.engine_talk import ask, script
from tests.support.engine_watched import WatchedClient, WatchedEngine

SOON_S = 20
SPEC = ClientSpec(model="one")
OTHER = ClientSpec(model="two")
FRESH = SessionOrigin()


class Bench:
    """A pool on a watched engine."""

    def __init__(self, engine: WatchedEngine, pool: ClientPool) -> None:
        self.engine = engine
        self.pool = pool
        self.refused: list[str] = []

    async def take(self, name: str, *, spec: ClientSpec = SPEC, resume: str | None = None) -> Lease:
        return await self.pool.acquire(name, spec, SessionOrigin(resume=resume))

    async def try_take(self, name: str, resume: str | None = None) -> None:
        """Take a client, or note that none was given."""
        try:
            await self.take(name, resume=resume)
        except EngineUnavailable:
            self.refused.append(name)

    async def turn(self, name: str, *, spec: ClientSpec = SPEC, resume: str | None = None) -> Lease:
        """Take a turn: acquire, run, release."""
        lease = await self.take(name, spec=spec, resume=resume)
        await ask(lease.client, script({"text": name}))
        self.pool.release(name)
        return lease


@asynccontextmanager
async def opened(
    root: Path,
    *,
    max_live: int = 2,
    prewarmed: int = 0,
    idle_s: float = 1000,
    stale_grace_s: float = 1000,
    max_memory_bytes: int = 10**12,
    run: bool = True,
    engine: WatchedEngine | None = None,
) -> AsyncIterator[Bench]:
    limits = PoolLimits(
        max_live=max_live,
        prewarmed=prewarmed,
        idle_s=idle_s,
        stale_grace_s=stale_grace_s,
        max_memory_bytes=max_memory_bytes,
    )
    engine = engine or WatchedEngine(root)
    with anyio.fail_after(SOON_S):
        async with anyio.create_task_group() as tasks:
            pool = ClientPool(engine, lambda: SPEC, limits, tasks)
            if run:
                tasks.start_soon(pool.run)
            try:
                yield Bench(engine, pool)
            finally:
                for hold in (engine.hold_connect, engine.hold_close, engine.hold_abort):
                    if hold is not None:
                        hold.set()
            await pool.close()
            assert engine.live == 0
            assert pool.live_count == 0
            tasks.cancel_scope.cancel()
        assert engine.peak <= max_live + (max(prewarmed, max_live) if prewarmed else 0)


def watched(lease: Lease) -> WatchedClient:
    assert isinstance(lease.client, WatchedClient)
    return lease.client
