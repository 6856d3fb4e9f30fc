"""Measures the stages of a search: each retriever, and reading what they found."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import anyio

from memory.items import Item
from memory.recall.retrievers import Question, Retriever, RetrieverAnswer, RetrieverName
from memory.recall.search import ItemSource
from memory.scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchEvents:
    """Callbacks for what happens in searches; called on the loop."""

    on_stage: Callable[[str, float], None] = lambda *_: None
    """A stage and its seconds, also if it failed or was cut off."""
    on_scanned: Callable[[int], None] = lambda _: None
    """How many items a search looked at."""

    @contextmanager
    def timing(self, stage: str) -> Iterator[None]:
        """Report how long the block takes, however it ends."""
        began = anyio.current_time()
        try:
            yield
        finally:
            self.on_stage(stage, anyio.current_time() - began)


class MeasuredRetriever:
    """A retriever whose time is reported under its name."""

    def __init__(self, retriever: Retriever, events: SearchEvents) -> None:
        self._retriever = retriever
        self._events = events

    @property
    def name(self) -> RetrieverName:
        """See `Retriever.name`."""
        return self._retriever.name

    async def find(self, question: Question, *, limit: int) -> RetrieverAnswer:
        """See `Retriever.find`."""
        with self._events.timing(self.name):
            return await self._retriever.find(question, limit=limit)


class MeasuredItems:
    """A source of items that reports the time of reading, as `items`, and how many there were."""

    def __init__(self, items: ItemSource, events: SearchEvents) -> None:
        self._items = items
        self._events = events

    async def get_many(self, item_ids: Sequence[str], scope: Scope) -> list[Item]:
        """See `ItemSource.get_many`."""
        with self._events.timing("items"):
            found = await self._items.get_many(item_ids, scope)
        self._events.on_scanned(len(found))
        return found
