"""Votes in the book: one a conversation, under the voter's scope, and no way to promote oneself."""

from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from memory.cases.case import Case
from memory.cases.case_reader import CaseReader
from memory.cases.results import FeedbackTally
from tests.support.cases import INCIDENT, INCIDENT_ZH, CaseWorld, caller, case_world


async def record_case(world: CaseWorld, **fields: Any) -> Case:
    return (await world.upsert(caller(), **{**INCIDENT, **fields})).case


async def lifecycle(world: CaseWorld, case_id: str) -> str:
    return (await world.case(case_id)).lifecycle


async def test_two_other_conversations_make_a_draft_accepted_and_history_names_all_three(
    tmp_path: Path,
) -> None:
    async with case_world(tmp_path) as world:
        case_id = (await record_case(world)).case_id
        first = await world.vote(caller("cnv_2", environment="staging"), case_id, helpful=True)
        assert (first.case.lifecycle, first.case.confidence) == ("draft", 0.9)
        second = await world.vote(caller("cnv_3"), case_id, helpful=True)
        assert (second.case.lifecycle, second.case.confidence) == ("accepted", 1.0)
        assert second.case == await world.case(case_id)
        assert second.feedback == FeedbackTally(helpful=2, unhelpful=0, conversations=2)
        assert "is accepted now" in second.notes[0]
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
    tmp_path: Path,
) -> None:
    """The original asks the conversation that wrote the case."""
    async with case_world(tmp_path) as world:
        one = await record_case(world)
        other = (await world.upsert(caller("cnv_0"), **INCIDENT_ZH)).case
        await world.store.note_shown("cnv_2", dict.fromkeys([one.case_id, other.case_id], 1))
        asked = await world.vote(caller("cnv_2"), one.case_id, helpful=True)
        assert asked.unreviewed_cases == [other.case_id]
        mine = await world.upsert(caller("cnv_2"), **{**INCIDENT, "root_cause": "a bad disk"})
        await world.store.note_shown("cnv_2", dict.fromkeys([mine.case.case_id], 1))
        again = await world.vote(caller("cnv_2"), one.case_id, helpful=True)
        assert again.unreviewed_cases == [other.case_id], "its own is not for it to judge"
        author = await world.vote(caller("cnv_1"), one.case_id, signal="high_risk")
        assert author.unreviewed_cases == []
        done = await world.vote(caller("cnv_2"), other.case_id, signal="conflict")
        assert done.unreviewed_cases == []


async def test_a_branch_votes_as_its_root_and_has_nothing_of_its_own_to_judge(
    tmp_path: Path,
) -> None:
    async with case_world(tmp_path) as world:
        one = await record_case(world)
        branch, twig = caller("cnv_5", root_id="cnv_1"), caller("cnv_6", root_id="cnv_1")
        for voter in (caller("cnv_1"), branch, twig):
            told = await world.vote(voter, one.case_id, helpful=True)
            assert (told.feedback.helpful, told.feedback.conversations) == (1, 0)
        other = (await world.upsert(caller("cnv_0"), **INCIDENT_ZH)).case
        await CaseReader(world.store).whole(branch, [one.case_id, other.case_id])
        asked = await world.vote(twig, one.case_id, signal="high_risk")
        assert asked.unreviewed_cases == [other.case_id]
        judged = await world.vote(caller("cnv_1"), other.case_id, helpful=True)
        assert judged.unreviewed_cases == []
        told = await world.vote(caller("cnv_7"), one.case_id, helpful=True)
        assert (told.feedback.helpful, told.case.lifecycle) == (2, "accepted")


@pytest.mark.parametrize("stated", [0.0, 1.0])
async def test_the_confidence_of_anothers_case_is_not_stated_but_judged(
    tmp_path: Path, stated: float
) -> None:
    async with case_world(tmp_path) as world:
        one = await record_case(world)
        answer = await world.upsert(caller("cnv_2"), case_id=one.case_id, confidence=stated)
        assert (answer.status, answer.case, answer.stripped) == ("unchanged", one, ("confidence",))
        assert "left out" in answer.notes[0]
        changed = await world.upsert(
            caller("cnv_2"), case_id=one.case_id, confidence=stated, diagnosis="once more"
        )
        assert (changed.status, changed.stripped) == ("updated", ("confidence",))
        assert (changed.case.stated_confidence, changed.case.confidence) == (0.8, 0.8)
        person = caller(None, by="person")
        by_hand = await world.upsert(person, case_id=one.case_id, confidence=stated)
        assert (by_hand.stripped, by_hand.case.confidence) == ((), stated)


@pytest.mark.parametrize("signal", ["stale", "rollback"])
async def test_what_is_stale_or_rejected_leaves_search_and_can_still_be_judged(
    tmp_path: Path, signal: str
) -> None:
    async with case_world(tmp_path) as world:
        case_id = (await record_case(world, confidence=0.55 if signal == "stale" else 0.25)).case_id
        after = await world.vote(caller("cnv_2"), case_id, signal=signal)
        assert after.case.lifecycle == ("stale" if signal == "stale" else "rejected")
        assert not await world.database.rows("SELECT id FROM items")
        assert "search does not show it" in after.notes[-1]
        assert (await world.vote(caller("cnv_3"), case_id, helpful=True)).code == "OK"
        assert not await world.database.rows("SELECT id FROM items")


async def test_many_votes_at_once_are_all_counted(tmp_path: Path) -> None:
    async with case_world(tmp_path) as world:
        case_id = (await record_case(world)).case_id
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                for n in range(30):
                    vote = partial(world.vote, caller(f"cnv_v{n}"), case_id, helpful=True)
                    group.start_soon(vote)
        one = await world.case(case_id)
        assert len((await world.store.votes([case_id]))[case_id]) == 30
        assert (one.revision, one.lifecycle, one.confidence) == (31, "accepted", 1.0)


async def test_who_speaks_for_a_case_and_against_it_is_told_what_counts(tmp_path: Path) -> None:
    async with case_world(tmp_path) as world:
        case_id = (await record_case(world, confidence=0.9)).case_id
        answer = await world.vote(caller("cnv_2"), case_id, helpful=True, signal="rollback")
        assert answer.notes[0] == (
            "helpful=true and signal=rollback contradict each other;"
            " what speaks against the case counts."
        )
        assert answer.case.confidence < 0.9
        plain = await world.vote(caller("cnv_3"), case_id, helpful=True, signal="high_risk")
        assert not any("contradict" in note for note in plain.notes)
