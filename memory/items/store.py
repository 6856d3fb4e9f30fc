"""The store of items, which searches them by their words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memory.items.item import KINDS, Item, ItemKind
from memory.items.scope import Scope
from memory.items.seen import NOTHING_SEEN, Seen
from memory.items.timespan import ALL_TIME, TimeSpan


@dataclass(frozen=True, slots=True, kw_only=True)
class WordHit:
    """An item with words of a query."""

    item_id: str
    score: float
    """Above 0, higher is better; comparable within one answer."""
    coverage: float
    """How much of the query's weight the item's words carry, 0 to 1: rare words weigh more."""
    is_weak: bool = False
    """True if it is not worth showing unasked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedItem:
    """An item with its place in the order of writing."""

    seq: int
    item: Item


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedItem:
    """One item of a page."""

    item: Item
    why: str
    """Why it is listed, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPage:
    """A page, latest first."""

    items: Sequence[ListedItem]
    next_cursor: str | None
    """Begins the next page; None: this is the last one."""


class UnknownCursor(ValueError):
    """A cursor that no page returned."""


class WordSearching(Protocol):
    """Searches items by their words."""

    async def search(
        self,
        text: str,
        scope: Scope,
        *,
        kinds: Sequence[ItemKind] = KINDS,
        limit: int,
        seen: Seen = NOTHING_SEEN,
        span: TimeSpan = ALL_TIME,
    ) -> list[WordHit]:
        """Return the items of the span that have words of `text`, best first; none for a text
        without words.

        What was seen takes no place of others. A turn with none of the words in itself is not found
        by its neighbours.

        Cancellation stops the search. Never waits for a writer or another reader. Raise
        `StoreUnavailable` if the store cannot be read.
        """

    async def search_each(
        self,
        texts: Sequence[str],
        scope: Scope,
        *,
        kinds: Sequence[ItemKind] = KINDS,
        limit: int,
        seen: Seen = NOTHING_SEEN,
        span: TimeSpan = ALL_TIME,
    ) -> list[list[WordHit]]:
        """Return what `search` finds for each of the texts, at less cost: they share words."""


class ItemSource(Protocol):
    """Reads items by id."""

    async def get_many(self, item_ids: Sequence[str], scope: Scope) -> list[Item]:
        """Return those of the items that the scope covers, in the order of the ids."""


class NewestItems(Protocol):
    """Reads items by age."""

    async def newest(
        self,
        scope: Scope,
        *,
        kinds: Sequence[ItemKind] = KINDS,
        limit: int,
        span: TimeSpan = ALL_TIME,
    ) -> Sequence[Item]:
        """Return the latest items of the span that hold, newest first."""


class ItemStore(WordSearching, ItemSource, NewestItems, Protocol):
    """Reads items by id, by age and by their words, never across owners."""

    async def get(self, item_id: str, scope: Scope) -> Item | None:
        """Return an item, or None if the scope covers none of this id."""

    async def after(
        self, seq: int, limit: int, *, owner_ids: Sequence[str] = ()
    ) -> list[NumberedItem]:
        """Return items written after `seq`, in the order of writing, of these owners or of all."""
