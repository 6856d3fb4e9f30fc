"""What others found right: who may change it, and what their votes are worth once it says something else."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memory.cases.case import Case
from memory.cases.input import MAX_NAMES
from memory.cases.item import MAX_SEARCHED_REPORTS
from memory.cases.results import FeedbackTally
from tests.support.cases import INCIDENT, INCIDENT_ZH, CaseWorld, caller, case_world, retold

WRONG = {
    "root_cause": "a stray lock file",
    "diagnosis": "looked once",
    "resolution": "remove the data directory of the database",
}
WRONG_ZH = {"root_cause": "残留的锁文件", "diagnosis": "看了一眼", "resolution": "删除数据库目录"}
PERSON = caller(None, by="person")


async def helped(world: CaseWorld, count: int, incident: Mapping[str, Any] = INCIDENT) -> Case:
    """Record a case of the conversation `cnv_1` that so many others found helpful."""
    case_id = (await world.upsert(caller(), **incident)).case.case_id
    for n in range(count):
        await world.vote(caller(f"cnv_h{n}"), case_id, helpful=True)
    return await world.case(case_id)


@pytest.mark.parametrize(
    ("incident", "wrong"), [(INCIDENT, WRONG), (INCIDENT_ZH, WRONG_ZH)], ids=["en", "zh"]
)
@pytest.mark.parametrize("lifecycle", ["accepted", "draft"])
async def test_one_conversation_puts_no_words_of_its_own_in_place_of_what_others_found_right(
    tmp_path: Path, incident: Mapping[str, Any], wrong: Mapping[str, Any], lifecycle: str
) -> None:
    """Ten voices must not vouch for what one says; and a rewriting would do away with what they confirmed."""
    confidence = 0.8 if lifecycle == "accepted" else 0.5
    async with case_world(tmp_path) as world:
        one = await helped(world, 2, {**incident, "confidence": confidence})
        assert one.lifecycle == lifecycle
        sent = {**wrong, "confidence": 1.0, "metadata": {"runtime": "php", "tags": ["x"]}}
        answer = await world.upsert(caller("cnv_evil"), case_id=one.case_id, **sent)
        assert (answer.status, answer.case) == ("unchanged", one)
        assert answer.stripped == (
            "confidence",
            *("diagnosis", "resolution", "root_cause"),
            *("metadata.runtime", "metadata.tags"),
        )
        assert "found this case right" in answer.notes[1]
        assert await world.case(one.case_id) == one
        nothing = await world.upsert(
            caller("cnv_evil"), case_id=one.case_id, resolution=incident["resolution"]
        )
        assert (nothing.stripped, len(nothing.notes)) == ((), 1), "what it says already stays"


@pytest.mark.parametrize("who", [caller(), PERSON], ids=["author", "person"])
async def test_what_is_corrected_is_confirmed_anew_and_no_old_vote_vouches_for_it(
    tmp_path: Path, who: Any
) -> None:
    async with case_world(tmp_path) as world:
        one = (await helped(world, 10)).case_id
        assert (await world.case(one)).lifecycle == "accepted"
        after = await world.upsert(who, case_id=one, **WRONG)
        assert (after.status, after.case.lifecycle, after.case.confidence) == (
            "updated",
            "draft",
            0.8,
        )
        first = await world.vote(caller("cnv_friend"), one, helpful=True)
        assert first.case.lifecycle == "draft", "one conversation beside the author's old friends"
        assert first.feedback == FeedbackTally(helpful=1, conversations=1)
        second = await world.vote(caller("cnv_h1"), one, helpful=True)
        assert (second.case.lifecycle, second.feedback.helpful) == ("accepted", 2)


async def test_what_a_person_rewrote_is_found_and_not_kept_down_by_votes_on_the_old_words(
    tmp_path: Path,
) -> None:
    async with case_world(tmp_path) as world:
        one = (await world.upsert(caller(), **{**INCIDENT, "confidence": 0.7})).case.case_id
        for n in range(3):
            await world.vote(caller(f"cnv_u{n}"), one, helpful=False)
        assert (await world.case(one)).lifecycle == "rejected"
        right = {**INCIDENT_ZH, "confidence": 0.9}
        by_hand = await world.upsert(PERSON, case_id=one, **right)
        assert (by_hand.case.lifecycle, by_hand.case.confidence) == ("draft", 0.9)
        assert by_hand.notes == ()
        assert [row["id"] for row in await world.database.rows("SELECT id FROM items")] == [one]
        again = await world.upsert(caller("cnv_7"), **retold(right))
        assert (again.status, again.case.case_id, again.case.is_findable) == ("merged", one, True)
        assert "not helpful" not in " ".join(again.notes)
        against = await world.vote(caller("cnv_8"), one, helpful=False)
        assert (against.case.lifecycle, against.case.confidence) == ("draft", 0.7)
        assert against.feedback == FeedbackTally(unhelpful=1)


async def test_strangers_fill_no_lists_of_an_accepted_case_and_move_it_nowhere(
    tmp_path: Path,
) -> None:
    bare = {**INCIDENT, "metadata": {"tags": ["pool"]}}
    known = {"failure_layer": "network", "related_services": ["nowhere"], "tags": ["kafka lag"]}
    async with case_world(tmp_path) as world:
        one = await helped(world, 2, bare)
        merged = await world.upsert(caller("cnv_9"), **{**retold(bare), "metadata": known})
        assert (merged.status, merged.case.content) == ("merged", one.content)
        (report,) = await world.store.reports(one.case_id, limit=MAX_SEARCHED_REPORTS)
        assert report.content.metadata.failure_layer == "network", "kept as it was told"
        twice = await world.upsert(caller("cnv_9"), **{**retold(bare), "metadata": known})
        assert (twice.status, twice.case.reports) == ("unchanged", 1)
        own = await world.upsert(caller(), case_id=one.case_id, metadata=known)
        assert own.case.content.metadata.failure_layer == "network"
        assert own.case.content.metadata.tags == ("pool", "kafka lag")


async def test_a_list_that_a_person_sends_takes_the_place_of_what_stood_there(
    tmp_path: Path,
) -> None:
    async with case_world(tmp_path) as world:
        one = (await world.upsert(caller(), **INCIDENT_ZH)).case.case_id
        junk = {
            "tags": [f"junk {n}" for n in range(MAX_NAMES)],
            "related_services": [f"s{n}" for n in range(MAX_NAMES)],
        }
        full = await world.upsert(caller("cnv_2"), case_id=one, metadata=junk)
        assert len(full.case.content.metadata.tags) == MAX_NAMES
        (told,) = full.notes
        assert told.startswith(
            "No room was left in `metadata.related_services`, `metadata.tags` for all"
        )
        more = await world.upsert(caller(), case_id=one, metadata={"tags": ["对的"]})
        (told,) = more.notes
        assert (more.status, "`metadata.tags`" in told, "a person" in told) == (
            "unchanged",
            True,
            True,
        )
        right = await world.upsert(PERSON, case_id=one, metadata={"tags": ["对的"]})
        assert right.case.content.metadata.tags == ("对的",)
        assert len(right.case.content.metadata.related_services) == MAX_NAMES, "it was not sent"
        assert right.notes == ()
        nothing = await world.upsert(PERSON, case_id=one, metadata={"tags": []})
        assert (nothing.status, nothing.case) == ("unchanged", right.case)
