"""Makes the deliveries of the outbox, one loop for each backend, so that a slow one holds up no
other.

A delivery is leased, made, and noted; a server that dies in between makes it again, with the same
idempotency key. While the breaker is open nothing is tried, and no attempt is counted.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

import anyio

from memory.clock import Now
from memory.errors import BackendUnavailable, DeliveryRefused, StoreUnavailable
from memory.items.item import Item
from memory.outbox.backend import Backend, BackendHealth, TaskBackend
from memory.outbox.delivery import Delivery, Link, OutboxStore
from memory.remote.breaker import Breaker, BreakerState

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How long to wait, and how often to try."""

    first_s: float = 2.0
    """The bound of the first wait; each further bound is twice as long."""
    most_s: float = 3600.0
    least_s: float = 0.5
    """The least wait: a backend that fails at once is not asked again at once."""
    max_attempts: int = 10
    """The last failed attempt makes the delivery dead."""

    def wait(self, attempts: int, draw: Callable[[], float]) -> timedelta | None:
        """Return the wait after so many failed attempts, from 1; None to give up. `draw` is in [0,
        1).
        """
        if attempts >= self.max_attempts:
            return None
        bound = min(self.most_s, self.first_s * 2.0 ** min(attempts - 1, 60))
        return timedelta(seconds=max(self.least_s, bound * draw()))


DeliveryResult = Literal["delivered", "failed", "dead"]

_STORE_PAUSE_S = 5.0
"""How long the loop waits when its own database cannot be used."""


ReadItem = Callable[[str], Awaitable[Item | None]]
"""Returns the item of an id as it is now, whoever owns it; None if it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryLimits:
    """The bounds of deliveries."""

    call_s: float = 60.0
    """One call of a backend."""
    lease_s: float = 180.0
    """How long a batch is leased; longer than its calls usually take."""
    look_s: float = 15.0
    """How often to look for deliveries that another process enqueued."""
    batch: int = 16
    backoff: Backoff = field(default_factory=Backoff)


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
        outbox: OutboxStore,
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
        self._draw = draw
        self._limits = limits or DeliveryLimits()
        self._on_result = on_result
        self._wakened = anyio.Event()
        self._last_error: str | None = None
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
            last_error=self._last_error,
            lag_s=await self._outbox.lag_s(self.name, now),
        )

    async def run(self) -> None:
        """Deliver until cancelled, first what an earlier process had leased."""
        try:
            await self._outbox.release(self.name, self._now())
        except StoreUnavailable:
            _log.exception("outbox_unavailable", extra={"backend": self.name})
        health = await self._backend.check()
        if health.state == "failing":
            _log.warning("backend_not_ready", extra={"backend": self.name, "reason": health.detail})
        while True:
            self._wakened = anyio.Event()
            try:
                await self.drain()
                pause_s = await self._pause_s()
            except StoreUnavailable:
                _log.exception("outbox_unavailable", extra={"backend": self.name})
                pause_s = _STORE_PAUSE_S
            with anyio.move_on_after(pause_s):
                await self._wakened.wait()

    async def drain(self) -> int:
        """Make all deliveries that are due now; return how many were tried.

        Raise `StoreUnavailable` if the outbox cannot be used.
        """
        tried = 0
        while self._breaker.state(self._now()) != "open":
            now = self._now()
            until = now + timedelta(seconds=self._limits.lease_s)
            batch = await self._outbox.due(self.name, now, limit=self._limits.batch, until=until)
            if not batch:
                return tried
            for place, delivery in enumerate(batch):
                if not self._breaker.may_try(self._now()):
                    due_at = self._breaker.reopens_at() or self._now()
                    for untried in batch[place:]:
                        await self._outbox.postpone(untried, due_at=due_at)
                    return tried
                await self._deliver(delivery)
                tried += 1
        return tried

    async def _deliver(self, delivery: Delivery) -> None:
        try:
            with anyio.fail_after(self._limits.call_s):
                await self._make(delivery)
        except DeliveryRefused as exc:
            self._breaker.succeeded()  # it answers; this one it does not want
            await self._note_failure(delivery, str(exc), due_at=None)
        except BackendUnavailable as exc:
            await self._retry_later(delivery, str(exc))
        except TimeoutError:
            await self._retry_later(delivery, "It did not answer in time.")
        except (anyio.get_cancelled_exc_class(), StoreUnavailable):
            self._breaker.gave_up()
            raise
        except Exception:  # noqa: BLE001  a backend that breaks must not end its deliveries
            _log.exception("delivery_broke", extra={"backend": self.name, "item": delivery.item_id})
            await self._retry_later(delivery, "The backend broke; the server's log says how.")
        else:
            self._last_error = None
            self._breaker.succeeded()
            self._on_result(delivery, "delivered", None)

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
        """Have an item taken; a task that is begun for it is noted before it is waited for."""
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

    async def _retry_later(self, delivery: Delivery, error: str) -> None:
        now = self._now()
        self._breaker.failed(now)
        wait = self._limits.backoff.wait(delivery.attempts + 1, self._draw)
        await self._note_failure(delivery, error, due_at=None if wait is None else now + wait)

    async def _note_failure(
        self, delivery: Delivery, error: str, *, due_at: datetime | None
    ) -> None:
        self._last_error = error
        await self._outbox.failed(delivery, error, self._now(), due_at=due_at)
        self._on_result(delivery, "dead" if due_at is None else "failed", error)

    async def _pause_s(self) -> float:
        """Return how long there is nothing to do; `wake` cuts it short."""
        now = self._now()
        due = await self._outbox.next_due_at(self.name)
        if due is None:
            return self._limits.look_s
        due = max(due, self._breaker.reopens_at() or due)
        return min(self._limits.look_s, max(0.0, (due - now).total_seconds()))
