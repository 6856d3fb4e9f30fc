"""Where items are kept and searched by their words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memory.items import KINDS, Item, ItemKind
from memory.scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class WordHit:
    """An item that has some of a query's words."""

    item_id: str
    score: float
    """Above 0, higher is better; comparable within one answer."""
    coverage: float
    """How much of the query's weight the item's words carry, 0 to 1: rare words weigh more."""
    is_about: bool
    """Whether it may answer the question: one hit of the answer at least has a good part of it, and this
    one more than next to nothing. Never true where they only share a common word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedItem:
    """An item with its place in the order of writing."""

    seq: int
    item: Item


class ItemStore(Protocol):
    """Items by id, by age and by their words. Nothing is seen across owners."""

    async def get(self, item_id: str, scope: Scope) -> Item | None:
        """Give an item, or None where there is none that the scope covers."""
        ...

    async def get_many(self, item_ids: Sequence[str], scope: Scope) -> list[Item]:
        """Give those of the items that the scope covers, in the order of the ids."""
        ...

    async def search(
        self, text: str, scope: Scope, *, kinds: Sequence[ItemKind] = KINDS, limit: int
    ) -> list[WordHit]:
        """Find the items that have words of `text`, best first; a text without words finds none.

        Cancelled, it stops the search itself. Never waits for a writer or another reader.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        ...

    async def newest(
        self, scope: Scope, *, kinds: Sequence[ItemKind] = KINDS, limit: int
    ) -> list[Item]:
        """Give the items that happened last, newest first."""
        ...

    async def after(self, seq: int, limit: int) -> list[NumberedItem]:
        """Give items of all owners in the order of writing, those after `seq`: for a rebuild."""
        ...
