"""The retrievers of a search: each finds items in its own way, all of them at the same time."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

import anyio

from memory.items import ItemKind
from memory.itemstore import WordHit
from memory.recall.query import Degradation
from memory.scope import Scope

_log = logging.getLogger(__name__)

RetrieverName = Literal["fulltext", "vector", "memu"]

_DEPTH: Final = 60
"""Items that each retriever is asked for; fusion was measured to gain up to this depth."""
_TIMEOUTS: Final[dict[RetrieverName, Degradation]] = {
    "fulltext": "fulltext_timeout",
    "vector": "vector_timeout",
    "memu": "memu_timeout",
}
_ERRORS: Final[dict[RetrieverName, Degradation]] = {
    "fulltext": "fulltext_error",
    "vector": "vector_error",
    "memu": "memu_error",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a retriever is asked."""

    text: str
    scope: Scope
    kinds: Sequence[ItemKind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An item that a retriever found."""

    item_id: str
    strength: float | None
    """How well it fits by the retriever's own measure, 0 to 1; None: the retriever has none."""
    nearness: float | None = None
    """How near it comes to the best possible or found, 0 to 1; None: equal to `strength`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieverAnswer:
    """What a retriever found, best first, and what was wrong with it."""

    candidates: Sequence[Candidate] = ()
    weak: Sequence[Candidate] = ()
    """Found, but too far off to be shown for that alone."""
    seconded: Sequence[Candidate] = ()
    """The nearest items of a retriever without a measure.

    They count only where another retriever has the item among its `candidates`; the rest is weak.
    """
    degraded: Sequence[Degradation] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One retriever's answer to one query."""

    retriever: RetrieverName
    candidates: Sequence[Candidate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What the retrievers found, in the order of the queries and the retrievers."""

    found: Sequence[Ranked] = ()
    weak: Sequence[Ranked] = ()
    degraded: tuple[Degradation, ...] = ()


class Retriever(Protocol):
    """One way to find items."""

    @property
    def name(self) -> RetrieverName:
        """Its name; its failures are called `<name>_error` and `<name>_timeout`."""
        ...

    async def find(self, question: Question, *, limit: int) -> RetrieverAnswer:
        """Find items of the scope's owners; labels and kinds are checked again afterwards.

        May raise anything, which counts as its error; may be cancelled at any await.
        """
        ...


class WordSearching(Protocol):
    """Searches items by their words."""

    async def search(
        self, text: str, scope: Scope, *, kinds: Sequence[ItemKind], limit: int
    ) -> list[WordHit]:
        """Return the items that have words of `text`, best first; see `ItemStore.search`."""
        ...


class FulltextRetriever:
    """Finds by words."""

    name: RetrieverName = "fulltext"

    def __init__(self, items: WordSearching) -> None:
        self._items = items

    async def find(self, question: Question, *, limit: int) -> RetrieverAnswer:
        """Find items that have the question's words; those with too few of them are weak."""
        hits = await self._items.search(
            question.text, question.scope, kinds=question.kinds, limit=limit
        )
        best = max((hit.score for hit in hits), default=1.0)
        found = [
            Candidate(item_id=hit.item_id, strength=hit.coverage, nearness=hit.score / best)
            for hit in hits
        ]
        pairs = list(zip(hits, found, strict=True))
        return RetrieverAnswer(
            candidates=[candidate for hit, candidate in pairs if hit.is_about],
            weak=[candidate for hit, candidate in pairs if not hit.is_about],
        )


async def gather(
    retrievers: Sequence[Retriever], questions: Sequence[Question], *, bound_s: float
) -> Gathered:
    """Ask all retrievers all questions at once; a slow or broken one is left out and named."""
    asked = [(retriever, question) for question in questions for retriever in retrievers]
    answers = [RetrieverAnswer()] * len(asked)

    async def ask(index: int, retriever: Retriever, question: Question) -> None:
        answers[index] = await _answer(retriever, question, bound_s)

    async with anyio.create_task_group() as tasks:
        for index, (retriever, question) in enumerate(asked):
            tasks.start_soon(ask, index, retriever, question)
    sure = {candidate.item_id for answer in answers for candidate in answer.candidates}
    found, weak = [], []
    for (retriever, _), answer in zip(asked, answers, strict=True):
        seconded = [candidate for candidate in answer.seconded if candidate.item_id in sure]
        rest = [candidate for candidate in answer.seconded if candidate.item_id not in sure]
        name = retriever.name
        found.append(Ranked(retriever=name, candidates=[*answer.candidates, *seconded]))
        weak.append(Ranked(retriever=name, candidates=[*answer.weak, *rest]))
    degraded = dict.fromkeys(reason for answer in answers for reason in answer.degraded)
    return Gathered(found=found, weak=weak, degraded=tuple(degraded))


async def _answer(retriever: Retriever, question: Question, bound_s: float) -> RetrieverAnswer:
    try:
        with anyio.fail_after(bound_s):
            return await retriever.find(question, limit=_DEPTH)
    except TimeoutError:
        return RetrieverAnswer(degraded=(_TIMEOUTS[retriever.name],))
    except Exception:  # noqa: BLE001  a broken retriever must not stop the others
        _log.exception("recall_retriever_failed", extra={"retriever": retriever.name})
        return RetrieverAnswer(degraded=(_ERRORS[retriever.name],))
