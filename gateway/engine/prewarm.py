"""Prewarmed clients, connected before they are needed.

The number follows the demand: if several conversations begin at once, as many clients are kept
ready for some minutes. Prewarming waits, up to a bound, for the first texts of turns whose clients
are being connected or were just taken, and pauses longer after each failure.
"""

import logging
from collections.abc import Callable

import anyio

from gateway.engine.protocol import AgentClient, ClientSpec, Engine, EngineError, SessionOrigin

_log = logging.getLogger(__name__)

_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0
_LONGEST_WAY_S = 5.0
"""The longest wait for first texts."""
_CALM_S = 300.0
"""Clients beyond `size` are kept for so long after more than `size` were asked for at once."""


class _Warming:
    """A client that is being connected; the caller that claims it waits for it."""

    def __init__(self, spec: ClientSpec) -> None:
        self.spec = spec
        self.client: AgentClient | None = None
        self.done = anyio.Event()
        self.claimed = False


class PrewarmPool:
    """Prewarmed clients with the options that `spec` returns; none while it is None. `run` must be
    running.

    There are `size`. After more were asked for before the pool was full again, there are as many as
    were asked for, but not more than `most` returns.
    """

    def __init__(
        self,
        engine: Engine,
        spec: Callable[[], ClientSpec | None],
        size: int,
        most: Callable[[], int],
    ) -> None:
        self._engine = engine
        self._spec = spec
        self._size = self._demand = size
        self._most = most
        self._taken = 0
        """Since the pool was last full."""
        self._calm_at = 0.0
        self._warmings: list[_Warming] = []
        self._without_text: set[str] = set()
        """The conversations that get a client of their own and have no text yet."""
        self._changed = anyio.Event()
        self._scope = anyio.CancelScope()
        self._closed = False
        self._stopped: anyio.Event | None = None

    @property
    def ready_count(self) -> int:
        """The number of clients that can be taken at once."""
        return sum(1 for client in self.clients() if client.is_alive())

    def clients(self) -> list[AgentClient]:
        """Return the connected clients."""
        return [warming.client for warming in self._warmings if warming.client is not None]

    async def take(self, spec: ClientSpec) -> AgentClient | None:
        """Return a client with these options that is ready or being connected, else None.

        Wait for a client that is being connected, since it started earlier than a new one would;
        None if it fails. Cancellation leaves the client in the pool.
        """
        if self._is_outdated(spec):
            return None
        self._taken += 1
        if self._taken > self._size > 0:
            self._demand = max(self._demand, self._taken)
            self._calm_at = anyio.current_time() + _CALM_S
        while (warming := self._next()) is not None:
            warming.claimed = True
            try:
                await warming.done.wait()
            finally:
                warming.claimed = False
            if warming.client is None:
                return None
            self._remove(warming)
            if warming.client.is_alive():
                return warming.client
            await warming.client.close()
        return None

    def _next(self) -> _Warming | None:
        """Return an unclaimed client, preferably a ready one."""
        free = [
            warming
            for warming in self._warmings
            if not warming.claimed and not self._is_outdated(warming.spec)
        ]
        return min(free, key=lambda one: one.client is None, default=None)

    def _is_outdated(self, spec: ClientSpec) -> bool:
        """Return whether these are other options than a prewarmed client would get."""
        usual = self._spec()
        return usual is None or spec.fingerprint != usual.fingerprint

    def _remove(self, warming: _Warming) -> None:
        if warming in self._warmings:
            self._warmings.remove(warming)
            self._notify()

    def delay(self, conversation_id: str) -> None:
        """Delay prewarming: a conversation gets a client, and its turn has no text yet."""
        self._without_text.add(conversation_id)

    def resume(self, conversation_id: str) -> None:
        """Report that a turn has its first text, or has ended: a new client does not delay it any
        more.
        """
        if conversation_id in self._without_text:
            self._without_text.remove(conversation_id)
            self._notify()

    async def run(self) -> None:
        """Keep the pool full until it is closed."""
        self._stopped = anyio.Event()
        try:
            with anyio.CancelScope() as self._scope:
                if not self._closed:
                    await self._fill()
        finally:
            self._stopped.set()

    async def _fill(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while True:
            while len(self._warmings) >= self._wanted():
                self._taken = 0
                await self._changed.wait()
            await self.give_way()
            if await self._warm_one():
                pause_s = _FIRST_PAUSE_S
            else:
                await anyio.sleep(pause_s)
                pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def _wanted(self) -> int:
        if self._spec() is None:
            return 0
        if anyio.current_time() >= self._calm_at:
            self._demand = self._size
        return max(self._size, min(self._demand, self._most()))

    async def end_surplus(self) -> None:
        """End the clients that are ready and not wanted any more; to be called from
        time to time.
        """
        for warming in list(self._warmings):
            is_surplus = len(self._warmings) > self._wanted() or self._is_outdated(warming.spec)
            if warming in self._warmings and is_surplus and warming.client is not None:
                self._remove(warming)
                await warming.client.close()

    async def give_way(self) -> None:
        """Wait, up to a bound, for the first texts of conversations that get clients."""
        with anyio.move_on_after(_LONGEST_WAY_S):
            while self._without_text:
                await self._changed.wait()
        self._without_text.clear()

    async def _warm_one(self) -> bool:
        spec = self._spec()
        assert spec is not None, "one is wanted"
        warming = _Warming(spec)
        self._warmings.append(warming)
        try:
            warming.client = await self._engine.connect(warming.spec, SessionOrigin(warm_up=True))
        except EngineError as exc:
            _log.warning("prewarming_failed", extra={"reason": str(exc), "detail": exc.detail})
        except Exception:  # noqa: BLE001  the server must go on without prewarmed clients
            _log.exception("prewarming_failed")
        finally:
            warming.done.set()
            if warming.client is None:
                self._remove(warming)
        return warming.client is not None

    async def close(self) -> None:
        """End all clients, including those still connecting; return when they are gone."""
        self._closed = True
        self._scope.cancel()
        if self._stopped is not None:
            await self._stopped.wait()
        async with anyio.create_task_group() as tasks:
            for warming in list(self._warmings):
                if warming.client is not None:
                    self._warmings.remove(warming)
                    tasks.start_soon(warming.client.close)

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
