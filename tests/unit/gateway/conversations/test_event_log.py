"""The event log on real stores: stored before shown, each once, in order, with an ending that is told last."""

import json
from pathlib import Path

import anyio
import anyio.lowlevel

from gateway.conversations.event_log import open_event_log
from gateway.conversations.model import COMPLETED
from tests.conformance.suites.conversation_values import ended
from tests.support.stores import open_file, stores_on
from tests.unit.gateway.conversations.faulty_log import WAIT_S, numbers, running, take


async def test_events_are_numbered_from_one_without_gaps_and_carry_their_ids(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as bench:
        one, events = await bench.begin("a1", "a")
        events.emit("turn.started", model="m")
        events.emit("text.delta", text="长🙂")
        await events.complete(ended(one), {"reply": "done"})
        stored = await bench.stored()
        assert [(each.id, each.type) for each in stored] == [
            ("trn_a1:1", "turn.started"),
            ("trn_a1:2", "text.delta"),
            ("trn_a1:3", COMPLETED),
        ]
        ids = {"turn_id": "trn_a1", "conversation_id": "cnv_a"}
        assert [json.loads(each.data) for each in stored] == [
            {**ids, "model": "m"},
            {**ids, "text": "长🙂"},
            {**ids, "reply": "done"},
        ]
        assert await bench.stores.turns.get(one.id) == ended(one)


async def test_what_is_emitted_meanwhile_is_committed_together(tmp_path: Path) -> None:
    async with running(tmp_path, batch=100) as bench:
        bench.disk.held = anyio.Event()
        made = [await bench.begin(f"{n}", f"{n}") for n in range(3)]
        made[0][1].emit("notice", k=0)
        await anyio.wait_all_tasks_blocked()
        for k in range(20):
            for _, events in made:
                events.emit("notice", k=k)
        assert bench.log.backlog == 61
        bench.disk.held.set()
        async with anyio.create_task_group() as tasks:
            for one, events in made:
                tasks.start_soon(events.complete, ended(one), {})
        assert [len(write) for write in bench.disk.writes] == [1, 63]


async def test_nothing_is_shown_before_it_is_stored(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        one, events = await bench.begin("a1", "a")
        bench.disk.held = anyio.Event()
        async with bench.log.subscribe(one.conversation_id, 0) as reader:
            events.emit("notice", k=1)
            await anyio.wait_all_tasks_blocked()
            assert await reader.next(0) == []
            bench.disk.held.set()
            found = await take(reader, 1)
            assert found == await bench.stored()


async def test_an_ending_is_told_once_and_last(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        one, events = await bench.begin("a1", "a")
        events.emit("notice", k=1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(events.complete, ended(one), {"reply": "first"})
            await anyio.lowlevel.checkpoint()
            tasks.start_soon(events.complete, ended(one), {"reply": "second"})
        await events.complete(ended(one), {"reply": "third"})
        events.emit("notice", k=2)
        await bench.until_stored()
        stored = await bench.stored()
        assert [each.type for each in stored] == ["notice", COMPLETED]
        assert json.loads(stored[-1].data)["reply"] == "first"


async def test_a_cancelled_wait_for_the_ending_does_not_take_it_back(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        one, events = await bench.begin("a1", "a")
        with anyio.CancelScope() as scope:
            scope.cancel()
            await events.complete(ended(one), {})
        await bench.until_stored()
        assert await bench.stores.turns.get(one.id) == ended(one)


async def test_the_log_goes_on_where_the_store_ends(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        one, events = await bench.begin("a1", "a")
        events.emit("notice", k=1)
        events.emit("notice", k=2)
        await bench.until_stored()
    async with open_file(tmp_path) as database:
        stores = stores_on(database)
        log = await open_event_log(stores.events, stores.turns)
        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(log.run)
                again = await log.open_turn(one)
                async with log.subscribe(one.conversation_id, 0) as reader:
                    await again.complete(ended(one), {})
                    found = await take(reader, 3)
                tasks.cancel_scope.cancel()
        assert [(each.seq, each.n) for each in found] == [(1, 1), (2, 2), (3, 3)]


async def test_what_waits_when_the_log_is_stopped_is_stored_first(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        _, events = await bench.begin("a1", "a")
        bench.disk.full = True
        events.emit("notice", k=1)
        while not bench.disk.refused:
            await anyio.lowlevel.checkpoint()
        events.emit("notice", k=2)
        bench.disk.full = False
    async with running(tmp_path) as bench:
        assert numbers(await bench.stored()) == [1, 2]
