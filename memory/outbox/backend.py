"""What remembered items are delivered to: the vector index, memU, whatever comes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from memory.items import Item
from memory.outbox.delivery import Link
from memory.scope import Scope


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


@runtime_checkable
class TaskBackend(Backend, Protocol):
    """A backend that works on by itself at what it was given, and knows no idempotency key.

    A delivery to it is made in two steps. What tells of the first is stored before the second is waited
    for, so that a process that dies in between finds the task again instead of having another one begun.
    """

    async def begin(self, item: Item, links: Sequence[Link], delivery_id: int) -> Sequence[Link]:
        """Have the work begun, or find in `links` what an earlier try of this delivery began.

        Gives what is to be stored in place of `links`; nothing of another delivery's task is left then.

        Raises:
            BackendUnavailable: try again later; what is stored stays.
            DeliveryRefused: do not try again.
        """
        ...

    async def finish(self, item: Item, links: Sequence[Link]) -> Sequence[Link]:
        """Wait until what `begin` gave is done; gives the links that stay.

        Raises:
            BackendUnavailable: it is not done, or came to nothing; `begin` knows then what to do.
        """
        ...


@runtime_checkable
class RetrievingBackend(Backend, Protocol):
    """A backend that can be asked which of the items that it was given come near to a question."""

    async def retrieve(self, query: str, scope: Scope, *, limit: int) -> Sequence[str]:
        """Give the ids of items of the scope's owners, the nearest first, however far off they be.

        They are only names: what stands behind them may have been forgotten meanwhile, and whoever asks
        loads it by the scope. Can be cancelled at any moment, and ends at once then.

        Raises:
            BackendUnavailable: it did not answer.
            DeliveryRefused: it will never answer this.
        """
        ...
