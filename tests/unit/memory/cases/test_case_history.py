"""How long the history of a case grows that is told, and judged, over and over."""

from dataclasses import replace
from typing import Any

import pytest

from memory.cases.case import HistoryEntry
from memory.cases.store import MAX_KEPT_REPORTS
from tests.conformance.suites.case_values import AT, next_of
from tests.support.cases import INCIDENT, INCIDENT_ZH, CaseWorld, caller

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
