"""Reports of a case: which are kept, searched and told, what they add, and where they part it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memory.cases.case import CaseContent, HistoryEntry
from memory.cases.relations import Nearby
from memory.cases.store import MAX_KEPT_REPORTS
from memory.scope import Scope
from tests.conformance.suites.case_values import AT, next_of
from tests.support.cases import INCIDENT, INCIDENT_ZH, CaseWorld, Listed, caller, case_world, retold


def told_at(incident: Any, n: int, *, code: str = "") -> dict[str, Any]:
    return {
        **incident,
        "symptom_summary": f"{incident['symptom_summary']} (10:{n:02d})",
        "diagnosis": f"{incident['diagnosis']} {code}".strip(),
    }


MANY = 2 * MAX_KEPT_REPORTS
ALL = 10_000


async def tell_again(world: CaseWorld, told: dict[str, Any], n: int) -> None:
    """Report it from a conversation of its own at another time."""
    answer = await world.upsert(
        caller(f"cnv_{n}"), **{**told, "symptom_summary": f"{told['symptom_summary']} (10:{n:02d})"}
    )
    assert answer.status == "merged"


async def take_in(world: CaseWorld, case_id: str, n: int, **details: Any) -> None:
    case = await world.case(case_id)
    entry = HistoryEntry(
        at=AT,
        event="merged",
        by="agent",
        user_id="ann",
        conversation_id=f"cnv_{n}",
        details={"report": n, **details},
    )
    change = replace(next_of(case), history=[entry])
    await world.store.apply(change)


@pytest.mark.parametrize("told", [INCIDENT, INCIDENT_ZH], ids=["en", "zh"])
async def test_that_a_report_was_merged_stays_as_long_as_the_report(
    world: CaseWorld, told: Any
) -> None:
    case_id = (await world.upsert(caller("cnv_0"), **told)).case.case_id
    for n in range(1, MAX_KEPT_REPORTS + 6):
        await tell_again(world, told, n)
    reports = await world.store.reports(case_id, limit=ALL)
    history = await world.store.history(case_id, limit=ALL)
    assert [entry.event for entry in history] == ["created"] + ["merged"] * MAX_KEPT_REPORTS
    assert [entry.conversation_id for entry in history[1:]] == [
        report.conversation_id for report in reports
    ]
    assert history[1].details == {"report": 6}, "its number says how many came before"
    assert (await world.case(case_id)).reports == MAX_KEPT_REPORTS + 5


async def test_a_merge_that_changed_the_case_stays(world: CaseWorld) -> None:
    case_id = (await world.upsert(caller("cnv_0"), **INCIDENT)).case.case_id
    await take_in(world, case_id, 1, fields=["metadata.tags"])
    await take_in(world, case_id, 2, confidence={"from": 0.2, "to": 0.8})
    for n in range(3, MANY):
        await take_in(world, case_id, n)
    numbers = [
        entry.details.get("report") for entry in await world.store.history(case_id, limit=ALL)
    ]
    assert numbers == [None, 1, 2, *range(MANY - MAX_KEPT_REPORTS, MANY)]


BOTH = pytest.mark.parametrize("incident", [INCIDENT, INCIDENT_ZH], ids=["en", "zh"])


@BOTH
async def test_who_may_change_a_case_is_told_how_where_a_better_telling_is_kept_as_a_report(
    world: CaseWorld, incident: Any
) -> None:
    one = (await world.upsert(caller(), **{**incident, "resolution": "重启 restart"})).case
    how = f"update it by its case_id {one.case_id}"
    for who, is_told in (
        (caller(), True),
        (caller("cnv_branch", root_id="cnv_1"), True),
        (caller(None, by="person"), True),
        (caller("cnv_2"), False),
    ):
        better = {
            **retold(incident),
            "resolution": f"{incident['resolution']} {who.conversation_id}",
        }
        answer = await world.upsert(who, **better)
        assert (answer.status, answer.case.case_id) == ("merged", one.case_id)
        assert answer.case.content.resolution == "重启 restart"
        assert (how in " ".join(answer.notes)) is is_told


class Partly(Listed):
    """Candidates of a search that did not take part whole."""

    async def candidates(self, content: CaseContent, scope: Scope, limit: int) -> Nearby:
        del content, scope, limit
        return Nearby(cases=(), degraded=("fulltext_error", "vector_timeout"))


@BOTH
async def test_where_not_all_of_the_search_took_part_the_answer_names_it(
    tmp_path: Path, incident: Any
) -> None:
    async with case_world(tmp_path) as first:
        await first.upsert(caller(), **incident)
        partly = Partly(first.database, first.store)
        async with case_world(tmp_path, candidates=partly.candidates) as world:
            answer = await world.upsert(
                caller("cnv_2"), **{**retold(incident), "root_cause": "unknown"}
            )
        assert answer.status == "created"
        (told,) = answer.notes
        assert "fulltext_error, vector_timeout" in told
        assert "related cases may be missing" in told


async def tell_of(
    world: CaseWorld, told: Any, name: str, services: list[str], sign: str = ""
) -> str:
    """Report it from a conversation of its own; return the id of its case."""
    symptom = f"{told['symptom_summary']}{sign}"
    case = {**told, "symptom_summary": symptom, "metadata": {"related_services": services}}
    return (await world.upsert(caller(name), **case)).case.case_id


@BOTH
async def test_told_exactly_so_at_a_place_that_a_report_contradicts_it_is_a_case_of_its_own(
    world: CaseWorld, incident: Any
) -> None:
    told = incident
    first = await tell_of(world, told, "cnv_1", [])
    assert await tell_of(world, told, "cnv_2", ["a-svc"], " (10:01)") == first
    assert await tell_of(world, told, "cnv_3", ["a-svc", "b-svc"], " (10:02)") == first
    elsewhere = await tell_of(world, told, "cnv_4", ["b-svc"])
    assert elsewhere != first
    assert await tell_of(world, told, "cnv_5", ["b-svc"]) == elsewhere, "where it fits, it merges"
    assert await tell_of(world, told, "cnv_6", ["a-svc"]) == first
    assert await world.count() == 2


@BOTH
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
