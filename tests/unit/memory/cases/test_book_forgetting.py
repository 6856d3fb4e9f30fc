"""Forgetting and hiding a case: nothing of it is left, here or wherever it was told, and nothing else is touched."""

from pathlib import Path
from typing import Any

import pytest

from memory.cases.case import Case
from memory.cases.results import CaseRefused
from memory.cases.store import SqlCaseStore
from memory.intents.builders import Happening, intent_from_tool_result
from memory.items.scope import Scope
from memory.service.forgetting import Forgetting
from tests.conformance.suites.case_values import BACKENDS
from tests.support.cases import (
    INCIDENT,
    OTHER_INCIDENT,
    CaseWorld,
    Listed,
    caller,
    case_world,
    ticking,
)
from tests.support.episodes import AT, deliveries_in, dump, recorder_on

ANN, BOB = Scope(owner_id="ann"), Scope(owner_id="bob")
WORD = "zebrafish"
TOOL = "mcp__memory_case__memory_case_upsert"


def forgetting_on(world: CaseWorld) -> Forgetting:
    recording = recorder_on(world.database).recording
    return Forgetting(world.database, backends=["vector"], recording=recording, now=lambda: AT)


async def record_case(world: CaseWorld, **fields: Any) -> Case:
    """Record a case that tells of the word, as an agent does: the call is in the chronicle."""
    sent = {**INCIDENT, "symptom_summary": f"checkout answers 503, says the {WORD}", **fields}
    one = (await world.upsert(caller(), **sent)).case
    at = Happening(owner_id="ann", occurred_at=AT, conversation_id="cnv_1", turn_id="trn_1")
    call = intent_from_tool_result(
        at,
        tool_name=TOOL,
        status="ok",
        tool_use_id="toolu_1",
        args={"case": sent},
        result=f'{{"case_id": "{one.case_id}"}}',
    )
    await recorder_on(world.database).record_intent(call)
    return one


async def test_nothing_of_a_case_is_left_and_the_rest_stays(world: CaseWorld) -> None:
    gone = (await record_case(world)).case_id
    staging = caller("cnv_2", environment="staging")
    kept = (await world.upsert(staging, **INCIDENT)).case.case_id
    other = (await world.upsert(caller("cnv_3"), **OTHER_INCIDENT)).case.case_id
    symptom = (await world.case(gone)).content.symptom_summary
    more = f"{INCIDENT['resolution']}, a {WORD} says"
    again = {**INCIDENT, "symptom_summary": symptom, "resolution": more}
    assert (await world.upsert(caller("cnv_4"), **again)).case.case_id == gone
    await world.vote(caller("cnv_5"), gone, helpful=True)
    await world.store.note_shown("cnv_6", [gone, other])
    assert (await world.store.related([kept]))[kept]
    assert WORD in await dump(world.database)

    assert await forgetting_on(world).forget(gone, ANN)

    assert (await world.store.related([kept]))[kept] == []
    assert await world.store.unreviewed("cnv_6", "ann", limit=9) == [other]
    found = await world.store.get([gone, kept, other], "ann")
    assert [hit.case_id for hit in found] == [kept, other]
    assert not await forgetting_on(world).forget(gone, ANN)
    assert WORD not in await dump(world.database)


async def test_a_case_is_forgotten_by_whoever_may_see_it_alone(world: CaseWorld) -> None:
    mine = await record_case(world)
    before = await dump(world.database)
    forgetting = forgetting_on(world)
    assert not await forgetting.forget(mine.case_id, BOB)
    assert not await forgetting.forget(mine.case_id, Scope(owner_id="ann", app_code="bank"))
    assert not await forgetting.forget("cas_none", ANN)
    assert await dump(world.database) == before
    assert await forgetting.forget(mine.case_id, Scope(owner_id="ann", app_code="shop"))


async def test_a_vote_on_a_case_that_is_being_forgotten_finds_it_gone(world: CaseWorld) -> None:
    gone = await record_case(world)
    votes = world.store.votes

    async def forgotten_meanwhile(case_ids: Any) -> Any:
        await forgetting_on(world).forget(gone.case_id, ANN)
        return await votes(case_ids)

    world.store.votes = forgotten_meanwhile  # type: ignore[method-assign]
    with pytest.raises(CaseRefused) as caught:
        await world.vote(caller("cnv_2"), gone.case_id, helpful=True)
    assert caught.value.code == "CASE_NOT_FOUND"
    assert WORD not in await dump(world.database)


async def test_a_backend_that_is_configured_no_more_forgets_what_it_was_told(
    tmp_path: Path,
) -> None:
    async with case_world(tmp_path) as before:
        one = (await before.upsert(caller(), **INCIDENT)).case.case_id
        await before.database.write(
            lambda writer: writer.execute(
                "UPDATE outbox SET status = 'delivered' WHERE backend = ?", (BACKENDS[0],)
            )
        )
        await before.database.write(
            lambda writer: writer.execute(
                "INSERT INTO memory_links (item_id, backend, remote_kind, remote_id)"
                " VALUES (?, 'gone', 'item', 'r1')",
                (one,),
            )
        )
        store = SqlCaseStore(before.database, ticking(), deliver_to=())
        candidates = Listed(before.database, store)
        async with case_world(tmp_path, store=store, candidates=candidates.candidates) as world:
            await world.vote(caller("cnv_2"), one, signal="stale")
        told = [key.split(":") for key in await deliveries_in(before.database, one)]
        forgetful = {backend for backend, operation, *_ in told if operation == "forget"}
        assert forgetful == {"gone", *BACKENDS}
