"""Asks all arms side by side, each for each query, none longer than it may take."""

import logging
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

import anyio

from memory.recall.arms import Arm, ArmAnswer, ArmName, Candidate, Question
from memory.recall.fuse import Ranked
from memory.recall.query import Degradation

_log = logging.getLogger(__name__)

_DEPTH: Final = 60
"""Items that each arm is asked for: as deep as fusion was measured to gain from."""
_TOO_SLOW: Final[dict[ArmName, Degradation]] = {
    "fulltext": "fulltext_timeout",
    "vector": "vector_timeout",
    "memu": "memu_timeout",
}
_BROKEN: Final[dict[ArmName, Degradation]] = {
    "fulltext": "fulltext_error",
    "vector": "vector_error",
    "memu": "memu_error",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What the arms found, in the order of the queries and the arms."""

    found: Sequence[Ranked] = ()
    weak: Sequence[Ranked] = ()
    degraded: tuple[Degradation, ...] = ()
    """Each reason once."""


async def gather(arms: Sequence[Arm], questions: Sequence[Question], *, bound_s: float) -> Gathered:
    """Ask; an arm that is slow or broken is left out and named, and the others' answers stand."""
    answers: dict[tuple[int, int], ArmAnswer] = {}

    async def ask(place: tuple[int, int], arm: Arm, question: Question) -> None:
        answers[place] = await _answer(arm, question, bound_s)

    asked = {
        (row, column): (arm, question)
        for row, question in enumerate(questions)
        for column, arm in enumerate(arms)
    }
    async with anyio.create_task_group() as tasks:
        for place, (arm, question) in asked.items():
            tasks.start_soon(ask, place, arm, question)
    ordered = [(asked[place][0].name, answers[place]) for place in asked]
    sure = {each.item_id for _, one in ordered for each in one.candidates}
    return Gathered(
        found=[
            Ranked(arm=name, candidates=[*one.candidates, *_among(one.seconded, sure)])
            for name, one in ordered
        ],
        weak=[
            Ranked(arm=name, candidates=[*one.weak, *_among(one.seconded, sure, are_in=False)])
            for name, one in ordered
        ],
        degraded=tuple(dict.fromkeys(reason for _, one in ordered for reason in one.degraded)),
    )


def _among(
    candidates: Sequence[Candidate], ids: AbstractSet[str], *, are_in: bool = True
) -> list[Candidate]:
    return [one for one in candidates if (one.item_id in ids) is are_in]


async def _answer(arm: Arm, question: Question, bound_s: float) -> ArmAnswer:
    try:
        with anyio.fail_after(bound_s):
            return await arm.find(question, limit=_DEPTH)
    except TimeoutError:
        return ArmAnswer(degraded=(_TOO_SLOW[arm.name],))
    except Exception:  # noqa: BLE001  an arm that breaks must not take the others along
        _log.exception("recall_arm_broke", extra={"arm": arm.name})
        return ArmAnswer(degraded=(_BROKEN[arm.name],))
