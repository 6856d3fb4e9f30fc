"""One incident's words told of several places: who is merged with whom, whatever the order."""

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from memory.cases.own_telling import own_telling
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
    """The case names the services of all its reports together, and so fits each of them."""
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


async def test_what_is_added_to_a_case_by_rewriting_it_is_of_its_own_telling(
    tmp_path: Path,
) -> None:
    async with case_world(tmp_path) as world:
        first = await tell(world, INCIDENT, "cnv_1", ["a-svc"])
        assert await tell(world, INCIDENT, "cnv_2", ["a-svc", "b-svc"], " (10:01)") == first
        assert own_telling(await world.case(first)).metadata.related_services == ("a-svc",)
        await world.upsert(
            caller("cnv_1"),
            case_id=first,
            metadata={"related_services": ["c-svc"], "runtime": "java"},
        )
        after = await world.case(first)
        assert after.content.metadata.related_services == ("a-svc", "b-svc", "c-svc")
        assert own_telling(after).metadata.related_services == ("a-svc", "c-svc")
        assert own_telling(after).metadata.runtime == "java"
        await world.vote(caller("cnv_3"), first, helpful=True)
        assert own_telling(await world.case(first)) == own_telling(after)


async def test_a_case_that_nothing_was_added_to_says_all_of_it_itself(tmp_path: Path) -> None:
    async with case_world(tmp_path) as world:
        first = await tell(world, INCIDENT, "cnv_1", ["a-svc"])
        assert await tell(world, INCIDENT, "cnv_2", ["a-svc"], " (10:01)") == first
        case = await world.case(first)
        assert (case.own_metadata, own_telling(case)) == (None, case.content)


async def test_what_a_person_takes_out_of_a_list_is_no_more_of_its_own_telling(
    tmp_path: Path,
) -> None:
    async with case_world(tmp_path) as world:
        first = await tell(world, INCIDENT, "cnv_1", ["a-svc", "d-svc"])
        assert await tell(world, INCIDENT, "cnv_2", ["a-svc", "b-svc"], " (10:01)") == first
        sent = {"related_services": ["b-svc", "a-svc"]}
        await world.upsert(caller(None, by="person"), case_id=first, metadata=sent)
        after = await world.case(first)
        assert after.content.metadata.related_services == ("b-svc", "a-svc")
        assert own_telling(after).metadata.related_services == ("a-svc",)


async def test_what_a_report_told_stays_no_word_of_the_case_when_something_else_is_rewritten(
    tmp_path: Path,
) -> None:
    async with case_world(tmp_path) as world:
        first = (await world.upsert(caller("cnv_1"), **{**INCIDENT, "metadata": {}})).case.case_id
        symptom = f"{INCIDENT['symptom_summary']} (10:01)"
        known = {"runtime": "java"}
        again = {**INCIDENT, "symptom_summary": symptom, "metadata": known}
        assert (await world.upsert(caller("cnv_2"), **again)).case.case_id == first
        await world.upsert(caller("cnv_1"), case_id=first, metadata={"tags": ["new"]})
        after = await world.case(first)
        assert after.content.metadata.runtime == "java"
        assert own_telling(after).metadata.runtime is None
        assert own_telling(after).metadata.tags == ("new",)
