"""The book of cases: what is known of the surroundings later relates cases anew, and one cause comes before likeness."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memory.cases.case_reader import CaseReader
from memory.cases.results import MAX_TOLD_RELATED
from tests.support.cases import INCIDENT, INCIDENT_ZH, caller, case_world, retold


@pytest.mark.parametrize("incident", [INCIDENT, INCIDENT_ZH], ids=["en", "zh"])
async def test_surroundings_that_a_merged_report_adds_part_what_was_taken_for_one(
    tmp_path: Path, incident: Mapping[str, Any]
) -> None:
    bare = {**incident, "metadata": {}}
    async with case_world(tmp_path) as world:
        one = (await world.upsert(caller(), **bare)).case.case_id
        staging = caller("cnv_2", environment="staging")
        other = await world.upsert(staging, **{**incident, "metadata": {"failure_layer": "db"}})
        assert [known.relation for known in other.similar_cases] == ["same_root_cause"]
        more = {**retold(bare), "metadata": {"failure_layer": "network"}}
        merged = await world.upsert(caller("cnv_3"), **more)
        assert (merged.status, merged.case.content.metadata.failure_layer) == ("merged", "network")
        assert [known.relation for known in merged.similar_cases] == ["surface_similar"]
        ends = await world.store.related([one, other.case.case_id])
        assert [known.relation for relations in ends.values() for known in relations] == [
            "surface_similar"
        ] * 2


async def test_no_number_of_look_alikes_stands_before_one_cause(tmp_path: Path) -> None:
    def told(layer: str, **fields: Any) -> dict[str, Any]:
        return {**INCIDENT, "metadata": {"failure_layer": layer}, **fields}

    async with case_world(tmp_path) as world:
        one = (await world.upsert(caller(), **told("db"))).case.case_id
        freely = "503 from checkout since the last deploy"
        true = await world.upsert(
            caller("cnv_2", environment="staging"), **told("db", symptom_summary=freely)
        )
        assert true.similar_cases[0].relation == "same_root_cause"
        for n in range(MAX_TOLD_RELATED + 2):
            await world.upsert(caller(f"cnv_c{n}", environment=f"e{n}"), **told("network"))
        updated = await world.upsert(caller(), case_id=one, metadata={"region": "eu"})
        ((whole,), _) = await CaseReader(world.store).whole(caller("cnv_9"), [one])
        for named in (updated.similar_cases, whole.similar_cases):
            assert len(named) == MAX_TOLD_RELATED
            assert named[0].case_id == true.case.case_id
            scores = [known.score for known in named]
            assert scores[0] < scores[1], "mere likeness scores higher, and comes after"
