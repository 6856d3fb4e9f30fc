"""The retrievers of a search: each finds items in its own way, all of them at the same time."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal, Protocol, runtime_checkable

import anyio

from memory.items.item import ItemKind
from memory.items.scope import Scope
from memory.items.seen import NOTHING_SEEN, Seen
from memory.items.store import WordHit, WordSearching
from memory.items.timespan import ALL_TIME, TimeSpan
from memory.recall.query import Degradation
from memory.text.terms import characters

_log = logging.getLogger(__name__)

RetrieverName = Literal["fulltext", "vector", "memu"]

_LEAST_OF_CHINESE: Final = 0.1
"""Coverage below which an item takes a place from better ones, by pairs of characters that it
happens to share; measured on dialogues, where it does not help in English. Cases are told in other
words than asked for.
"""
_DEPTH: Final = 60
"""Items that each retriever is asked for; fusion was measured to gain up to this depth."""
_FAILURES: Final[dict[RetrieverName, tuple[Degradation, Degradation]]] = {
    "fulltext": ("fulltext_timeout", "fulltext_error"),
    "vector": ("vector_timeout", "vector_error"),
    "memu": ("memu_timeout", "memu_error"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a retriever is asked."""

    text: str
    scope: Scope
    kinds: Sequence[ItemKind]
    seen: Seen = NOTHING_SEEN
    """What need not be found: it would take the places of what can be shown."""
    span: TimeSpan = ALL_TIME
    """Items of another time need not be found either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An item that a retriever found."""

    item_id: str
    strength: float | None
    """How well it fits by the retriever's own measure, 0 to 1; None: the retriever has none."""
    nearness: float | None = None
    """How near it comes to the best possible or found, 0 to 1; None: equal to `strength`."""
    is_weak: bool = False
    """True if it is not worth showing unless another retriever finds it, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieverAnswer:
    """What a retriever found, best first, and what was wrong with it."""

    candidates: Sequence[Candidate] = ()
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
    degraded: tuple[Degradation, ...] = ()


class Retriever(Protocol):
    """One way to find items."""

    @property
    def name(self) -> RetrieverName:
        """Its name; its failures are called `<name>_error` and `<name>_timeout`."""

    async def find(self, question: Question, *, limit: int) -> RetrieverAnswer:
        """Find items of the scope's owners; labels and kinds are checked again afterwards.

        May raise anything, which counts as its error; may be cancelled at any await.
        """


@runtime_checkable
class FindsEach(Protocol):
    """A retriever for which several questions at once cost less than one after another."""

    async def find_each(
        self, questions: Sequence[Question], *, limit: int
    ) -> Sequence[RetrieverAnswer]:
        """Answer questions that differ in their texts only, as `Retriever.find` does each."""


class FulltextRetriever:
    """Finds by words."""

    name: RetrieverName = "fulltext"

    def __init__(self, items: WordSearching) -> None:
        self._items = items

    async def find(self, question: Question, *, limit: int) -> RetrieverAnswer:
        """Find items that have words of the question."""
        return (await self.find_each([question], limit=limit))[0]

    async def find_each(
        self, questions: Sequence[Question], *, limit: int
    ) -> Sequence[RetrieverAnswer]:
        """Find items that have words of the questions, which differ in their texts only."""
        first = questions[0]
        found = await self._items.search_each(
            [question.text for question in questions],
            first.scope,
            kinds=first.kinds,
            limit=limit,
            seen=first.seen,
            span=first.span,
        )
        return [_answer_to(question, hits) for question, hits in zip(questions, found, strict=True)]


def _answer_to(question: Question, hits: Sequence[WordHit]) -> RetrieverAnswer:
    best = max((hit.score for hit in hits), default=1.0)
    is_of_cases = tuple(question.kinds) == ("case",)
    strong = hits
    if characters(question.text) and not is_of_cases:
        strong = [hit for hit in hits if hit.coverage >= _LEAST_OF_CHINESE]
    return RetrieverAnswer(
        candidates=[
            Candidate(
                item_id=hit.item_id,
                strength=hit.coverage,
                nearness=hit.score / best,
                is_weak=hit.is_weak and bool(strong),
            )
            for hit in strong or hits
        ]
    )


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


NO_EVENTS: Final = SearchEvents()


async def gather(
    retrievers: Sequence[Retriever],
    questions: Sequence[Question],
    *,
    bound_s: float,
    events: SearchEvents = NO_EVENTS,
) -> Gathered:
    """Ask all retrievers all questions at once; a slow or broken one is left out and named."""
    answers: dict[tuple[int, int], RetrieverAnswer] = {}

    async def ask(place: int, retriever: Retriever, some: Sequence[int]) -> None:
        with events.timing(retriever.name):
            found = await _answers(retriever, [questions[number] for number in some], bound_s)
        answers.update(((number, place), one) for number, one in zip(some, found, strict=True))

    every = range(len(questions))
    calls = [
        (place, retriever, some)
        for place, retriever in enumerate(retrievers)
        for some in (
            [every] if every and isinstance(retriever, FindsEach) else [[n] for n in every]
        )
    ]
    async with anyio.create_task_group() as tasks:
        for call in calls[1:]:
            tasks.start_soon(ask, *call)
        for call in calls[:1]:  # often the only one, which needs no task of its own
            await ask(*call)
    ordered = [answers[key] for key in sorted(answers)]
    found = [
        Ranked(retriever=retrievers[place].name, candidates=answers[number, place].candidates)
        for number, place in sorted(answers)
    ]
    degraded = dict.fromkeys(reason for answer in ordered for reason in answer.degraded)
    return Gathered(found=found, degraded=tuple(degraded))


async def _answers(
    retriever: Retriever, questions: Sequence[Question], bound_s: float
) -> Sequence[RetrieverAnswer]:
    reasons = _FAILURES[retriever.name]
    try:
        with anyio.fail_after(bound_s):
            if isinstance(retriever, FindsEach):
                return await retriever.find_each(questions, limit=_DEPTH)
            return [await retriever.find(question, limit=_DEPTH) for question in questions]
    except TimeoutError:
        return [RetrieverAnswer(degraded=reasons[:1])] * len(questions)
    except Exception:  # noqa: BLE001  a broken retriever must not stop the others
        _log.exception("recall_retriever_failed", extra={"retriever": retriever.name})
        return [RetrieverAnswer(degraded=reasons[1:])] * len(questions)
