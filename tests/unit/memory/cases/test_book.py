"""The book of cases: what is recorded and updated, and by whom; nothing of it across owners and apps."""

from dataclasses import replace
from pathlib import Path

import pytest

from memory.cases.case import HistoryEntry
from memory.cases.results import CaseRefused
from tests.conformance.suites.case_values import ANN
from tests.support.cases import INCIDENT, CaseWorld, caller, case_world
from tests.support.episodes import dump

KEY = "sk-ant-" + "api03-" + "Zq8" * 12


async def test_a_new_case_is_a_draft_in_the_callers_scope(world: CaseWorld) -> None:
    answer = await world.upsert(caller(), **INCIDENT)
    one = answer.case
    assert (answer.status, answer.code) == ("created", "OK")
    assert one == await world.case(one.case_id)
    assert one.case_id.startswith("cas_")
    assert one.scope == ANN
    assert (one.lifecycle, one.confidence, one.stated_confidence) == ("draft", 0.8, 0.8)
    assert (one.revision, one.content_revision) == (1, 1)
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


async def test_a_forged_scope_conversation_feedback_or_lifecycle_changes_nothing(
    world: CaseWorld,
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
    created = await world.upsert(caller(), **INCIDENT, **forged)
    assert created.stripped == tuple(forged)
    assert (created.case.scope, created.case.lifecycle) == (ANN, "draft")
    assert created.case.authors == ("cnv_1",)
    before = await dump(world.database)
    again = await world.upsert(caller("cnv_2"), case_id=created.case.case_id, **forged)
    assert (again.status, again.case) == ("unchanged", created.case)
    assert await dump(world.database) == before
    assert "cnv_forged" not in before
    assert "bank" not in before


async def test_a_partial_update_changes_what_it_says_and_nothing_else(world: CaseWorld) -> None:
    created = (await world.upsert(caller(), **INCIDENT)).case
    updated = await world.upsert(
        caller("cnv_2"),
        case_id=f" {created.case_id} ",
        resolution="use a pool with leak detection",
        root_cause="unknown",
        metadata={"tags": ["leak"], "region": "eu-1"},
    )
    known = replace(created.content.metadata, region="eu-1", tags=("leak",))
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


@pytest.mark.parametrize(
    ("wrote", "asks"), [("shop", None), (None, "shop")], ids=["without-an-app", "of-none"]
)
async def test_an_agent_rewrites_only_what_is_of_exactly_its_app_and_a_person_everything(
    world: CaseWorld, wrote: str | None, asks: str | None
) -> None:
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


async def test_an_update_that_says_nothing_new_writes_nothing(world: CaseWorld) -> None:
    created = (await world.upsert(caller(), **INCIDENT)).case
    before = await dump(world.database)
    answer = await world.upsert(caller("cnv_2"), case_id=created.case_id, **INCIDENT)
    assert (answer.status, answer.case) == ("unchanged", created)
    assert await dump(world.database) == before
    assert world.told == ["changed"]


async def test_secrets_reach_neither_the_case_nor_its_history(tmp_path: Path) -> None:
    async with case_world(tmp_path, known_secrets=["known-to-the-server"]) as world:
        sent = {
            **INCIDENT,
            "diagnosis": f"{INCIDENT['diagnosis']}; the log said key {KEY}",
            "resolution": "the runbook said known-to-the-server",
        }
        answers = [await world.upsert(caller(f"cnv_{n}"), **sent) for n in range(2)]
        assert [answer.redacted for answer in answers] == [2, 2]
        assert [answer.status for answer in answers] == ["created", "unchanged"]
        stored = await dump(world.database)
        assert KEY not in stored
        assert "known-to-the-server" not in stored
