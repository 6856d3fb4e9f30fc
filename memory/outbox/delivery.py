"""One delivery of one item to one backend, and where deliveries are kept."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from memory.outbox.loop import DeliveryQueue

DeliveryStatus = Literal["pending", "delivered", "dead"]
Operation = Literal["put", "forget"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDelivery:
    """A delivery to enqueue, in the transaction that changes the item."""

    backend: str
    operation: Operation
    item_id: str
    owner_id: str
    revision: int
    """Of the item; a later revision makes an earlier delivery needless."""

    @property
    def idempotency_key(self) -> str:
        """The key of this delivery, the same for each try."""
        return f"{self.backend}:{self.operation}:{self.item_id}:{self.revision}"


def deliveries_of(
    operation: Operation, item_id: str, owner_id: str, revision: int, backends: Iterable[str]
) -> list[NewDelivery]:
    """Return a delivery of an item to each backend."""
    return [
        NewDelivery(
            backend=backend,
            operation=operation,
            item_id=item_id,
            owner_id=owner_id,
            revision=revision,
        )
        for backend in sorted(backends)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A delivery in the outbox."""

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
    """A sentence for people; None if nothing went wrong."""
    due_at: datetime
    created_at: datetime
    delivered_at: datetime | None = None

    @property
    def queued_at(self) -> datetime:
        """When it was enqueued."""
        return self.created_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What a backend made of an item."""

    item_id: str
    backend: str
    remote_kind: str
    """In the backend's words: `vector`, `resource`, `item`, `category`, `file`, `task`."""
    remote_id: str


class OutboxStore(DeliveryQueue[Delivery], Protocol):
    """Stores deliveries; they are enqueued elsewhere, in the transactions that change items."""

    async def delivered(
        self, delivery: Delivery, links: Sequence[Link] | None, now: datetime
    ) -> None:
        """Note a success and replace the item's links; None keeps them.

        If the delivery waits no longer, only the links are stored.
        """

    async def begun(self, delivery: Delivery, links: Sequence[Link]) -> None:
        """Replace the item's links by those of work that was begun; the delivery still waits."""

    async def release(self, backend: str, now: datetime) -> None:
        """Make leased and untried deliveries due, at a start when no other worker runs."""

    async def next_due_at(self, backend: str) -> datetime | None:
        """Return when the next delivery is due; None if none waits."""

    async def page(
        self,
        owner_id: str,
        status: DeliveryStatus | None,
        *,
        limit: int,
        before_id: int | None = None,
    ) -> Sequence[Delivery]:
        """Return deliveries of items that the owner may read, newest first."""

    async def retry(self, delivery_id: int, owner_id: str, now: datetime) -> Delivery | None:
        """Make a dead or pending delivery due now and reset its attempts; None if the owner has
        none such.
        """

    async def links_of(self, item_id: str) -> Sequence[Link]:
        """Return the links of an item to backends."""

    async def lag_s(self, backend: str, now: datetime) -> float:
        """Return the age of the oldest pending delivery; 0 if none waits."""
