"""The process crashes before each statement of writing, judging and forgetting cases."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

import pytest

from memory.cases.case import Case
from memory.cases.item import to_item
from memory.cases.votes import confidence_of
from memory.forgetting import Forgetting
from memory.scope import Scope
from memory.stores.sqlite.items import COLUMNS, item_of
from tests.conformance.suites.case_values import BACKENDS
from tests.support.cases import INCIDENT, INCIDENT_ZH, CaseWorld, caller, case_world
from tests.support.crash_images import CrashImages, at_points, crashed_everywhere
from tests.support.episodes import AT, recorder_on


async def record(world: CaseWorld) -> None:
    """Record one, tell it once more, and record one that is related to it, and one in Chinese."""
    await world.upsert(caller("cnv_1"), **INCIDENT)
    again = {**INCIDENT, "symptom_summary": "checkout answers 503 after the deploy (14:05)"}
    await world.upsert(caller("cnv_2"), **again)
    await world.upsert(caller("cnv_3", environment="staging"), **INCIDENT)
    await world.upsert(caller("cnv_4"), **INCIDENT_ZH)


async def ids(world: CaseWorld) -> Mapping[str, str]:
    """Return the ids of the cases by the conversations that wrote them first."""
    rows = await world.database.rows("SELECT case_id FROM cases")
    found = await world.store.get([row["case_id"] for row in rows], "ann")
    return {hit.source_conversation_id or "": hit.case_id for hit in found}


async def judge(world: CaseWorld) -> None:
    """Make one accepted, one stale, and rewrite one."""
    known = await ids(world)
    for voter in ("cnv_5", "cnv_6"):
        await world.vote(caller(voter), known["cnv_1"], helpful=True)
    await world.vote(caller("cnv_5"), known["cnv_4"], signal="stale")
    await world.upsert(caller("cnv_7"), case_id=known["cnv_3"], resolution="close them at once")


async def forget(world: CaseWorld) -> bool:
    """Forget the one that is related, accepted and told twice."""
    case_id = (await ids(world)).get("cnv_1", "cas_none")
    forgetting = Forgetting(
        world.database,
        backends=["vector"],
        recording=recorder_on(world.database).recording,
        now=lambda: AT,
    )
    return await forgetting.forget(case_id, Scope(owner_id="ann"))


WORK: Mapping[str, Callable[[CaseWorld], Awaitable[object]]] = {
    "record": record,
    "judge": judge,
    "forget": forget,
}


async def prepare(what: str, directory: Path) -> None:
    """Do what comes before."""
    async with case_world(directory) as world:
        for entry, work in WORK.items():
            if entry == what:
                return
            await work(world)


async def work_until(what: str, directory: Path, points: CrashImages) -> None:
    """Do it; each statement of the writer's is a point."""
    async with case_world(directory) as world:
        await world.database.write(points.watch)
        await WORK[what](world)


FEWEST = {"record": 20, "judge": 13, "forget": 5}
pytestmark = pytest.mark.fault


async def column(world: CaseWorld, sql: str, *values: str) -> list[str]:
    return [str(row[0]) for row in await world.database.rows(sql, values)]


async def check_whole(world: CaseWorld) -> list[Case]:
    """Whatever is there is there with all that belongs to it."""
    assert await column(world, "PRAGMA integrity_check") == ["ok"]
    assert await world.database.rows("PRAGMA foreign_key_check") == []
    known = await column(world, "SELECT case_id FROM cases ORDER BY case_id")
    cases = await world.store.get(known, "ann")
    rows = await world.database.rows(f"SELECT {COLUMNS} FROM items ORDER BY id")
    items = [item_of(row) for row in rows]
    assert {entry.id for entry in items} == {entry.case_id for entry in cases if entry.is_findable}
    words = await column(world, "SELECT rowid FROM item_words")
    assert sorted(words) == sorted(await column(world, "SELECT seq FROM items"))
    for entry in cases:
        await check_one(world, entry)
    for item in items:
        (case,) = [entry for entry in cases if entry.case_id == item.id]
        now = to_item(case, await world.store.reports(case.case_id, limit=99))
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
    assert events["merged"] == one.reports
    assert len(await world.store.reports(one.case_id, limit=99)) == one.reports
    assert events["lifecycle"] == (1 if one.lifecycle in {"accepted", "stale"} else 0)
    kind = "put" if one.is_findable else "forget"
    told = "SELECT backend FROM outbox WHERE item_id = ? AND operation = ? ORDER BY backend"
    assert await column(world, told, one.case_id, kind) == list(BACKENDS)


Work = Callable[[CaseWorld], Awaitable[object]]


@at_points
@pytest.mark.parametrize(("what", "work"), [("record", record), ("judge", judge)])
async def test_a_kill_between_any_two_statements_leaves_each_change_whole_or_absent(
    tmp_path: Path, what: str, work: Work, every: int
) -> None:
    states = []
    count = await crashed_everywhere(
        tmp_path, partial(prepare, what), partial(work_until, what), every=every
    )
    assert count > FEWEST[what], "there are that many places to be killed at"
    for number in range(1, count + 1):
        async with case_world(tmp_path / str(number)) as world:
            cases = await check_whole(world)
            states.append(sum(case.revision for case in cases))
            await work(world)
            after = await check_whole(world)
            outcome = Counter((entry.lifecycle, entry.reports, entry.revision) for entry in after)
            expected: dict[str, Counter[tuple[str, int, int]]] = {
                "record": Counter({("draft", 1, 2): 1, ("draft", 0, 1): 2}),
                "judge": Counter({("accepted", 1, 4): 1, ("stale", 0, 2): 1, ("draft", 0, 2): 1}),
            }
            assert outcome == expected[what], "doing it again makes whole what was begun"
            known = await ids(world)
            ends = await world.store.related([known["cnv_1"], known["cnv_3"]])
            assert [end.case_id for end in ends[known["cnv_1"]]] == [known["cnv_3"]]
            assert [end.case_id for end in ends[known["cnv_3"]]] == [known["cnv_1"]]
    assert states == sorted(states)
    assert len(set(states)) == 5, "each of the four changes was cut off before and after it"


@at_points
async def test_a_kill_in_the_middle_of_forgetting_forgets_all_of_a_case_or_nothing(
    tmp_path: Path, every: int
) -> None:
    outcomes = []
    count = await crashed_everywhere(
        tmp_path, partial(prepare, "forget"), partial(work_until, "forget"), every=every
    )
    assert count > FEWEST["forget"], "there are that many places to be killed at"
    for number in range(1, count + 1):
        async with case_world(tmp_path / str(number)) as world:
            cases = await check_whole(world)
            forgotten = len(cases) == 2
            left = [
                await column(world, f"SELECT case_id FROM {table}")
                for table in ("case_votes", "case_reports", "case_history", "case_views")
            ]
            there = {case.case_id for case in cases}
            assert {case_id for entry in left for case_id in entry} == there
            relations = await column(world, "SELECT lesser FROM case_relations")
            assert len(relations) == (0 if forgotten else 1)
            noted = await column(world, "SELECT id FROM intents WHERE key = 'memory.forgotten'")
            assert len(noted) == int(forgotten)
            assert bool(await forget(world)) is not forgotten
            assert len(await check_whole(world)) == 2
            outcomes.append(forgotten)
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {False, True}
