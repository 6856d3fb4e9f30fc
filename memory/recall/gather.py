"""Asks all retrievers side by side, each for each query, none longer than it may take."""

import logging
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

import anyio

from memory.recall.fuse import Ranked
from memory.recall.query import Degradation
from memory.recall.retrievers import Candidate, Question, Retriever, RetrieverAnswer, RetrieverName

_log = logging.getLogger(__name__)

_DEPTH: Final = 60
"""Items that each retriever is asked for: as deep as fusion was measured to gain from."""
_TOO_SLOW: Final[dict[RetrieverName, Degradation]] = {
    "fulltext": "fulltext_timeout",
    "vector": "vector_timeout",
    "memu": "memu_timeout",
}
_BROKEN: Final[dict[RetrieverName, Degradation]] = {
    "fulltext": "fulltext_error",
    "vector": "vector_error",
    "memu": "memu_error",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What the retrievers found, in the order of the queries and the retrievers."""

    found: Sequence[Ranked] = ()
    weak: Sequence[Ranked] = ()
    degraded: tuple[Degradation, ...] = ()
    """Each reason once."""


async def gather(
    retrievers: Sequence[Retriever], questions: Sequence[Question], *, bound_s: float
) -> Gathered:
    """Ask; a retriever that is slow or broken is left out and named, and the others' answers stand."""
    answers: dict[tuple[int, int], RetrieverAnswer] = {}

    async def ask(place: tuple[int, int], retriever: Retriever, question: Question) -> None:
        answers[place] = await _answer(retriever, question, bound_s)

    asked = {
        (row, column): (retriever, question)
        for row, question in enumerate(questions)
        for column, retriever in enumerate(retrievers)
    }
    async with anyio.create_task_group() as tasks:
        for place, (retriever, question) in asked.items():
            tasks.start_soon(ask, place, retriever, question)
    ordered = [(asked[place][0].name, answers[place]) for place in asked]
    sure = {candidate.item_id for _, one in ordered for candidate in one.candidates}
    return Gathered(
        found=[
            Ranked(retriever=name, candidates=[*one.candidates, *_among(one.seconded, sure)])
            for name, one in ordered
        ],
        weak=[
            Ranked(
                retriever=name, candidates=[*one.weak, *_among(one.seconded, sure, are_in=False)]
            )
            for name, one in ordered
        ],
        degraded=tuple(dict.fromkeys(reason for _, one in ordered for reason in one.degraded)),
    )


def _among(
    candidates: Sequence[Candidate], ids: AbstractSet[str], *, are_in: bool = True
) -> list[Candidate]:
    return [candidate for candidate in candidates if (candidate.item_id in ids) is are_in]


async def _answer(retriever: Retriever, question: Question, bound_s: float) -> RetrieverAnswer:
    try:
        with anyio.fail_after(bound_s):
            return await retriever.find(question, limit=_DEPTH)
    except TimeoutError:
        return RetrieverAnswer(degraded=(_TOO_SLOW[retriever.name],))
    except Exception:  # noqa: BLE001  a retriever that breaks must not take the others along
        _log.exception("recall_retriever_failed", extra={"retriever": retriever.name})
        return RetrieverAnswer(degraded=(_BROKEN[retriever.name],))
