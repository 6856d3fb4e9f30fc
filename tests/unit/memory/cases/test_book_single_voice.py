"""One conversation alone neither does away with a case nor keeps others from telling what they found."""

from pathlib import Path
from typing import Any

import pytest

from memory.cases.case import Case
from memory.cases.results import CaseRefused
from tests.support.cases import (
    INCIDENT,
    OTHER_INCIDENT,
    CaseWorld,
    caller,
    case_world,
)


async def record_case(world: CaseWorld, **fields: Any) -> Case:
    return (await world.upsert(caller(), **{**INCIDENT, **fields})).case


def retold(n: int = 7, **fields: Any) -> dict[str, Any]:
    return {**INCIDENT, "symptom_summary": f"{INCIDENT['symptom_summary']} (10:{n:02d})", **fields}


async def test_who_rewrites_a_sign_of_a_case_cannot_do_away_with_it(tmp_path: Path) -> None:
    async with case_world(tmp_path) as world:
        one = await record_case(world, confidence=0.9)
        sure = (await world.case(one.case_id)).confidence
        evil = caller("cnv_evil")
        sign = f"{INCIDENT['symptom_summary']}."
        rewritten = await world.upsert(evil, case_id=one.case_id, symptom_summary=sign)
        assert (rewritten.case.lifecycle, rewritten.case.authors) == (
            "draft",
            ("cnv_1", "cnv_evil"),
        )
        stated = await world.upsert(evil, case_id=one.case_id, confidence=0.0)
        assert (stated.status, stated.stripped) == ("unchanged", ("confidence",))
        assert "first" in stated.notes[0]
        assert (await world.case(one.case_id)).confidence == sure
        judged = await world.vote(evil, one.case_id, helpful=False, signal="rollback")
        assert judged.case.lifecycle == "draft"


@pytest.mark.parametrize("how", ["judged by its author", "unsure"])
async def test_nobody_plants_a_case_that_swallows_what_others_find(
    tmp_path: Path, how: str
) -> None:
    """What an author himself thinks little of is no verdict."""
    judged = how != "unsure"
    async with case_world(tmp_path) as world:
        planted = await record_case(world, confidence=0.3 if judged else 0.0)
        if judged:
            own = await world.vote(caller(), planted.case_id, helpful=False)
            assert own.case.lifecycle == "draft"
        honest = await world.upsert(caller("cnv_2"), **retold(confidence=0.95))
        assert (honest.status, honest.case.case_id) == ("merged", planted.case_id)
        assert (honest.case.stated_confidence, honest.case.is_findable) == (0.95, True)
        assert honest.case.confidence == (0.75 if judged else 0.95)
        assert honest.case == await world.case(planted.case_id)
        assert len(honest.notes) == 1
        assert len(await world.database.rows("SELECT id FROM items")) == 1
        entry = (await world.store.history(planted.case_id, limit=99))[-1]
        assert entry.details["confidence"] == {
            "from": 0.1 if judged else 0.0,
            "to": honest.case.confidence,
        }
        surer = await world.upsert(caller("cnv_3"), **retold(8, confidence=1.0))
        assert surer.case.stated_confidence == 0.95, "what is found is not stated anew"


async def test_an_author_who_is_surer_now_says_so_by_telling_it_again(tmp_path: Path) -> None:
    async with case_world(tmp_path) as world:
        one = await record_case(world, confidence=0.4)
        assert one.review_reasons == ()
        lower = await world.upsert(caller(), **{**INCIDENT, "confidence": 0.2})
        assert (lower.status, lower.case) == ("unchanged", one)
        again = await world.upsert(caller(), **{**INCIDENT, "confidence": 0.7})
        assert (again.status, again.case.confidence, again.case.reports) == ("updated", 0.7, 0)
        assert again.case.is_findable


async def test_what_others_judged_useless_stays_hidden_however_surely_it_is_told(
    tmp_path: Path,
) -> None:
    async with case_world(tmp_path) as world:
        one = await record_case(world, confidence=0.6)
        against = await world.vote(caller("cnv_2"), one.case_id, helpful=False)
        assert (against.case.lifecycle, against.case.confidence) == ("draft", 0.4)
        again = await world.upsert(caller("cnv_3"), **retold(confidence=1.0))
        assert (again.status, again.case.confidence) == ("merged", 0.4)
        assert "found it not helpful" in again.notes[1]
        assert "search does not show it" in again.notes[2]
        assert not await world.database.rows("SELECT id FROM items")


@pytest.mark.parametrize("lifecycle", ["rejected", "stale"])
@pytest.mark.parametrize("told", [INCIDENT, retold()], ids=["exactly", "alike"])
async def test_what_was_found_wrong_does_not_come_back_by_rewriting_another_case(
    tmp_path: Path, lifecycle: str, told: dict[str, Any]
) -> None:
    async with case_world(tmp_path) as world:
        wrong = await record_case(world, confidence=0.3 if lifecycle == "rejected" else 0.8)
        vote: dict[str, Any] = (
            {"helpful": False} if lifecycle == "rejected" else {"signal": "stale"}
        )
        assert (
            await world.vote(caller("cnv_2"), wrong.case_id, **vote)
        ).case.lifecycle == lifecycle
        own = (await world.upsert(caller("cnv_3"), **OTHER_INCIDENT)).case
        with pytest.raises(CaseRefused) as caught:
            await world.upsert(caller("cnv_3"), **{**told, "case_id": own.case_id})
        assert caught.value.code == "INVALID_CASE"
        assert wrong.case_id in str(caught.value)
        assert str(caught.value).count(". ") == 0
        assert await world.case(own.case_id) == own
        surer = await world.upsert(caller("cnv_3"), case_id=own.case_id, confidence=0.9)
        assert surer.status == "updated"


async def test_what_is_known_of_the_surroundings_gives_way_to_an_author_or_a_person_alone(
    tmp_path: Path,
) -> None:
    async with case_world(tmp_path) as world:
        one = await record_case(world)
        sent = {"failure_layer": "k8s", "runtime": "java", "tags": ["x"], "related_services": []}
        answer = await world.upsert(caller("cnv_2"), case_id=one.case_id, metadata=sent)
        known = answer.case.content.metadata
        assert (known.failure_layer, known.runtime, known.tags) == ("db", "java", ("pool", "x"))
        assert answer.stripped == ("metadata.failure_layer",)
        assert "metadata" in answer.notes[0]
        only = await world.upsert(
            caller("cnv_3"), case_id=one.case_id, metadata={"failure_layer": "os"}
        )
        assert (only.status, only.stripped) == ("unchanged", ("metadata.failure_layer",))
        same = await world.upsert(
            caller("cnv_3"), case_id=one.case_id, metadata={"failure_layer": "db"}
        )
        assert (same.status, same.stripped) == ("unchanged", ())
        for who, layer in ((caller(), "os"), (caller(None, by="person"), "jvm")):
            changed = await world.upsert(
                who, case_id=one.case_id, metadata={"failure_layer": layer}
            )
            assert changed.case.content.metadata.failure_layer == layer
            assert changed.stripped == ()
