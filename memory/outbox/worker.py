"""Makes the deliveries of the outbox, one loop for each backend, so that a slow one holds up no
other.

A delivery that is made again, after a server died, has the same idempotency key.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import anyio

from memory.clock import Now
from memory.errors import DeliveryRefused, StoreUnavailable
from memory.items.item import Item
from memory.outbox.backend import Backend, BackendHealth, TaskBackend
from memory.outbox.delivery import Delivery, Link
from memory.outbox.loop import DeliveryLimits, DeliveryLoop, DeliveryResult
from memory.outbox.store import SqlOutboxStore
from memory.remote.breaker import Breaker, BreakerState

_log = logging.getLogger(__name__)


_STORE_PAUSE_S = 5.0
"""How long the loop waits when its own database cannot be used."""
_SET_BACK: Final = timedelta(minutes=1)
"""A clock that went back by more was set."""


ReadItem = Callable[[str], Awaitable[Item | None]]
"""Returns the item of an id as it is now, whoever owns it; None if it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxHealth:
    """The state of deliveries to a backend."""

    backend: BackendHealth
    breaker: BreakerState
    """Of the deliveries."""
    last_error: str | None
    lag_s: float
    reading_breaker: BreakerState | None = None
    """Of the questions to it, as of its last change; None if it is not asked."""


class DeliveryWorker:
    """Makes the deliveries to one backend. `run` it in a task group; `wake` it after enqueuing."""

    def __init__(
        self,
        backend: Backend,
        outbox: SqlOutboxStore,
        read_item: ReadItem,
        breaker: Breaker,
        *,
        now: Now,
        draw: Callable[[], float],
        limits: DeliveryLimits | None = None,
        on_result: Callable[[Delivery, DeliveryResult, str | None], None] = lambda *_: None,
    ) -> None:
        self._backend = backend
        self._outbox = outbox
        self._read_item = read_item
        self._breaker = breaker
        self._now = now
        self._limits = limits or DeliveryLimits()
        self._loop = DeliveryLoop(
            backend.name,
            outbox,
            self._make,
            breaker,
            now=now,
            draw=draw,
            limits=self._limits,
            on_result=on_result,
        )
        self._wakened = anyio.Event()
        self._last_look: datetime | None = None
        self._unnoted: dict[str, Sequence[Link]] = {}
        """Links of work that was begun and could not be stored, so that it is not begun again."""

    @property
    def name(self) -> str:
        """The backend's name."""
        return self._backend.name

    def wake(self) -> None:
        """Look for deliveries now."""
        self._wakened.set()

    async def health(self) -> OutboxHealth:
        """Return the state of the deliveries; asks the backend.

        Raise `StoreUnavailable` if the outbox cannot be read.
        """
        now = self._now()
        return OutboxHealth(
            backend=await self._backend.check(),
            breaker=self._breaker.state(now),
            last_error=self._loop.last_error,
            lag_s=await self._outbox.lag_s(self.name, now),
        )

    async def run(self) -> None:
        """Deliver until cancelled, first what an earlier run, or another server's, had leased."""
        self._last_look = None
        health = await self._backend.check()
        if health.state == "failing":
            _log.warning("backend_not_ready", extra={"backend": self.name, "reason": health.detail})
        while True:
            self._wakened = anyio.Event()
            try:
                await self._release()
                await self.drain()
                pause_s = await self._pause_s()
            except StoreUnavailable:
                _log.exception("outbox_unavailable", extra={"backend": self.name})
                pause_s = _STORE_PAUSE_S
            with anyio.move_on_after(pause_s):
                await self._wakened.wait()

    async def _release(self) -> None:
        """Make due what was to wait by a clock that was ahead and is set back; at first what an
        earlier run had leased, and waits that are longer than the longest.
        """
        now, last = self._now(), self._last_look
        if last is None:
            latest = now + timedelta(seconds=self._limits.backoff.most_s)
            await self._outbox.release(self.name, now, latest=latest)
        elif now < last - _SET_BACK:
            await self._outbox.release(self.name, now, latest=now)
        self._last_look = now

    async def drain(self) -> int:
        """Make all deliveries that are due now; return how many were tried.

        Raise `StoreUnavailable` if the outbox cannot be used.
        """
        return await self._loop.drain()

    async def _make(self, delivery: Delivery) -> None:
        """Deliver the item's present state and note it; nothing if the item is gone."""
        if delivery.operation == "forget":
            await self._forget(delivery)
            return
        item = await self._read_item(delivery.item_id)
        await self._note_made(delivery, None if item is None else await self._put(delivery, item))

    async def _put(
        self, delivery: Delivery, item: Item, *, is_cleared: bool = False
    ) -> Sequence[Link]:
        """Hand an item over; a task that is begun for it is noted before it is waited for."""
        backend = self._backend
        if not isinstance(backend, TaskBackend):
            return await backend.put(item, delivery.idempotency_key)
        known = () if is_cleared else await self._links_of(item.id)
        begun = await backend.begin(item, known, delivery.id)
        self._unnoted[item.id] = begun
        with anyio.CancelScope(shield=True):  # stored whatever stops the delivery now
            await self._outbox.begun(delivery, begun)
        del self._unnoted[item.id]
        return await backend.finish(item, begun)

    async def _links_of(self, item_id: str) -> Sequence[Link]:
        if item_id in self._unnoted:
            return self._unnoted[item_id]
        links = await self._outbox.links_of(item_id)
        return [link for link in links if link.backend == self.name]

    async def _forget(self, delivery: Delivery) -> None:
        """Forget an item; put it again if it has come back since."""
        known = await self._links_of(delivery.item_id)
        refused: DeliveryRefused | None = None
        try:
            await self._backend.forget(delivery.item_id, known, delivery.idempotency_key)
        except DeliveryRefused as exc:
            refused = exc
        item = await self._read_item(delivery.item_id)
        made = () if item is None else await self._put(delivery, item, is_cleared=True)
        if refused is not None:
            raise refused
        await self._note_made(delivery, made)

    async def _note_made(self, delivery: Delivery, made: Sequence[Link] | None) -> None:
        with anyio.CancelScope(shield=True):  # noted also during shutdown
            await self._outbox.delivered(delivery, made, self._now())

    async def _pause_s(self) -> float:
        """Return how long there is nothing to do; `wake` cuts it short."""
        now = self._now()
        due = await self._outbox.next_due_at(self.name)
        if due is None:
            return self._limits.look_s
        due = max(due, self._breaker.reopens_at() or due)
        return min(self._limits.look_s, max(0.0, (due - now).total_seconds()))
