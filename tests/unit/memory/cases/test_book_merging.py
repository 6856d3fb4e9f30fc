"""The book of cases: the same that is told again is one case, and only the same."""

from pathlib import Path

from tests.support.cases import (
    INCIDENT,
    caller,
    case_world,
)


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
