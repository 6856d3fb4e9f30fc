"""The store of items, which searches them by their words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memory.items import KINDS, Item, ItemKind
from memory.scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class WordHit:
    """An item with words of a query."""

    item_id: str
    score: float
    """Above 0, higher is better; comparable within one answer."""
    coverage: float
    """How much of the query's weight the item's words carry, 0 to 1: rare words weigh more."""
    is_about: bool
    """True if it may answer the question: the best hit covers a good part of the question, and this one a
    fair part. Never true for a shared common word alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedItem:
    """An item with its place in the order of writing."""

    seq: int
    item: Item


class ItemStore(Protocol):
    """Reads items by id, by age and by their words, never across owners."""

    async def get(self, item_id: str, scope: Scope) -> Item | None:
        """Return an item, or None if the scope covers none of this id."""
        ...

    async def get_many(self, item_ids: Sequence[str], scope: Scope) -> list[Item]:
        """Return those of the items that the scope covers, in the order of the ids."""
        ...

    async def search(
        self, text: str, scope: Scope, *, kinds: Sequence[ItemKind] = KINDS, limit: int
    ) -> list[WordHit]:
        """Return the items that have words of `text`, best first; none for a text without words.

        Cancellation stops the search. Never waits for a writer or another reader.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        ...

    async def newest(
        self, scope: Scope, *, kinds: Sequence[ItemKind] = KINDS, limit: int
    ) -> list[Item]:
        """Return the latest items, newest first."""
        ...

    async def after(self, seq: int, limit: int) -> list[NumberedItem]:
        """Return items of all owners written after `seq`, in the order of writing, for a rebuild."""
        ...
