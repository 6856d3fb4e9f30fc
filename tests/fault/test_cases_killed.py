"""The process crashes before each statement of writing, judging and forgetting cases."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from memory.cases.case import Case
from memory.cases.item import to_item
from memory.cases.votes import confidence_of
from memory.items.scope import Scope
from memory.service.forgetting import Forgetting
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.items import COLUMNS, item_of
from tests.conformance.suites.case_values import BACKENDS
from tests.support.cases import INCIDENT, INCIDENT_ZH, CaseWorld, caller, world_on
from tests.support.crash_images import Step, at_points, crashed_everywhere, texts
from tests.support.episodes import AT, recorder_on

pytestmark = pytest.mark.fault


async def record(database: Database) -> None:
    """Record one, one that is related to it, and one in Chinese."""
    world = world_on(database)
    await world.upsert(caller("cnv_1"), **INCIDENT)
    await world.upsert(caller("cnv_3", environment="staging"), **INCIDENT)
    await world.upsert(caller("cnv_4"), **INCIDENT_ZH)


async def ids(database: Database) -> Mapping[str, str]:
    """Return the ids of the cases by the conversations that wrote them first."""
    known = await texts(database, "SELECT case_id FROM cases")
    found = await world_on(database).store.get(known, "ann")
    return {hit.source_conversation_id or "": hit.case_id for hit in found}


async def judge(database: Database) -> None:
    """Make one accepted, one stale, and rewrite one."""
    world, known = world_on(database), await ids(database)
    for voter in ("cnv_5", "cnv_6"):
        await world.vote(caller(voter), known["cnv_1"], helpful=True)
    await world.vote(caller("cnv_5"), known["cnv_4"], signal="stale")
    await world.upsert(caller("cnv_7"), case_id=known["cnv_3"], resolution="close them at once")


async def forget(database: Database) -> bool:
    """Forget the one that is related, accepted."""
    case_id = (await ids(database)).get("cnv_1", "cas_none")
    recording = recorder_on(database).recording
    forgetting = Forgetting(database, backends=["vector"], recording=recording, now=lambda: AT)
    return await forgetting.forget(case_id, Scope(owner_id="ann"))


async def check_whole(database: Database) -> list[Case]:
    """Whatever is there is there with all that belongs to it."""
    world = world_on(database)
    known = await texts(database, "SELECT case_id FROM cases ORDER BY case_id")
    cases = await world.store.get(known, "ann")
    rows = await database.rows(f"SELECT {COLUMNS} FROM items ORDER BY id")
    items = {item.id: item for item in map(item_of, rows)}
    assert set(items) == {case.case_id for case in cases if case.is_findable}
    for case in cases:
        await check_one(world, case)
        if item := items.get(case.case_id):
            now = to_item(case)
            assert now is not None
            assert (item.title, item.body, item.tags) == (now.title, now.body, now.tags)
    return cases


async def check_one(world: CaseWorld, one: Case) -> None:
    votes = (await world.store.votes([one.case_id]))[one.case_id]
    assert one.confidence == confidence_of(one, votes)
    events = Counter(entry.event for entry in await world.store.history(one.case_id, limit=99))
    changes = sum(count for event, count in events.items() if event != "lifecycle")
    assert (changes, events["created"]) == (one.revision, 1)
    assert events["feedback"] == len(votes)
    assert events["lifecycle"] == (1 if one.lifecycle in {"accepted", "stale"} else 0)
    kind = "put" if one.is_findable else "forget"
    told = "SELECT backend FROM outbox WHERE item_id = ? AND operation = ? ORDER BY backend"
    assert await texts(world.database, told, one.case_id, kind) == list(BACKENDS)


@at_points
@pytest.mark.parametrize(
    ("steps", "fewest", "changes", "expected"),
    [
        ([record], 15, 3, {("draft", 1): 3}),
        ([record, judge], 13, 4, {("accepted", 3): 1, ("stale", 2): 1, ("draft", 2): 1}),
    ],
    ids=["record", "judge"],
)
async def test_a_kill_between_any_two_statements_leaves_each_change_whole_or_absent(
    tmp_path: Path,
    steps: list[Step],
    fewest: int,
    changes: int,
    expected: Mapping[tuple[str, int], int],
    every: int,
) -> None:
    async def check(database: Database) -> int:
        revisions = sum(case.revision for case in await check_whole(database))
        await steps[-1](database)
        after = await check_whole(database)
        outcome = Counter((case.lifecycle, case.revision) for case in after)
        assert outcome == expected, "doing it again makes whole what was begun"
        known = await ids(database)
        ends = await world_on(database).store.related([known["cnv_1"], known["cnv_3"]])
        assert [end.case_id for end in ends[known["cnv_1"]]] == [known["cnv_3"]]
        assert [end.case_id for end in ends[known["cnv_3"]]] == [known["cnv_1"]]
        return revisions

    states = await crashed_everywhere(tmp_path, steps, check, every=every, fewest=fewest)
    assert states == sorted(states)
    assert len(set(states)) == changes + 1, "each change was cut off before and after it"


@at_points
async def test_a_kill_in_the_middle_of_forgetting_forgets_all_of_a_case_or_nothing(
    tmp_path: Path, every: int
) -> None:
    async def check(database: Database) -> bool:
        there = {case.case_id for case in await check_whole(database)}
        forgotten = len(there) == 2
        tables = ("case_votes", "case_reports", "case_history", "case_views")
        left = [await texts(database, f"SELECT case_id FROM {table}") for table in tables]
        assert {case_id for entry in left for case_id in entry} == there
        relations = await texts(database, "SELECT lesser FROM case_relations")
        assert len(relations) == (0 if forgotten else 1)
        noted = await texts(database, "SELECT id FROM intents WHERE key = 'memory.forgotten'")
        assert len(noted) == int(forgotten)
        assert bool(await forget(database)) is not forgotten
        assert len(await check_whole(database)) == 2
        return forgotten

    steps = [record, judge, forget]
    outcomes = await crashed_everywhere(tmp_path, steps, check, every=every, fewest=5)
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {False, True}
