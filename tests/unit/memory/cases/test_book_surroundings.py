"""One incident's words told of several places: who is merged with whom, whatever the order."""

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import INCIDENT, INCIDENT_ZH, CaseWorld, caller, case_world

BOTH = pytest.mark.parametrize("told", [INCIDENT, INCIDENT_ZH], ids=["en", "zh"])


async def tell(world: CaseWorld, told: Any, name: str, services: list[str], sign: str = "") -> str:
    """Tell it as a conversation of its own, of these services; gives the id of the case it went into."""
    symptom = f"{told['symptom_summary']}{sign}"
    case = {**told, "symptom_summary": symptom, "metadata": {"related_services": services}}
    return (await world.upsert(caller(name), **case)).case.case_id


@BOTH
async def test_told_exactly_so_at_a_place_that_a_report_contradicts_it_is_a_case_of_its_own(
    tmp_path: Path, told: Any
) -> None:
    async with case_world(tmp_path) as world:
        first = await tell(world, told, "cnv_1", [])
        assert await tell(world, told, "cnv_2", ["a-svc"], " (10:01)") == first
        assert await tell(world, told, "cnv_3", ["a-svc", "b-svc"], " (10:02)") == first
        elsewhere = await tell(world, told, "cnv_4", ["b-svc"])
        assert elsewhere != first
        assert await tell(world, told, "cnv_5", ["b-svc"]) == elsewhere, "where it fits, it merges"
        assert await tell(world, told, "cnv_6", ["a-svc"]) == first
        assert await world.count() == 2


@BOTH
@pytest.mark.parametrize("exactly", [True, False], ids=["exactly", "alike"])
@pytest.mark.parametrize("order", list(permutations((["a-svc"], ["a-svc", "b-svc"], ["b-svc"]))))
async def test_two_places_with_nothing_in_common_are_never_in_one_case(
    tmp_path: Path, told: Any, order: tuple[list[str], ...], *, exactly: bool
) -> None:
    """The third one fits both; it goes with the first of them, whichever that is."""
    async with case_world(tmp_path) as world:
        went = [
            await tell(world, told, f"cnv_{n}", services, "" if exactly else f" (10:0{n})")
            for n, services in enumerate(order)
        ]
        of = {"+".join(services): case_id for services, case_id in zip(order, went, strict=True)}
        assert of["a-svc"] != of["b-svc"]
        assert of["a-svc+b-svc"] in {of["a-svc"], of["b-svc"]}
