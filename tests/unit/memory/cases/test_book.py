"""The book of cases: what is recorded, updated, merged; nothing of it across owners and apps."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from memory.cases.case import Case, CaseCaller, CaseContent, HistoryEntry
from memory.cases.item import fingerprint_of, likeness_of, to_item
from memory.cases.results import CaseRefused
from memory.cases.store import CaseChange
from memory.errors import StoreConflict, StoreUnavailable
from memory.scope import Scope
from memory.stores.sqlite.cases import SqliteCaseStore
from memory.testing.case_values import ANN
from tests.support.cases import (
    INCIDENT,
    INCIDENT_ZH,
    OTHER_INCIDENT,
    CaseWorld,
    Listed,
    caller,
    case_world,
    ticking,
)

KEY = "sk-ant-" + "api03-" + "Zq8" * 12


async def everything(world: CaseWorld) -> str:
    names = await world.database.rows("SELECT name FROM sqlite_master WHERE type = 'table'")
    tables = [row["name"] for row in names]
    rows = [row for name in tables for row in await world.database.rows(f'SELECT * FROM "{name}"')]
    return "\n".join(repr(tuple(row)) for row in rows)


def numbered(incident: Mapping[str, Any], n: int) -> dict[str, Any]:
    """Tell an incident as another shift would: another pod, another time, the same cause."""
    return {
        **incident,
        "symptom_summary": f"{incident['symptom_summary']} (pod-7f{n:02d}, 10:{n:02d})",
        "diagnosis": f"{incident['diagnosis']} (trace 4bf92f3577b34da6a3ce929d0e0e4{n:03d})",
        "metadata": {**incident["metadata"], "tags": [f"report-{n}"]},
    }


async def test_a_new_case_is_a_draft_in_the_callers_scope(tmp_path: Path) -> None:
    async with case_world(tmp_path) as world:
        answer = await world.upsert(caller(), **INCIDENT)
        one = answer.case
        assert (answer.status, answer.code) == ("created", "OK")
        assert one == await world.case(one.case_id)
        assert one.case_id.startswith("cas_")
        assert one.scope == ANN
        assert (one.lifecycle, one.confidence, one.stated_confidence) == ("draft", 0.8, 0.8)
        assert (one.revision, one.content_revision, one.reports) == (1, 1, 0)
        assert (one.source_conversation_id, one.authors) == ("cnv_1", ("cnv_1",))
        assert one.content.root_cause == INCIDENT["root_cause"]
        assert await world.store.history(one.case_id, limit=9) == [
            HistoryEntry(
                at=one.created_at,
                event="created",
                by="agent",
                user_id="ann",
                conversation_id="cnv_1",
                details={"lifecycle": "draft", "confidence": 0.8},
            )
        ]
        assert world.told == ["changed"]


async def test_a_person_outside_of_any_conversation_records_too(tmp_path: Path) -> None:
    async with case_world(tmp_path) as world:
        who = caller(None, app=None, environment=None, by="person")
        answer = await world.upsert(who, **INCIDENT_ZH)
        assert answer.case.scope == Scope(owner_id="ann")
        assert answer.case.source_conversation_id is None
        assert answer.unreviewed_cases == ()
        (entry,) = await world.store.history(answer.case.case_id, limit=9)
        assert (entry.by, entry.user_id, entry.conversation_id) == ("person", "ann", None)


async def test_what_is_not_sure_is_kept_and_told_to_be_out_of_search(tmp_path: Path) -> None:
    async with case_world(tmp_path) as world:
        answer = await world.upsert(caller(), **{**INCIDENT, "confidence": 0.2})
        assert not answer.case.is_findable
        assert answer.case.review_reasons == ("low_confidence",)
        assert len(answer.notes) == 1
        assert "search does not show it" in answer.notes[0]
        long = {**INCIDENT_ZH, "confidence": 0.2, "diagnosis": "很长" * 50_000}
        answer = await world.upsert(caller(), **long)
        assert "was cut" in answer.notes[0]
        assert "search does not show it" in answer.notes[1]


async def test_a_forged_scope_conversation_feedback_or_lifecycle_changes_nothing(
    tmp_path: Path,
) -> None:
    forged = {
        "fb": {"global": {"h": 50}},
        "lifecycle": "accepted",
        "scope": {"app_code": "bank"},
        "app_code": "bank",
        "conversation_id": "cnv_forged",
        "authors": [],
        "revision": 9,
    }
    async with case_world(tmp_path) as world:
        created = await world.upsert(caller(), **INCIDENT, **forged)
        assert created.stripped == tuple(forged)
        assert (created.case.scope, created.case.lifecycle) == (ANN, "draft")
        assert created.case.authors == ("cnv_1",)
        before = await everything(world)
        again = await world.upsert(caller("cnv_2"), case_id=created.case.case_id, **forged)
        assert (again.status, again.case) == ("unchanged", created.case)
        assert await everything(world) == before
        assert "cnv_forged" not in before
        assert "bank" not in before


async def test_a_partial_update_changes_what_it_says_and_nothing_else(tmp_path: Path) -> None:
    async with case_world(tmp_path) as world:
        created = (await world.upsert(caller(), **INCIDENT)).case
        updated = await world.upsert(
            caller("cnv_2"),
            case_id=f" {created.case_id} ",
            resolution="use a pool with leak detection",
            root_cause="unknown",
            metadata={"tags": ["leak"], "region": "eu-1"},
        )
        known = replace(created.content.metadata, region="eu-1", tags=("pool", "leak"))
        assert updated.status == "updated"
        assert updated.case.content == replace(
            created.content, resolution="use a pool with leak detection", metadata=known
        )
        assert updated.case == await world.case(created.case_id)
        assert updated.case.authors == ("cnv_1", "cnv_2")
        assert (updated.case.revision, updated.case.content_revision) == (2, 2)
        entry = (await world.store.history(created.case_id, limit=99))[-1]
        assert (entry.event, entry.conversation_id) == ("updated", "cnv_2")
        assert entry.details["before"] == {
            "resolution": INCIDENT["resolution"],
            "metadata.tags": ["pool"],
        }
        assert entry.details["fields"] == ["resolution", "metadata.region", "metadata.tags"]


async def test_of_a_long_text_that_is_replaced_the_beginning_stays_in_the_history(
    tmp_path: Path,
) -> None:
    async with case_world(tmp_path) as world:
        long = {**INCIDENT, "diagnosis": "长" * 9_000, "root_cause": None}
        case_id = (await world.upsert(caller(), **long)).case.case_id
        told = {"diagnosis": "short", "root_cause": "a leak"}
        await world.upsert(caller("cnv_2"), case_id=case_id, **told)
        entry = (await world.store.history(case_id, limit=99))[-1]
        assert entry.details["before"] == {"diagnosis": "长" * 2_000 + "..."}


@pytest.mark.parametrize(
    ("wrote", "asks"), [("shop", None), (None, "shop")], ids=["without-an-app", "of-none"]
)
async def test_an_agent_rewrites_only_what_is_of_exactly_its_app_and_a_person_everything(
    tmp_path: Path, wrote: str | None, asks: str | None
) -> None:
    async with case_world(tmp_path) as world:
        one = (await world.upsert(caller(app=wrote), **INCIDENT)).case
        for fields in ({"diagnosis": "other"}, {"metadata": {"tags": ["other"]}}):
            with pytest.raises(CaseRefused) as caught:
                await world.upsert(caller("cnv_2", app=asks), case_id=one.case_id, **fields)
            assert caught.value.code == "INVALID_CASE"
            assert "belongs to another scope" in str(caught.value)
        assert await world.case(one.case_id) == one
        same = await world.upsert(caller("cnv_2", app=asks), case_id=one.case_id, **INCIDENT)
        assert same.status == "unchanged"
        person = caller(None, app=asks, by="person")
        assert (await world.upsert(person, case_id=one.case_id, diagnosis="x")).status == "updated"
        mine = await world.upsert(caller("cnv_3", app=wrote), case_id=one.case_id, diagnosis="y")
        assert mine.status == "updated"


async def test_an_update_that_says_nothing_new_writes_nothing(tmp_path: Path) -> None:
    async with case_world(tmp_path) as world:
        created = (await world.upsert(caller(), **INCIDENT)).case
        before = await everything(world)
        answer = await world.upsert(caller("cnv_2"), case_id=created.case_id, **INCIDENT)
        assert (answer.status, answer.case) == ("unchanged", created)
        assert answer.notes == ("The case says all of that already; nothing was changed.",)
        assert await everything(world) == before
        assert world.told == ["changed"]


@pytest.mark.parametrize(
    "who",
    [
        caller("cnv_2", environment="staging"),
        caller(None, app=None, by="person"),
    ],
    ids=["environment", "person"],
)
async def test_a_cases_own_scope_survives_every_update(tmp_path: Path, who: CaseCaller) -> None:
    async with case_world(tmp_path) as world:
        created = (await world.upsert(caller(), **INCIDENT)).case
        updated = await world.upsert(who, case_id=created.case_id, diagnosis="seen in more detail")
        assert updated.status == "updated"
        await world.vote(who, created.case_id, helpful=True)
        after = await world.case(created.case_id)
        assert after.scope == ANN
        assert after.source_conversation_id == "cnv_1"


@pytest.mark.parametrize(
    "who",
    [caller(owner="bob"), caller(app="bank")],
    ids=["owner", "app"],
)
async def test_what_is_anothers_is_not_there(tmp_path: Path, who: CaseCaller) -> None:
    async with case_world(tmp_path) as world:
        created = (await world.upsert(caller(), **INCIDENT)).case
        before = await everything(world)
        for call in (
            world.upsert(who, case_id=created.case_id, diagnosis="other"),
            world.vote(who, created.case_id, helpful=True),
        ):
            with pytest.raises(CaseRefused) as caught:
                await call
            assert caught.value.code == "CASE_NOT_FOUND"
        assert await everything(world) == before
        other = await world.upsert(who, **INCIDENT)
        assert other.status == "created"


async def test_an_id_that_a_model_made_up_creates_nothing(tmp_path: Path) -> None:
    async with case_world(tmp_path) as world:
        for case_id in ("cas_madeup", "half a letter \ud800", "长" * 5000):
            with pytest.raises(CaseRefused) as caught:
                await world.upsert(caller(), case_id=case_id, **INCIDENT)
            assert caught.value.code == "CASE_NOT_FOUND"
        assert await world.count() == 0


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
        statuses = [one.status for one in answers]
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
        assert [one.status for one in (first, staging, nowhere)] == ["created"] * 3
        assert first.case.case_id in {one.case_id for one in staging.similar_cases}


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
        assert [one.case.reports for one in answers] == [3, 3]
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
        await world.upsert(caller(), **INCIDENT)
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
                likeness=likeness_of(content, ANN),
                history=[],
                item=to_item(alike),
            )
        )
        answer = await world.upsert(caller("cnv_3"), **INCIDENT)
        assert (answer.status, answer.case.case_id) == ("merged", right)


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


def retold(incident: Mapping[str, Any]) -> dict[str, Any]:
    """Tell an incident again with another number in it."""
    return {
        **incident,
        "symptom_summary": f"{incident['symptom_summary']} (10:42)",
        "diagnosis": f"{incident['diagnosis']} (4bf92f3577b34da6a3ce929d0e0e4736)",
    }


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
        told = {**INCIDENT, "symptom_summary": f"{INCIDENT['symptom_summary']} at 11:11"}
        answer = await world.upsert(caller("cnv_4"), **told)
        assert (answer.status, answer.case.case_id) == ("merged", shown)


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
            again = {**INCIDENT, "resolution": f"{INCIDENT['resolution']} {'step' * n}"}
            assert (await world.upsert(caller(f"cnv_r{n}"), **again)).status == "merged"
        assert "pgbouncer-reload" not in await body(), "the newest five are searched"


async def test_relations_to_another_apps_case_or_a_stale_one_are_not_told(tmp_path: Path) -> None:
    async with case_world(tmp_path) as world:
        common = (await world.upsert(caller("cnv_0", app=None), **INCIDENT)).case.case_id
        bank = (await world.upsert(caller("cnv_1", app="bank"), **INCIDENT)).case.case_id
        stale = (await world.upsert(caller("cnv_2", environment="e"), **INCIDENT)).case.case_id
        mine = (await world.upsert(caller("cnv_3"), **INCIDENT)).case.case_id
        everywhere = caller("cnv_4", app=None)
        told = await world.upsert(everywhere, case_id=common, **INCIDENT)
        assert {one.case_id for one in told.similar_cases} == {bank, stale, mine}
        await world.vote(caller("cnv_5"), stale, signal="stale")
        by_person = caller(None, by="person")
        unchanged = await world.upsert(caller("cnv_6"), case_id=common, **INCIDENT)
        updated = await world.upsert(by_person, case_id=common, resolution="close them")
        stored = {one.case_id for one in (await world.store.related([common]))[common]}
        assert stored == {bank, stale, mine}
        assert (unchanged.status, updated.status) == ("unchanged", "updated")
        for answer in (unchanged, updated):
            assert [one.case_id for one in answer.similar_cases] == [mine]
        merged = await world.upsert(caller("cnv_7"), **retold(INCIDENT))
        assert (merged.status, merged.case.case_id) == ("merged", mine)
        assert [one.case_id for one in merged.similar_cases] == [common]


async def test_both_ends_know_of_a_relation_also_after_a_rewriting(tmp_path: Path) -> None:
    async with case_world(tmp_path) as world:
        first = (await world.upsert(caller(), **INCIDENT)).case.case_id
        second = await world.upsert(caller("cnv_2", environment="staging"), **INCIDENT)
        (relation,) = second.similar_cases
        assert (relation.case_id, relation.relation) == (first, "same_root_cause")
        known = await world.store.related([first])
        assert [one.case_id for one in known[first]] == [second.case.case_id]
        rewritten = {**OTHER_INCIDENT, "case_id": first, "metadata": {"failure_layer": "os"}}
        assert (await world.upsert(caller(), **rewritten)).similar_cases == ()
        assert (await world.store.related([second.case.case_id]))[second.case.case_id] == []


async def test_a_rewritten_case_is_related_to_what_it_is_like_now(tmp_path: Path) -> None:
    async with case_world(tmp_path) as world:
        one = (await world.upsert(caller(), **INCIDENT)).case
        other = (await world.upsert(caller("cnv_2"), **OTHER_INCIDENT)).case.case_id
        assert (await world.store.related([other]))[other] == []
        answer = await world.upsert(caller("cnv_2"), **INCIDENT, case_id=other)
        assert [known.case_id for known in answer.similar_cases] == [one.case_id]
        assert answer.similar_cases[0].relation == "same_root_cause"
        assert len((await world.store.related([one.case_id]))[one.case_id]) == 1


class Forgetful(Listed):
    """Candidates that bring nothing any more once they are tired."""

    tired = False

    async def candidates(self, content: CaseContent, scope: Scope, limit: int) -> list[Case]:
        return [] if self.tired else await super().candidates(content, scope, limit)


async def test_what_was_related_stays_so_where_the_search_does_not_bring_it(
    tmp_path: Path,
) -> None:
    async with case_world(tmp_path) as first:
        candidates = Forgetful(first.database, first.store)
        async with case_world(tmp_path, candidates=candidates) as world:
            one = (await world.upsert(caller(), **INCIDENT)).case.case_id
            other = await world.upsert(caller("cnv_2", environment="staging"), **INCIDENT)
            candidates.tired = True
            answer = await world.upsert(caller(), case_id=one, resolution="close them at once")
            assert [known.case_id for known in answer.similar_cases] == [other.case.case_id]


async def test_a_case_that_many_name_keeps_them_all_when_it_is_rewritten(tmp_path: Path) -> None:
    ids = (f"cas_{n}" for n in range(9))  # of equally near ones the lesser ids are named
    async with case_world(tmp_path, new_id=lambda: next(ids)) as world:
        for n in range(9):
            await world.upsert(caller(f"cnv_{n}", environment=f"e{n}"), **INCIDENT)
        before = {one.case_id for one in (await world.store.related(["cas_0"]))["cas_0"]}
        assert before == {f"cas_{n}" for n in range(1, 9)}
        answer = await world.upsert(caller("cnv_0"), case_id="cas_0", resolution="close them")
        assert {one.case_id for one in answer.similar_cases} == before
        after = (await world.store.related(["cas_0"]))["cas_0"]
        assert list(answer.similar_cases) == list(after)


async def test_secrets_reach_neither_the_case_nor_its_reports_and_history(tmp_path: Path) -> None:
    async with case_world(tmp_path, known_secrets=["known-to-the-server"]) as world:
        sent = {
            **INCIDENT,
            "diagnosis": f"{INCIDENT['diagnosis']}; the log said key {KEY}",
            "resolution": "the runbook said known-to-the-server",
        }
        answers = [await world.upsert(caller(f"cnv_{n}"), **sent) for n in range(2)]
        assert [one.redacted for one in answers] == [2, 2]
        assert [one.status for one in answers] == ["created", "merged"]
        stored = await everything(world)
        assert KEY not in stored
        assert "known-to-the-server" not in stored


class Rival(SqliteCaseStore):
    """A store in which somebody else is always faster, so and so often."""

    faster = 0

    async def apply(self, change: CaseChange) -> None:
        if self.faster:
            self.faster -= 1
            raise StoreConflict("somebody was faster")
        await super().apply(change)


@pytest.mark.parametrize("rivals", [1, 7, 8])
async def test_it_decides_anew_where_somebody_was_faster_and_gives_up_in_words(
    tmp_path: Path, rivals: int
) -> None:
    async with case_world(tmp_path) as first:
        store = Rival(first.database, ticking(), deliver_to=())
        async with case_world(
            tmp_path, store=store, candidates=Listed(first.database, store)
        ) as world:
            case_id = (await world.upsert(caller(), **INCIDENT)).case.case_id
            store.faster = rivals
            if rivals < 8:
                answer = await world.vote(caller("cnv_2"), case_id, helpful=True)
                assert answer.case.confidence == 0.9
                return
            with pytest.raises(CaseRefused) as caught:
                await world.vote(caller("cnv_2"), case_id, helpful=True)
            assert caught.value.code == "STORE_UNAVAILABLE"


class Slow:
    """Candidates that nobody gives before they are let go."""

    def __init__(self) -> None:
        self.asking, self.asked = anyio.create_memory_object_stream[str](9)
        self.let_go = anyio.Event()

    async def candidates(self, content: CaseContent, scope: Scope, limit: int) -> list[Case]:
        del content, limit
        await self.asking.send(scope.owner_id)
        await self.let_go.wait()
        return []


async def test_whoever_gives_up_waiting_does_not_keep_others_from_their_turn(
    tmp_path: Path,
) -> None:
    slow = Slow()
    async with case_world(tmp_path, candidates=slow) as world:
        answers = []

        async def record(who: CaseCaller, incident: Mapping[str, Any]) -> None:
            answers.append(await world.upsert(who, **incident))

        with anyio.fail_after(30), slow.asking, slow.asked:
            async with anyio.create_task_group() as group:
                group.start_soon(record, caller(), INCIDENT)
                assert await slow.asked.receive() == "ann"
                with anyio.move_on_after(0.05):
                    await record(caller("cnv_2"), INCIDENT_ZH)
                group.start_soon(record, caller("cnv_3", owner="bob"), INCIDENT)
                assert await slow.asked.receive() == "bob", "no other of Ann's is looked at yet"
                slow.let_go.set()
            await record(caller("cnv_2"), INCIDENT_ZH)
        assert [one.status for one in answers] == ["created"] * 3


async def test_nothing_is_written_where_the_store_is_gone(tmp_path: Path) -> None:
    async with case_world(tmp_path) as world:
        await world.database.close()
        with pytest.raises(StoreUnavailable):
            await world.upsert(caller(), **INCIDENT)
        assert world.told == []
