"""The book of cases: what is known of the surroundings later relates cases anew, and one cause comes before likeness."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.cases import INCIDENT, INCIDENT_ZH, CaseWorld, caller, retold


@pytest.mark.parametrize("incident", [INCIDENT, INCIDENT_ZH], ids=["en", "zh"])
async def test_surroundings_that_a_merged_report_adds_part_what_was_taken_for_one(
    world: CaseWorld, incident: Mapping[str, Any]
) -> None:
    bare = {**incident, "metadata": {}}
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
