"""The book of cases: the same that is told again is one case, and only the same."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from memory.cases.fingerprint import fingerprint_of
from memory.cases.item import to_item
from memory.cases.store import CaseChange
from tests.conformance.suites.case_values import ANN
from tests.support.cases import (
    INCIDENT,
    INCIDENT_ZH,
    caller,
    case_world,
)


def numbered(incident: Mapping[str, Any], n: int) -> dict[str, Any]:
    """Tell an incident as another shift would: another pod, another time, the same cause."""
    return {
        **incident,
        "symptom_summary": f"{incident['symptom_summary']} (pod-7f{n:02d}, 10:{n:02d})",
        "diagnosis": f"{incident['diagnosis']} (trace 4bf92f3577b34da6a3ce929d0e0e4{n:03d})",
        "metadata": {**incident["metadata"], "tags": [f"report-{n}"]},
    }


@pytest.mark.parametrize("incident", [INCIDENT, INCIDENT_ZH], ids=["en", "zh"])
async def test_twenty_near_duplicates_at_once_are_one_case_with_nineteen_reports(
    tmp_path: Path, incident: Mapping[str, Any]
) -> None:
    async with case_world(tmp_path) as world:
        answers = []

        async def tell(n: int) -> None:
            answers.append(await world.upsert(caller(f"cnv_{n}"), **numbered(incident, n)))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for n in range(20):
                    group.start_soon(tell, n)
        statuses = [answer.status for answer in answers]
        assert (statuses.count("created"), statuses.count("merged")) == (1, 19)
        assert await world.count() == 1
        one = await world.case(answers[0].case.case_id)
        reports = await world.store.reports(one.case_id, limit=50)
        assert (one.reports, len(reports)) == (19, 19)
        told = {report.content.symptom_summary for report in reports}
        assert told | {one.content.symptom_summary} == {
            numbered(incident, n)["symptom_summary"] for n in range(20)
        }
        voters = {report.conversation_id for report in reports} | {one.source_conversation_id}
        assert voters == {f"cnv_{n}" for n in range(20)}
        assert (one.confidence, one.lifecycle) == (0.8, "draft")
        assert len(one.content.metadata.tags) == 20
        events = [entry.event for entry in await world.store.history(one.case_id, limit=50)]
        assert events == ["created", *["merged"] * 19]


async def test_the_same_in_another_environment_or_app_is_a_case_of_its_own(
    tmp_path: Path,
) -> None:
    async with case_world(tmp_path) as world:
        first = await world.upsert(caller(), **INCIDENT)
        staging = await world.upsert(caller("cnv_2", environment="staging"), **INCIDENT)
        nowhere = await world.upsert(caller("cnv_3", app=None), **INCIDENT)
        assert [answer.status for answer in (first, staging, nowhere)] == ["created"] * 3
        assert first.case.case_id in {case.case_id for case in staging.similar_cases}


async def test_look_alikes_with_another_root_cause_are_not_merged(tmp_path: Path) -> None:
    async with case_world(tmp_path) as world:
        await world.upsert(caller(), **INCIDENT)
        other = await world.upsert(
            caller("cnv_2"),
            **{**INCIDENT, "root_cause": "a deadlock between the order and the stock tables"},
        )
        assert other.status == "created"
        assert await world.count() == 2


async def test_a_conversation_that_tells_exactly_the_same_again_reports_nothing(
    tmp_path: Path,
) -> None:
    async with case_world(tmp_path) as world:
        await world.upsert(caller(), **INCIDENT)
        assert (await world.upsert(caller(), **INCIDENT)).status == "unchanged"
        assert (await world.upsert(caller("cnv_2"), **INCIDENT)).status == "merged"
        answer = await world.upsert(caller("cnv_2"), **INCIDENT)
        assert (answer.status, answer.case.reports) == ("unchanged", 1)
        assert (await world.upsert(caller("cnv_3"), **INCIDENT)).case.reports == 2
        person = caller(None, by="person")
        answers = [await world.upsert(person, **INCIDENT) for _ in range(2)]
        assert [answer.case.reports for answer in answers] == [3, 3]
        assert world.told == ["changed"] * 4


async def test_what_others_added_does_not_make_it_new(tmp_path: Path) -> None:
    async with case_world(tmp_path) as world:
        await world.upsert(caller(), **INCIDENT)
        known = {**INCIDENT["metadata"], "tags": ["pool", "import"]}
        added = await world.upsert(caller("cnv_2"), **{**INCIDENT, "metadata": known})
        assert added.case.content.metadata.tags == ("pool", "import")
        assert (await world.upsert(caller(), **INCIDENT)).status == "unchanged"
        known = {**known, "tags": ["eu-1"]}
        more = await world.upsert(caller(), **{**INCIDENT, "metadata": known})
        assert (more.status, more.case.reports) == ("merged", 2)


async def test_the_same_few_words_about_another_service_are_another_case(tmp_path: Path) -> None:
    words = {
        "symptom_summary": "pods restart",
        "diagnosis": "out of memory",
        "root_cause": "the limit is too low",
        "resolution": "raise the limit",
        "confidence": 0.8,
    }
    async with case_world(tmp_path) as world:
        for service, layer in (("checkout", "jvm"), ("ledger", "os")):
            known = {"related_services": [service], "failure_layer": layer}
            answer = await world.upsert(caller(f"cnv_{service}"), **words, metadata=known)
            assert answer.status == "created"


async def test_a_conversation_that_reported_something_like_it_may_tell_more(
    tmp_path: Path,
) -> None:
    async with case_world(tmp_path) as world:
        await world.upsert(caller(), **numbered(INCIDENT, 0))
        await world.upsert(caller("cnv_2"), **numbered(INCIDENT, 1))
        answer = await world.upsert(caller("cnv_2"), **numbered(INCIDENT, 2))
        assert (answer.status, answer.case.reports) == ("merged", 2)


async def test_of_two_cases_that_say_exactly_this_the_one_that_can_be_found_takes_it(
    tmp_path: Path,
) -> None:
    async with case_world(tmp_path) as world:
        wrong = (await world.upsert(caller(), **{**INCIDENT, "confidence": 0.3})).case.case_id
        await world.vote(caller("cnv_2"), wrong, helpful=False)
        assert (await world.case(wrong)).lifecycle == "rejected"
        right = (await world.upsert(caller(), **INCIDENT_ZH)).case.case_id
        content = (await world.case(wrong)).content
        alike = replace(await world.case(right), content=content, revision=2)
        await world.store.apply(
            CaseChange(
                case=alike,
                expected_revision=1,
                fingerprint=fingerprint_of(content, ANN),
                history=[],
                item=to_item(alike),
            )
        )
        answer = await world.upsert(caller("cnv_3"), **INCIDENT)
        assert (answer.status, answer.case.case_id) == ("merged", right)


async def test_what_a_report_adds_is_searched_with_the_case_whatever_happens_then(
    tmp_path: Path,
) -> None:
    async with case_world(tmp_path) as world:
        one = (await world.upsert(caller(), **INCIDENT)).case.case_id
        told = {
            **INCIDENT,
            "resolution": "close the connections of the price import in a finally block."
            " Until then run pgbouncer-reload.",
        }
        assert (await world.upsert(caller("cnv_2"), **told)).case.case_id == one

        async def body() -> str:
            (row,) = await world.database.rows("SELECT body FROM items WHERE id = ?", (one,))
            return str(row["body"])

        assert (await body()).count("Until then run pgbouncer-reload.") == 1
        assert (await body()).count(INCIDENT["diagnosis"]) == 1
        await world.vote(caller("cnv_3"), one, helpful=True)
        assert "pgbouncer-reload" in await body()
        await world.upsert(caller(), case_id=one, symptom_summary="checkout is down")
        assert "pgbouncer-reload" in await body()
        for n in range(5):
            steps = f"{INCIDENT['resolution']} {'step' * n}"
            again = {**INCIDENT, "symptom_summary": "checkout is down", "resolution": steps}
            assert (await world.upsert(caller(f"cnv_r{n}"), **again)).status == "merged"
        assert "pgbouncer-reload" not in await body(), "the newest five are searched"
