"""The retrievers of a search: each finds items in its own way, side by side with the others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from memory.items import ItemKind
from memory.itemstore import WordHit
from memory.recall.query import Degradation
from memory.scope import Scope

RetrieverName = Literal["fulltext", "vector", "memu"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a retriever is asked."""

    text: str
    scope: Scope
    kinds: Sequence[ItemKind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Something that a retriever found."""

    item_id: str
    strength: float | None
    """How well it fits by the retriever's own measure, 0 to 1; None: the retriever has no measure."""
    nearness: float | None = None
    """How near it comes to the best there can be, or there was, 0 to 1; None: as its strength says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieverAnswer:
    """What a retriever found, best first, and what was wrong with it."""

    candidates: Sequence[Candidate] = ()
    weak: Sequence[Candidate] = ()
    """Found as well, and too far off to be shown on that ground alone."""
    seconded: Sequence[Candidate] = ()
    """Named by a retriever that names the nearest there are, however far off they be.

    It counts for what another retriever is sure of; the rest is weak.
    """
    degraded: Sequence[Degradation] = ()


class Retriever(Protocol):
    """One way to find items."""

    @property
    def name(self) -> RetrieverName:
        """Its name; what goes wrong with it is told as `<name>_error` and `<name>_timeout`."""
        ...

    async def find(self, question: Question, *, limit: int) -> RetrieverAnswer:
        """Find items of the scope's owners; labels and kinds are looked at again afterwards.

        May raise anything, which is told as its error; may be cancelled at any await.
        """
        ...


class WordSearching(Protocol):
    """Where items are searched by their words."""

    async def search(
        self, text: str, scope: Scope, *, kinds: Sequence[ItemKind], limit: int
    ) -> list[WordHit]:
        """Find the items that have words of `text`, best first; see `ItemStore.search`."""
        ...


class FulltextRetriever:
    """Finds by words."""

    name: RetrieverName = "fulltext"

    def __init__(self, items: WordSearching) -> None:
        self._items = items

    async def find(self, question: Question, *, limit: int) -> RetrieverAnswer:
        """Find what has the question's words, and enough of them."""
        hits = await self._items.search(
            question.text, question.scope, kinds=question.kinds, limit=limit
        )
        best = max((hit.score for hit in hits), default=1.0)
        found = [
            (
                hit.is_about,
                Candidate(item_id=hit.item_id, strength=hit.coverage, nearness=hit.score / best),
            )
            for hit in hits
        ]
        return RetrieverAnswer(
            candidates=[one for is_about, one in found if is_about],
            weak=[one for is_about, one in found if not is_about],
        )
