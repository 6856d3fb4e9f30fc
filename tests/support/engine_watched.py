"""A scripted engine that is watched: how many processes there are, and whether two share a session."""

import random
from collections.abc import Sequence
from pathlib import Path

import anyio

from gateway.engine.protocol import (
    AgentClient,
    AgentRun,
    ClientSpec,
    EngineUnavailable,
    Prompt,
    SessionOrigin,
)
from tests.support.scripted_engine import ScriptedEngine


class WatchedClient:
    """A client whose process counts until its close has returned."""

    def __init__(self, inner: AgentClient, engine: "WatchedEngine", spec: ClientSpec) -> None:
        self.inner = inner
        self.spec = spec
        self.memory_bytes = 0
        self.close_calls = 0
        self._engine = engine
        self._gone = anyio.Event()
        self._ending = False

    @property
    def client_id(self) -> str:
        return self.inner.client_id

    @property
    def session_id(self) -> str | None:
        return self.inner.session_id

    def is_alive(self) -> bool:
        return self.inner.is_alive() and not self._ending

    async def die(self) -> None:
        """End the process as a crash does."""
        await self.inner.kill()

    async def start_run(self, prompt: Prompt) -> AgentRun:
        return await self.inner.start_run(prompt)

    async def close(self) -> None:
        self.close_calls += 1
        with anyio.CancelScope(shield=True):
            if self._ending:
                await self._gone.wait()
                return
            self._ending = True
            await self._engine.linger(self._engine.hold_close)
            await self.inner.close()
            self._engine.ended(self)
            self._gone.set()

    async def kill(self) -> None:
        await self.inner.kill()
        if not self._ending:
            await self.close()

    def memory_bytes_blocking(self) -> int:
        return self.memory_bytes

    def stderr_tail(self) -> Sequence[str]:
        return ()


class WatchedEngine(ScriptedEngine):
    """Counts a process from the moment it is being started until its close has returned."""

    def __init__(self, workspace: Path, *, rng: random.Random | None = None) -> None:
        super().__init__(workspace)
        self.rng = rng
        self.hold_connect: anyio.Event | None = None
        self.hold_close: anyio.Event | None = None
        self.hold_abort: anyio.Event | None = None
        """Until when a connect that is cancelled has not ended its process yet."""
        self.connects = 0
        self.live = 0
        self.peak = 0
        self.living: list[WatchedClient] = []
        self.order: list[str | None] = []
        """The sessions that were asked for, in order."""

    async def linger(self, hold: anyio.Event | None) -> None:
        """Take as long as the test wants it, else a few turns of the loop at random."""
        if hold is not None:
            await hold.wait()
        if self.rng is not None:
            for _ in range(self.rng.randrange(6)):
                await anyio.lowlevel.checkpoint()

    async def connect(self, spec: ClientSpec, origin: SessionOrigin) -> WatchedClient:  # type: ignore[override]
        self.connects += 1
        self.live += 1
        self.peak = max(self.peak, self.live)
        self.order.append(origin.resume)
        try:
            await self.linger(self.hold_connect)
            self._fail_at_random()
            inner = await super().connect(spec, origin)
        except BaseException:
            if self.hold_abort is not None:
                with anyio.CancelScope(shield=True):
                    await self.hold_abort.wait()
            self.live -= 1
            raise
        writes = origin.resume if origin.fork_at is None else None
        assert writes is None or all(item.session_id != writes for item in self.living), (
            "two writers"
        )
        client = WatchedClient(inner, self, spec)
        self.living.append(client)
        return client

    def _fail_at_random(self) -> None:
        if self.rng is not None and self.rng.random() < 0.1:
            raise EngineUnavailable("The agent could not be started.", detail="at random")

    def ended(self, client: WatchedClient) -> None:
        self.live -= 1
        self.living.remove(client)
