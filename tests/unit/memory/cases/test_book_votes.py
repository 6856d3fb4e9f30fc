"""Votes on cases: what counts, on which words, and what one voice alone cannot do."""

from functools import partial
from typing import Any

import anyio
import pytest

from memory.cases.case import Case
from memory.cases.case_reader import CaseReader
from memory.cases.results import FeedbackTally
from tests.support.cases import (
    INCIDENT,
    INCIDENT_ZH,
    CaseWorld,
    caller,
)


async def record_case(world: CaseWorld, **fields: Any) -> Case:
    return (await world.upsert(caller(), **{**INCIDENT, **fields})).case


async def test_two_other_conversations_make_a_draft_accepted_and_history_names_all_three(
    world: CaseWorld,
) -> None:
    case_id = (await record_case(world)).case_id
    first = await world.vote(caller("cnv_2", environment="staging"), case_id, helpful=True)
    assert (first.case.lifecycle, first.case.confidence) == ("draft", 0.9)
    second = await world.vote(caller("cnv_3"), case_id, helpful=True)
    assert (second.case.lifecycle, second.case.confidence) == ("accepted", 1.0)
    assert second.case == await world.case(case_id)
    assert second.feedback == FeedbackTally(helpful=2, unhelpful=0, conversations=2)
    told = await world.store.history(case_id, limit=9)
    assert [(text.event, text.conversation_id) for text in told] == [
        ("created", "cnv_1"),
        ("feedback", "cnv_2"),
        ("feedback", "cnv_3"),
        ("lifecycle", "cnv_3"),
    ]
    assert told[-1].details == {"from": "draft", "to": "accepted"}
    assert told[1].details == {
        "helpful": True,
        "signal": None,
        "app_code": "shop",
        "environment": "staging",
        "confidence": {"from": 0.8, "to": 0.9},
    }
    assert [text.at for text in told] == sorted(text.at for text in told)


async def test_what_is_not_judged_is_asked_of_the_conversation_that_was_shown_it(
    world: CaseWorld,
) -> None:
    """The original asks the conversation that wrote the case."""
    one = await record_case(world)
    other = (await world.upsert(caller("cnv_0"), **INCIDENT_ZH)).case
    await world.store.note_shown("cnv_2", [one.case_id, other.case_id])
    asked = await world.vote(caller("cnv_2"), one.case_id, helpful=True)
    assert asked.unreviewed_cases == [other.case_id]
    mine = await world.upsert(caller("cnv_2"), **{**INCIDENT, "root_cause": "a bad disk"})
    await world.store.note_shown("cnv_2", [mine.case.case_id])
    again = await world.vote(caller("cnv_2"), one.case_id, helpful=True)
    assert again.unreviewed_cases == [other.case_id], "its own is not for it to judge"
    author = await world.vote(caller("cnv_1"), one.case_id, signal="high_risk")
    assert author.unreviewed_cases == []
    done = await world.vote(caller("cnv_2"), other.case_id, signal="conflict")
    assert done.unreviewed_cases == []


async def test_a_branch_votes_as_its_root_and_has_nothing_of_its_own_to_judge(
    world: CaseWorld,
) -> None:
    one = await record_case(world)
    branch, twig = caller("cnv_5", root_id="cnv_1"), caller("cnv_6", root_id="cnv_1")
    for voter in (caller("cnv_1"), branch, twig):
        told = await world.vote(voter, one.case_id, helpful=True)
        assert (told.feedback.helpful, told.feedback.conversations) == (1, 0)
    other = (await world.upsert(caller("cnv_0"), **INCIDENT_ZH)).case
    await CaseReader(world.store).whole(branch, [one.case_id, other.case_id])
    asked = await world.vote(twig, one.case_id, helpful=True, signal="high_risk")
    assert asked.unreviewed_cases == [other.case_id]
    judged = await world.vote(caller("cnv_1"), other.case_id, helpful=True)
    assert judged.unreviewed_cases == []
    told = await world.vote(caller("cnv_7"), one.case_id, helpful=True)
    assert (told.feedback.helpful, told.case.lifecycle) == (2, "accepted")


@pytest.mark.parametrize("signal", ["stale", "rollback"])
async def test_what_is_stale_or_rejected_leaves_search_and_can_still_be_judged(
    world: CaseWorld, signal: str
) -> None:
    case_id = (await record_case(world, confidence=0.55 if signal == "stale" else 0.25)).case_id
    after = await world.vote(caller("cnv_2"), case_id, signal=signal)
    assert after.case.lifecycle == ("stale" if signal == "stale" else "rejected")
    assert not await world.database.rows("SELECT id FROM items")
    assert (await world.vote(caller("cnv_3"), case_id, helpful=True)).code == "OK"
    assert not await world.database.rows("SELECT id FROM items")


async def test_many_votes_at_once_are_all_counted(world: CaseWorld) -> None:
    case_id = (await record_case(world)).case_id
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for n in range(30):
                vote = partial(world.vote, caller(f"cnv_v{n}"), case_id, helpful=True)
                group.start_soon(vote)
    one = await world.case(case_id)
    assert len((await world.store.votes([case_id]))[case_id]) == 30
    assert (one.revision, one.lifecycle, one.confidence) == (31, "accepted", 1.0)


async def test_who_speaks_for_a_case_and_against_it_counts_against_it(world: CaseWorld) -> None:
    case_id = (await record_case(world, confidence=0.9)).case_id
    answer = await world.vote(caller("cnv_2"), case_id, helpful=True, signal="rollback")
    assert answer.case.confidence < 0.9


NEW = {"root_cause": "another cause altogether", "resolution": "drop the table of prices"}


async def revisions(world: CaseWorld, case_id: str) -> list[int]:
    return [vote.content_revision for vote in (await world.store.votes([case_id]))[case_id]]


async def test_a_vote_judges_what_the_case_says_now(world: CaseWorld) -> None:
    case_id = (await record_case(world)).case_id
    by_hand = caller(None, by="person")
    await world.upsert(by_hand, case_id=case_id, symptom_summary="as I saw it myself")
    rewritten = await world.upsert(caller(), case_id=case_id, **NEW)
    await world.vote(caller("cnv_9"), case_id, helpful=True)
    told = await world.vote(by_hand, case_id, helpful=True)
    assert told.feedback == FeedbackTally(helpful=2, conversations=1)
    now = rewritten.case.content_revision
    assert await revisions(world, case_id) == [now, now]


async def test_who_rewrites_a_sign_of_a_case_cannot_do_away_with_it(world: CaseWorld) -> None:
    one = await record_case(world, confidence=0.9)
    evil = caller("cnv_evil")
    sign = f"{INCIDENT['symptom_summary']}."
    rewritten = await world.upsert(evil, case_id=one.case_id, symptom_summary=sign)
    now = rewritten.case
    assert (now.lifecycle, now.authors) == ("draft", ("cnv_1", "cnv_evil"))
    judged = await world.vote(evil, one.case_id, helpful=False, signal="rollback")
    assert judged.case.lifecycle == "draft"
