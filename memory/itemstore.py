"""The store of items, which searches them by their words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memory.items import KINDS, Item, ItemKind
from memory.periods import AskedTime
from memory.scope import Scope
from memory.seen import NOTHING_SEEN, Seen


@dataclass(frozen=True, slots=True, kw_only=True)
class WordHit:
    """An item with words of a query."""

    item_id: str
    score: float
    """Above 0, higher is better; comparable within one answer."""
    coverage: float
    """How much of the query's weight the item's words carry, 0 to 1: rare words weigh more."""
    confidence: float
    """How likely it answers the question, 0 to 1; see `memory.recall.confidence`."""
    measures: Sequence[float] = ()
    """What `confidence` was calculated from."""


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
        when: AskedTime | None = None,
    ) -> list[WordHit]:
        """Return the items that have words of `text`, or are of the asked period, best first.

        None for a text without words and period.

        What was seen takes no place of others.

        Cancellation stops the search. Never waits for a writer or another reader. Raise
        `StoreUnavailable` if the store cannot be read.
        """


class ItemSource(Protocol):
    """Reads items by id."""

    async def get_many(self, item_ids: Sequence[str], scope: Scope) -> list[Item]:
        """Return those of the items that the scope covers, in the order of the ids."""


class NewestItems(Protocol):
    """Reads items by age."""

    async def newest(
        self, scope: Scope, *, kinds: Sequence[ItemKind] = KINDS, limit: int
    ) -> Sequence[Item]:
        """Return the latest items that hold, newest first."""


class ItemStore(WordSearching, ItemSource, NewestItems, Protocol):
    """Reads items by id, by age and by their words, never across owners."""

    async def get(self, item_id: str, scope: Scope) -> Item | None:
        """Return an item, or None if the scope covers none of this id."""

    async def after(
        self, seq: int, limit: int, *, owner_ids: Sequence[str] = ()
    ) -> list[NumberedItem]:
        """Return items written after `seq`, in the order of writing, of these owners or of all."""
