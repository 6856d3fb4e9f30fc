"""A vote judges the words that its voter was shown, and no others that somebody wrote meanwhile."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from memory.cases.case_reader import CaseReader
from memory.cases.results import FeedbackTally
from memory.cases.store import CaseChange
from memory.stores.sqlite.cases import SqliteCaseStore
from tests.support.cases import (
    INCIDENT,
    INCIDENT_ZH,
    CaseWorld,
    Listed,
    caller,
    case_world,
    ticking,
)

NEW = {"root_cause": "another cause altogether", "resolution": "drop the table of prices"}
NEW_ZH = {"root_cause": "完全是另一个原因", "resolution": "清空价格表并重启"}
TOLD = [(INCIDENT, NEW), (INCIDENT_ZH, NEW_ZH)]


async def record_case(world: CaseWorld, told: Any = INCIDENT) -> str:
    return (await world.upsert(caller(), **told)).case.case_id


async def show(world: CaseWorld, case_id: str, *names: str) -> None:
    for name in names:
        await CaseReader(world.store).whole(caller(name), [case_id])


async def revisions(world: CaseWorld, case_id: str) -> list[int]:
    return [vote.content_revision for vote in (await world.store.votes([case_id]))[case_id]]


@pytest.mark.parametrize(("told", "new"), TOLD, ids=["en", "zh"])
async def test_who_saw_only_older_words_vouches_for_no_new_ones(
    tmp_path: Path, told: Any, new: Any
) -> None:
    async with case_world(tmp_path) as world:
        case_id = await record_case(world, told)
        await show(world, case_id, "cnv_2", "cnv_3")
        await world.upsert(caller(), case_id=case_id, **new)
        for name in ("cnv_2", "cnv_3"):
            answer = await world.vote(caller(name), case_id, helpful=True)
            assert (answer.case.lifecycle, answer.case.confidence) == ("draft", 0.8)
            assert answer.feedback == FeedbackTally()
            assert "was rewritten after" in answer.notes[0]
            assert case_id in answer.notes[0]
            assert answer.unreviewed_cases == [case_id], "what it says now nobody judged"
        assert await revisions(world, case_id) == [1, 1]
        await show(world, case_id, "cnv_2", "cnv_3")
        first, second = [
            await world.vote(caller(name), case_id, helpful=True) for name in ("cnv_2", "cnv_3")
        ]
        assert (first.unreviewed_cases, second.unreviewed_cases) == ([], [])
        assert second.case.lifecycle == "accepted"


async def test_who_was_shown_nothing_and_a_person_judge_what_is_there(tmp_path: Path) -> None:
    async with case_world(tmp_path) as world:
        case_id = await record_case(world)
        by_hand = caller(None, by="person")
        await world.upsert(by_hand, case_id=case_id, symptom_summary="as I saw it myself")
        rewritten = await world.upsert(caller(), case_id=case_id, **NEW)
        await world.vote(caller("cnv_9"), case_id, helpful=True)
        told = await world.vote(by_hand, case_id, helpful=True)
        assert told.feedback == FeedbackTally(helpful=2, conversations=1)
        assert told.notes == ("The case was draft and is accepted now.",)
        now = rewritten.case.content_revision
        assert await revisions(world, case_id) == [now, now]


class Outdone(SqliteCaseStore):
    """A store in which somebody rewrites the case just before a vote is written."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.rewrites: list[Callable[[], Coroutine[Any, Any, object]]] = []

    async def apply(self, change: CaseChange) -> None:
        if change.vote is not None and self.rewrites:
            await self.rewrites.pop()()
        await super().apply(change)


async def test_a_vote_that_a_rewriting_outdoes_stays_on_the_words_that_it_was_given_on(
    tmp_path: Path,
) -> None:
    async with case_world(tmp_path) as first:
        store = Outdone(first.database, ticking(), deliver_to=())
        candidates = Listed(first.database, store)
        async with case_world(tmp_path, store=store, candidates=candidates) as world:
            case_id = await record_case(world)
            await world.vote(caller("cnv_2"), case_id, helpful=True)
            store.rewrites.append(lambda: first.upsert(caller(), case_id=case_id, **NEW))
            answer = await world.vote(caller("cnv_3"), case_id, helpful=True)
            assert store.rewrites == []
            assert await revisions(world, case_id) == [1, 1]
            assert answer.feedback == FeedbackTally()
            assert answer.case.lifecycle == "draft"
