"""Writers at the same time, corrections of accepted cases, and the plans of the statements."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from memory.cases import book
from memory.cases.case import Case, CaseCaller, CaseContent
from memory.cases.case_writes import CaseChange, delete_case_blocking
from memory.cases.relations import Nearby
from memory.cases.results import CaseRefused, FeedbackAnswer, FeedbackTally
from memory.cases.store import SqlCaseStore
from memory.errors import StoreConflict, StoreUnavailable
from memory.items.scope import Scope
from memory.stores.sqlite.database import Database
from tests.conformance.suites.case_values import case, new, next_of, related, vote
from tests.support.cases import (
    INCIDENT,
    INCIDENT_ZH,
    CaseWorld,
    caller,
    case_world,
    cases_on,
    retold,
    ticking,
)


class Rival(SqlCaseStore):
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
    async with case_world(tmp_path, partial(Rival, deliver_to=())) as world:
        assert isinstance(world.store, Rival)
        case_id = (await world.upsert(caller(), **INCIDENT)).case.case_id
        world.store.faster = rivals
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

    async def candidates(self, content: CaseContent, scope: Scope, limit: int) -> Nearby:
        del content, limit
        await self.asking.send(scope.owner_id)
        await self.let_go.wait()
        return Nearby(cases=())


async def test_whoever_gives_up_waiting_does_not_keep_others_from_their_turn(
    tmp_path: Path,
) -> None:
    slow = Slow()
    async with case_world(tmp_path, candidates=slow.candidates) as world:
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
        assert [answer.status for answer in answers] == ["created"] * 3


class Unreminding(SqlCaseStore):
    """A store that does not say what is to be judged: it cannot, or takes for ever."""

    hangs = False

    async def unreviewed(self, *_: Any, **__: Any) -> list[str]:
        if self.hangs:
            await anyio.sleep_forever()
        raise StoreUnavailable("The memory cannot be read.")


@pytest.mark.parametrize("hangs", [False, True])
async def test_what_is_written_is_answered_also_where_the_reminder_to_judge_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hangs: Any
) -> None:
    monkeypatch.setattr(book, "_UNREVIEWED_S", 0.05)
    monkeypatch.setattr(Unreminding, "hangs", hangs)
    async with case_world(tmp_path, partial(Unreminding, deliver_to=())) as world:
        with anyio.fail_after(30):
            one = await world.upsert(caller(), **INCIDENT)
            voted: FeedbackAnswer = await world.vote(
                caller("cnv_2"), one.case.case_id, helpful=True
            )
        assert (one.status, voted.feedback.helpful) == ("created", 1)
        assert (tuple(one.unreviewed_cases), tuple(voted.unreviewed_cases)) == ((), ())


WRONG = {
    "root_cause": "a stray lock file",
    "diagnosis": "looked once",
    "resolution": "remove the data directory of the database",
}
PERSON = caller(None, by="person")


async def helped(world: CaseWorld, count: int, incident: Mapping[str, Any] = INCIDENT) -> Case:
    """Record a case of the conversation `cnv_1` that so many others found helpful."""
    case_id = (await world.upsert(caller(), **incident)).case.case_id
    for n in range(count):
        await world.vote(caller(f"cnv_h{n}"), case_id, helpful=True)
    return await world.case(case_id)


@pytest.mark.parametrize("who", [caller(), PERSON], ids=["author", "person"])
async def test_what_is_corrected_is_confirmed_anew_and_no_old_vote_vouches_for_it(
    world: CaseWorld, who: Any
) -> None:
    one = (await helped(world, 10)).case_id
    assert (await world.case(one)).lifecycle == "accepted"
    after = await world.upsert(who, case_id=one, **WRONG)
    now = (after.status, after.case.lifecycle, after.case.confidence)
    assert now == ("updated", "draft", 0.8)
    first = await world.vote(caller("cnv_friend"), one, helpful=True)
    assert first.case.lifecycle == "draft", "one conversation beside the author's old friends"
    assert first.feedback == FeedbackTally(helpful=1, conversations=1)
    second = await world.vote(caller("cnv_h1"), one, helpful=True)
    assert (second.case.lifecycle, second.feedback.helpful) == ("accepted", 2)


async def test_what_a_person_rewrote_is_found_and_not_kept_down_by_votes_on_the_old_words(
    world: CaseWorld,
) -> None:
    one = (await world.upsert(caller(), **{**INCIDENT, "confidence": 0.7})).case.case_id
    for n in range(3):
        await world.vote(caller(f"cnv_u{n}"), one, helpful=False)
    assert (await world.case(one)).lifecycle == "rejected"
    right = {**INCIDENT_ZH, "confidence": 0.9}
    by_hand = await world.upsert(PERSON, case_id=one, **right)
    assert (by_hand.case.lifecycle, by_hand.case.confidence) == ("draft", 0.9)
    assert [row["id"] for row in await world.database.rows("SELECT id FROM items")] == [one]
    again = await world.upsert(caller("cnv_7"), **retold(right))
    assert (again.status, again.case.case_id, again.case.is_findable) == ("unchanged", one, True)
    against = await world.vote(caller("cnv_8"), one, helpful=False)
    assert (against.case.lifecycle, against.case.confidence) == ("draft", 0.7)
    assert against.feedback == FeedbackTally(unhelpful=1)


MANY = 300
TABLES = ("cases", "case_votes", "case_relations", "case_reports", "case_history", "case_views")


async def test_every_statement_finds_its_rows_by_a_key(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = cases_on(database, ticking())
    for n in range(MANY):
        await store.apply(new(case(str(n))))
    said: dict[str, Any] = {}
    rows = database.rows

    async def noted(sql: str, parameters: Any = ()) -> Any:
        said[sql] = parameters
        return await rows(sql, parameters)

    written: set[str] = set()
    monkeypatch.setattr(database, "rows", noted)
    await database.write(lambda writer: writer.set_trace_callback(written.add))
    await everything_once(store)
    await database.write(partial(delete_case_blocking, case_id="cas_9"))
    await database.write(lambda writer: writer.set_trace_callback(None))
    monkeypatch.undo()

    said |= {sql: () for sql in written if sql.split(" ")[0] in {"SELECT", "UPDATE", "DELETE"}}
    said |= {sql: () for sql in written if sql.startswith("INSERT") and "FROM cases" in sql}
    looked_at = {sql: values for sql, values in said.items() if any(t in sql for t in TABLES)}
    assert len(looked_at) > 15
    for sql, values in looked_at.items():
        plan = [str(row["detail"]) for row in await rows(f"EXPLAIN QUERY PLAN {sql}", values)]
        assert plan, sql
        for step in plan:
            # over the ids that were given, and over what their keys found
            is_free = any(sign in step for sign in ("CONSTANT", "json_each", "(subquery"))
            assert not step.startswith("SCAN") or is_free, (sql, step)
            assert "(owner_id=?)" not in step, (sql, step)


async def everything_once(store: SqlCaseStore) -> None:
    """Do whatever the store can."""
    ids = [f"cas_{n}" for n in range(60)]
    one = case("1")
    await store.get(ids, "ann")
    await store.by_fingerprint(b"f" * 16, "ann")
    await store.votes(ids)
    await store.related(ids)
    await store.history("cas_1", limit=9)
    await store.note_shown("cnv_1", ids)
    await store.unreviewed("cnv_1", "ann", limit=9)
    change = next_of(one, vote=vote(one, "cnv_2", helpful=True), relations=[related("2", 0.9)])
    await store.apply(change)
    await store.apply(next_of(change.case, item=None))
    await store.apply(new(case("new"), shown_to="cnv_1"))


async def test_showing_again_what_was_shown_before_writes_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search shows cases each time; only news is worth a transaction."""
    store = cases_on(database, ticking())
    await store.apply(new(case("1")))
    await store.note_shown("cnv_1", ["cas_1"])

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(database, "write", never)
    await store.note_shown("cnv_1", ["cas_1"])
    with pytest.raises(AssertionError):
        await store.note_shown("cnv_2", ["cas_1"])
