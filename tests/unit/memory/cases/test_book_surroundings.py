"""One incident's words told of several places: who is merged with whom, whatever the order."""

from typing import Any

import pytest

from tests.support.cases import INCIDENT, INCIDENT_ZH, CaseWorld, caller

BOTH = pytest.mark.parametrize("told", [INCIDENT, INCIDENT_ZH], ids=["en", "zh"])


async def tell(world: CaseWorld, told: Any, name: str, services: list[str], sign: str = "") -> str:
    """Report it from a conversation of its own; return the id of its case."""
    symptom = f"{told['symptom_summary']}{sign}"
    case = {**told, "symptom_summary": symptom, "metadata": {"related_services": services}}
    return (await world.upsert(caller(name), **case)).case.case_id


@BOTH
async def test_told_exactly_so_at_a_place_that_a_report_contradicts_it_is_a_case_of_its_own(
    world: CaseWorld, told: Any
) -> None:
    first = await tell(world, told, "cnv_1", [])
    assert await tell(world, told, "cnv_2", ["a-svc"], " (10:01)") == first
    assert await tell(world, told, "cnv_3", ["a-svc", "b-svc"], " (10:02)") == first
    elsewhere = await tell(world, told, "cnv_4", ["b-svc"])
    assert elsewhere != first
    assert await tell(world, told, "cnv_5", ["b-svc"]) == elsewhere, "where it fits, it merges"
    assert await tell(world, told, "cnv_6", ["a-svc"]) == first
    assert await world.count() == 2
