"""One delivery of one item to one backend, and where deliveries are kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

DeliveryStatus = Literal["pending", "delivered", "dead"]
Operation = Literal["put", "forget"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDelivery:
    """What is to be delivered; written in the transaction that changes the item."""

    backend: str
    operation: Operation
    item_id: str
    owner_id: str
    revision: int
    """Of the item when this was written: a later revision makes an earlier delivery needless."""

    @property
    def idempotency_key(self) -> str:
        """The same for each try of this delivery, and for no other one."""
        return f"{self.backend}:{self.operation}:{self.item_id}:{self.revision}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A delivery as it stands in the outbox."""

    id: int
    backend: str
    operation: Operation
    item_id: str
    owner_id: str
    revision: int
    idempotency_key: str
    status: DeliveryStatus
    attempts: int
    last_error: str | None
    """A sentence for people; None while nothing went wrong."""
    due_at: datetime
    created_at: datetime
    delivered_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What a backend made of an item."""

    item_id: str
    backend: str
    remote_kind: str
    """In the backend's words: `vector`, `resource`, `item`, `category`, `file`, `task`."""
    remote_id: str


class OutboxStore(Protocol):
    """Where deliveries wait. Items and deliveries change in one transaction, elsewhere."""

    async def due(
        self, backend: str, now: datetime, *, limit: int, until: datetime
    ) -> Sequence[Delivery]:
        """Take due deliveries, oldest first; nobody else sees them before `until`."""
        ...

    async def delivered(
        self, delivery: Delivery, links: Sequence[Link] | None, now: datetime
    ) -> None:
        """Note a success and what came of it, in place of what came before; None: that stays.

        Of a delivery that does not wait any more, what came of it is noted alone.
        """
        ...

    async def begun(self, delivery: Delivery, links: Sequence[Link]) -> None:
        """Note what a try has begun at the backend, in place of what came before; it is not made yet."""
        ...

    async def failed(
        self, delivery: Delivery, error: str, now: datetime, *, due_at: datetime | None
    ) -> None:
        """Note a failure; tried again at `due_at`, or dead where that is None."""
        ...

    async def postpone(self, delivery: Delivery, *, due_at: datetime) -> None:
        """Give a delivery back untried, due at a moment."""
        ...

    async def release(self, backend: str, now: datetime) -> None:
        """Make due what was leased and never tried to the end; for a start, when no taker is left."""
        ...

    async def next_due_at(self, backend: str) -> datetime | None:
        """Tell when the next delivery is due; None: none waits."""
        ...

    async def page(
        self,
        owner_id: str,
        status: DeliveryStatus | None,
        *,
        limit: int,
        before_id: int | None = None,
    ) -> Sequence[Delivery]:
        """List the deliveries of what an owner reads, their own and the workspace's, newest first."""
        ...

    async def retry(self, delivery_id: int, owner_id: str, now: datetime) -> Delivery | None:
        """Make a dead or pending delivery of what an owner reads due now, its attempts forgotten.

        None: there is no such one.
        """
        ...

    async def links_of(self, item_id: str) -> Sequence[Link]:
        """List what backends made of an item."""
        ...

    async def lag_s(self, backend: str, now: datetime) -> float:
        """Tell the age of the oldest pending delivery; 0 where none waits."""
        ...
