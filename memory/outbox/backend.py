"""What remembered items are delivered to: the vector index, memU, whatever comes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memory.items import Item
from memory.outbox.delivery import Link


class BackendUnavailable(Exception):
    """The backend did not take it, and may later; the text is one sentence for people."""


class DeliveryRefused(Exception):
    """The backend will never take this as it is; the text is one sentence for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendHealth:
    """How a backend is, as `/memory/health` and `/readyz` show it."""

    name: str
    state: str
    """`ok`, or in a word what it does instead: `rebuilding`, `failing`, `off`."""
    detail: str | None = None


class Backend(Protocol):
    """One place of delivery. Every call may come twice with the same key and must then change nothing."""

    @property
    def name(self) -> str:
        """Its name in the outbox."""
        ...

    async def put(self, item: Item, idempotency_key: str) -> Sequence[Link]:
        """Take an item, or its newer revision.

        Raises:
            BackendUnavailable: try again later.
            DeliveryRefused: do not try again.
        """
        ...

    async def forget(self, item_id: str, links: Sequence[Link], idempotency_key: str) -> None:
        """Remove whatever was made of an item; one that is not there is fine.

        Raises:
            BackendUnavailable: try again later.
            DeliveryRefused: it has no way to forget; the text says what is left there.
        """
        ...

    async def check(self) -> BackendHealth:
        """Look whether it answers, cheaply; never raises."""
        ...

    async def close(self) -> None:
        """Let go of what it holds; idempotent."""
        ...
