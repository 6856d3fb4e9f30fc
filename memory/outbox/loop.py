"""Makes the deliveries of one receiver, one after another, off a queue that outlives the process.

A delivery is leased, made, and noted; a server that dies in between makes it again. While the
breaker is open nothing is tried, and no attempt is counted.
"""

import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Generic, Literal, Protocol, TypeVar

import anyio

from memory.clock import Now
from memory.errors import BackendUnavailable, DeliveryRefused, StoreUnavailable
from memory.remote.breaker import Breaker

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How long to wait, and how often to try."""

    first_s: float = 2.0
    """The bound of the first wait; each further bound is twice as long."""
    most_s: float = 3600.0
    least_s: float = 0.5
    """The least wait: a backend that fails at once is not asked again at once."""
    drawn_ratio: float = 1.0
    """The part of a bound that is drawn; the rest of it is always waited."""
    max_attempts: int = 10
    """The last failed attempt makes the delivery dead."""

    def wait(self, attempts: int, draw: Callable[[], float]) -> timedelta | None:
        """Return the wait after so many failed attempts, from 1; None to give up. `draw` is in [0,
        1).
        """
        if attempts >= self.max_attempts:
            return None
        bound = min(self.most_s, self.first_s * 2.0 ** min(attempts - 1, 60))
        ratio = 1 - self.drawn_ratio + self.drawn_ratio * draw()
        return timedelta(seconds=max(self.least_s, bound * ratio))


DeliveryResult = Literal["delivered", "failed", "dead"]


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
    patience_s: float = math.inf
    """How long after it was enqueued a delivery may be tried again."""


class Queued(Protocol):
    """A delivery that waits in a queue."""

    @property
    def id(self) -> int | str:
        """What it is called in the log."""

    @property
    def attempts(self) -> int:
        """How often it was tried and failed."""

    @property
    def queued_at(self) -> datetime:
        """When it was enqueued."""


DeliveryT = TypeVar("DeliveryT", bound=Queued)


class DeliveryQueue(Protocol[DeliveryT]):
    """The deliveries to many receivers, as a loop sees them. Raises `StoreUnavailable`."""

    async def due(
        self, receiver: str, now: datetime, /, *, limit: int, until: datetime
    ) -> Sequence[DeliveryT]:
        """Lease due deliveries, oldest first; no other caller gets them before `until`."""

    async def failed(
        self, delivery: DeliveryT, error: str, now: datetime, /, *, due_at: datetime | None
    ) -> None:
        """Note a failure; the next try is due at `due_at`, None makes the delivery dead."""

    async def postpone(self, delivery: DeliveryT, /, *, due_at: datetime) -> None:
        """Return a delivery back untried, due at a moment."""


class DeliveryLoop(Generic[DeliveryT]):
    """Makes the due deliveries to one receiver."""

    def __init__(
        self,
        receiver: str,
        queue: DeliveryQueue[DeliveryT],
        make: Callable[[DeliveryT], Awaitable[None]],
        breaker: Breaker,
        *,
        now: Now,
        draw: Callable[[], float],
        limits: DeliveryLimits,
        on_result: Callable[[DeliveryT, DeliveryResult, str | None], None],
    ) -> None:
        """Take `make`, which makes a delivery and notes that in the queue.

        It raises `BackendUnavailable` to be tried again later, `DeliveryRefused` if that does not
        help.
        """
        self._receiver = receiver
        self._queue = queue
        self._make = make
        self._breaker = breaker
        self._now = now
        self._draw = draw
        self._limits = limits
        self._on_result = on_result
        self.last_error: str | None = None
        """Of the last delivery; None if it went well."""

    async def drain(self) -> int:
        """Make all deliveries that are due now; return how many were tried.

        Raise `StoreUnavailable` if the queue cannot be used.
        """
        tried = 0
        while self._breaker.state(self._now()) != "open":
            now = self._now()
            until = now + timedelta(seconds=self._limits.lease_s)
            batch = await self._queue.due(
                self._receiver, now, limit=self._limits.batch, until=until
            )
            if not batch:
                return tried
            for place, delivery in enumerate(batch):
                if not self._breaker.may_try(self._now()):
                    due_at = self._breaker.reopens_at() or self._now()
                    for untried in batch[place:]:
                        await self._queue.postpone(untried, due_at=due_at)
                    return tried
                await self._deliver(delivery)
                tried += 1
        return tried

    async def _deliver(self, delivery: DeliveryT) -> None:
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
            _log.exception(
                "delivery_broke", extra={"backend": self._receiver, "delivery": delivery.id}
            )
            await self._retry_later(delivery, "The backend broke; the server's log says how.")
        else:
            self.last_error = None
            self._breaker.succeeded()
            self._on_result(delivery, "delivered", None)

    async def _retry_later(self, delivery: DeliveryT, error: str) -> None:
        now = self._now()
        self._breaker.failed(now)
        wait = self._limits.backoff.wait(delivery.attempts + 1, self._draw)
        due_at = None if wait is None else now + wait
        if due_at and (due_at - delivery.queued_at).total_seconds() > self._limits.patience_s:
            due_at = None
        await self._note_failure(delivery, error, due_at=due_at)

    async def _note_failure(
        self, delivery: DeliveryT, error: str, *, due_at: datetime | None
    ) -> None:
        self.last_error = error
        await self._queue.failed(delivery, error, self._now(), due_at=due_at)
        self._on_result(delivery, "dead" if due_at is None else "failed", error)
