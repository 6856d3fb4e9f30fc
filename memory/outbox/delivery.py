"""One delivery of one item to one backend, and where deliveries are kept."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

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
