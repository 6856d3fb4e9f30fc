"""The book of cases: what was found wrong or unsure does not come back by being told again."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import (
    INCIDENT,
    INCIDENT_ZH,
    OTHER_INCIDENT,
    caller,
    case_world,
    retold,
)


async def test_what_was_found_wrong_does_not_come_back_by_being_told_again(
    tmp_path: Path,
) -> None:
    async with case_world(tmp_path) as world:
        created = (await world.upsert(caller(), **{**INCIDENT, "confidence": 0.5})).case
        for n in range(3):
            await world.vote(caller(f"cnv_v{n}"), created.case_id, helpful=False)
        assert (await world.case(created.case_id)).lifecycle == "rejected"
        again = await world.upsert(caller("cnv_9"), **{**INCIDENT, "confidence": 1})
        assert (again.status, again.case.case_id) == ("merged", created.case_id)
        assert again.case.lifecycle == "rejected"
        assert "found wrong" in again.notes[-1]
        told_more = {**INCIDENT, "metadata": {**INCIDENT["metadata"], "tags": ["once more"]}}
        again = await world.upsert(caller("cnv_10"), **told_more)
        assert (again.status, again.case.case_id) == ("merged", created.case_id)
        rewritten = await world.upsert(
            caller(), case_id=created.case_id, diagnosis="looked at once more"
        )
        assert rewritten.case.lifecycle == "rejected", "an agent does not bring it back"
        by_hand = caller(None, by="person")
        revised = await world.upsert(by_hand, case_id=created.case_id, diagnosis="by hand")
        assert revised.case.lifecycle == "draft"


@pytest.mark.parametrize("incident", [INCIDENT, INCIDENT_ZH], ids=["en", "zh"])
@pytest.mark.parametrize("lifecycle", ["rejected", "stale"])
@pytest.mark.parametrize("left_out", ["region", "root_cause"], ids=["with-a-cause", "without"])
async def test_what_search_hides_does_not_come_back_by_another_number(
    tmp_path: Path, incident: Mapping[str, Any], lifecycle: str, left_out: str
) -> None:
    told = {name: text for name, text in incident.items() if name != left_out}
    confidence = {"rejected": 0.3, "stale": 0.8}[lifecycle]
    async with case_world(tmp_path) as world:
        one = (await world.upsert(caller(), **{**told, "confidence": confidence})).case.case_id
        if lifecycle == "rejected":
            await world.vote(caller("cnv_2"), one, helpful=False)
        elif lifecycle == "stale":
            await world.vote(caller("cnv_2"), one, signal="stale")
        answer = await world.upsert(caller("cnv_3"), **{**retold(told), "confidence": 1})
        assert (answer.status, answer.case.case_id) == ("merged", one)
        assert answer.case.lifecycle == lifecycle
        assert await world.count() == 1
        assert not await world.database.rows("SELECT id FROM items")
        assert "search does not show it" in answer.notes[-1]
        assert one in answer.notes[-1]
        assert lifecycle == "stale" or "found wrong" in answer.notes[-1]


async def test_what_is_hidden_takes_in_neither_another_cause_nor_another_scope(
    tmp_path: Path,
) -> None:
    async with case_world(tmp_path) as world:
        one = (await world.upsert(caller(), **INCIDENT)).case.case_id
        await world.vote(caller("cnv_2"), one, signal="stale")
        other_cause = {**retold(INCIDENT), "root_cause": "the price import opens too few threads"}
        elsewhere = {**INCIDENT, "metadata": {"related_services": ["ledger"]}}
        for who, told in (
            (caller("cnv_3"), other_cause),
            (caller("cnv_4", environment="staging"), retold(INCIDENT)),
            (caller("cnv_5", app=None), retold(INCIDENT)),
            (caller("cnv_6", owner="bob"), retold(INCIDENT)),
            (caller("cnv_7"), {**retold(INCIDENT), "metadata": elsewhere["metadata"]}),
        ):
            answer = await world.upsert(who, **told)
            assert answer.status == "created", told
            assert one not in {known.case_id for known in answer.similar_cases}
        assert (await world.case(one)).reports == 0


async def test_of_the_same_told_twice_the_one_that_can_be_found_takes_it(tmp_path: Path) -> None:
    async with case_world(tmp_path) as world:
        hidden = (await world.upsert(caller(), **INCIDENT)).case.case_id
        shown = (await world.upsert(caller("cnv_2"), **OTHER_INCIDENT)).case.case_id
        await world.upsert(caller("cnv_2"), **retold(INCIDENT), case_id=shown)
        await world.vote(caller("cnv_3"), hidden, signal="stale")
        told = {**INCIDENT, "symptom_summary": f"{INCIDENT['symptom_summary']} (11:11)"}
        answer = await world.upsert(caller("cnv_4"), **told)
        assert (answer.status, answer.case.case_id) == ("merged", shown)
