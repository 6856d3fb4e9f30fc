"""What remembered items are delivered to, such as the vector index or memU."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from memory.items.item import Item
from memory.items.scope import Scope
from memory.outbox.delivery import Link


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendHealth:
    """How a backend is, as `/memory/health` and `/readyz` show it."""

    name: str
    state: str
    """`ok`, `rebuilding`, `failing` or `off`."""
    detail: str | None = None


class Backend(Protocol):
    """Receives deliveries. A call may come twice with the same key and must then change nothing."""

    @property
    def name(self) -> str:
        """Its name in the outbox."""

    async def put(self, item: Item, idempotency_key: str) -> Sequence[Link]:
        """Store an item or its newer revision; return links to what was made of it.

        Raise `BackendUnavailable` to be tried again later, `DeliveryRefused` if that does not help.
        """

    async def forget(self, item_id: str, links: Sequence[Link], idempotency_key: str) -> None:
        """Remove all that was made of an item, if there is any.

        Raise `BackendUnavailable` to be tried again later, `DeliveryRefused` if it cannot forget
        everything; the text says what is left.
        """

    async def check(self) -> BackendHealth:
        """Check cheaply whether it answers; never raises."""

    async def close(self) -> None:
        """Release all resources; idempotent."""


@runtime_checkable
class TaskBackend(Backend, Protocol):
    """A backend that works asynchronously and knows no idempotency key.

    A delivery has two steps. The links from `begin` are stored before `finish` waits, so that a
    process that dies in between finds the task again instead of beginning another.
    """

    async def begin(self, item: Item, links: Sequence[Link], delivery_id: int) -> Sequence[Link]:
        """Begin the work, or find in `links` what an earlier try of this delivery began.

        Returns the links to store instead of `links`. Raises as `put` does; what is stored stays.
        """

    async def finish(self, item: Item, links: Sequence[Link]) -> Sequence[Link]:
        """Wait until the work behind `links` is done; return the links to keep.

        Raise `BackendUnavailable` if it is not done, or failed; the next try calls `begin` again.
        """


@runtime_checkable
class RetrievingBackend(Backend, Protocol):
    """A backend that can find items by a question."""

    async def retrieve(self, query: str, scope: Scope, *, limit: int) -> Sequence[str]:
        """Return the ids of items of the scope's owners, the nearest first, however far away.

        An item may have been forgotten meanwhile, so callers load it by the scope. Stops at once
        when cancelled. Raise `BackendUnavailable` if it did not answer, `DeliveryRefused` if it
        will never answer this.
        """
