"""The event log on a store that fails, and flushes and endings."""

import errno
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from gateway.conversations.model import COMPLETED
from gateway.ids import TurnId
from memory.errors import StoreConflict
from tests.conformance.suites.conversation_values import AT, conversation, ended, event, turn
from tests.support.quick_databases import be_as_shipped, levels_of_writes
from tests.unit.gateway.conversations.faulty_log import complete, numbers, running, take, texts


async def test_a_store_that_fails_for_a_while_loses_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, batch=7) as bench:
        made = [await bench.begin(name, name) for name in "ab"]
        async with bench.log.subscribe(made[0][0].conversation_id, 0) as reader:
            for k in range(40):
                bench.disk.full = 10 <= k < 30
                for _, events in made:
                    events.emit("notice", text=str(k))
                while bench.disk.full and not bench.disk.refused:
                    await anyio.lowlevel.checkpoint()
                await anyio.lowlevel.checkpoint()
            await complete(*made)
            assert numbers(await take(reader, 41)) == list(range(1, 42))
        for name in "ab":
            stored = await bench.stored(name)
            assert texts(stored) == [*map(str, range(40)), None]


async def test_whoever_waits_is_told_when_nothing_could_be_stored_for_too_long(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, patience_s=0.01) as bench:
        _, events = await bench.begin("a1", "a")
        with anyio.fail_after(30):
            for _ in range(2):
                bench.disk.full = True
                events.emit("notice", text="x")
                await bench.log.until_stuck()
                bench.disk.full = False
                while bench.log.backlog:
                    await anyio.lowlevel.checkpoint()
                with anyio.move_on_after(0) as waiting:
                    await bench.log.until_stuck()
                assert waiting.cancelled_caught, "it is got over"


async def test_a_commit_that_broke_or_whose_answer_was_lost_is_stored_and_shown_once(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as bench:
        one, events = await bench.begin("a1", "a")
        bench.disk.errors = [OSError(errno.EMFILE, "Too many open files") for _ in range(4)]
        bench.disk.lost_answers = 2
        async with bench.log.subscribe(one.conversation_id, 0) as reader:
            for k in range(3):
                events.emit("notice", text=str(k))
            await events.complete(ended(one), {})
            assert numbers(await take(reader, 4)) == [1, 2, 3, 4]
            assert await reader.next(0) == []
        assert (bench.disk.errors, bench.disk.lost_answers) == ([], 0)
        assert texts(await bench.stored()) == ["0", "1", "2", None]
        assert numbers(await bench.stored()) == [1, 2, 3, 4]


async def test_an_ending_whose_answer_was_lost_stays_ahead_of_others_text(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        a, b, (_, writing) = [await bench.begin(name, name) for name in "abc"]
        bench.disk.held, bench.disk.lost_answers = anyio.Event(), 1
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(complete, a)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(complete, b)
            writing.emit("text.delta", text="x")
            await anyio.wait_all_tasks_blocked()
            bench.disk.held.set()
        assert bench.disk.writes == [["trn_a:1"], ["trn_a:1", "trn_c:1"], ["trn_b:1"]]
        assert [event.seq for event in await bench.stored("a")] == [1]


async def test_one_turns_fault_does_not_stop_the_others(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        made = [await bench.begin(name, name) for name in "abc"]
        bench.disk.conflicts = {"trn_b:1"}
        for one, events in made:
            events.emit("notice", text=one.id)
        await complete(*made)
        assert [numbers(await bench.stored(name)) for name in "abc"] == [[1, 2], [2], [1, 2]]


async def test_a_flush_waits_for_a_store_that_fails_and_that_is_logged_once_and_its_end_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log's disk may be the one that is full."""
    async with running(tmp_path) as bench:
        _, events = await bench.begin("a1", "a")
        bench.disk.full = True
        events.emit("notice", text="x")
        flushed = anyio.Event()

        async def flush() -> None:
            await events.flush()
            flushed.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(flush)
            await bench.disk.until_refused(5)
            assert not flushed.is_set()
            bench.disk.full = False
        assert flushed.is_set()
        await bench.until_stored()
    told = ["events_not_stored", "events_stored_again"]
    assert [record.message for record in caplog.records] == told


async def test_deltas_that_wait_are_joined_and_nothing_of_them_is_lost(tmp_path: Path) -> None:
    async with running(tmp_path, batch=8) as bench:
        made = [await bench.begin(name, name) for name in "ab"]
        bench.disk.full = True
        for k in range(300):
            for _, events in made:
                events.emit("text.delta", text=f"{k}长,")
            if k == 200:
                made[0][1].emit("notice", text="!")
                made[0][1].emit("thinking.delta", text="hm")
            if k % 10 == 0:
                await anyio.lowlevel.checkpoint()
        assert bench.log.backlog < 40
        bench.disk.full = False
        await complete(*made)
        for name in "ab":
            stored = await bench.stored(name)
            assert numbers(stored) == list(range(1, len(stored) + 1))
            assert stored[-1].type == COMPLETED
            deltas = [each for each in stored if each.type == "text.delta"]
            assert "".join(texts(deltas)) == "".join(f"{k}长," for k in range(300))
        stored = await bench.stored("a")
        at = [each.type for each in stored].index("notice")
        assert [each.type for each in stored[at : at + 3]] == [
            "notice",
            "thinking.delta",
            "text.delta",
        ]
        assert texts(stored)[at + 2].startswith("201长,")


async def test_after_a_conflict_the_log_goes_on_behind_what_is_stored(tmp_path: Path) -> None:
    """Somebody else has written: one such batch is sorted out, and none after it is refused."""
    async with running(tmp_path) as bench:
        one, events = await bench.begin("a1", "a")
        other, _ = await bench.begin("a2", "a", create=False)
        events.emit("notice", text="known")
        await bench.until_stored()
        await bench.stores.events.append([event(n, other, n) for n in range(2, 7)])
        events.emit("notice", text="first")
        await bench.until_stored()
        events.emit("notice", text="second")
        await events.complete(ended(one), {})
        own = [each_event for each_event in await bench.stored("a") if each_event.turn_id == one.id]
        assert [(each_event.seq, each_event.n) for each_event in own] == [
            (1, 1),
            (7, 2),
            (8, 3),
            (9, 4),
        ]
        assert bench.disk.writes == [["trn_a1:1"], ["trn_a1:2"], ["trn_a1:3", "trn_a1:4"]]


async def test_only_text_what_memory_showed_and_an_ending_that_is_stored_do_not_wait_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_as_shipped(monkeypatch)
    async with running(tmp_path) as bench:
        one, events = await bench.begin("a1", "a")
        levels = await levels_of_writes(bench.database)
        for kinds in (
            ["text.delta"],
            ["thinking.delta", "notice"],
            ["memory.injected"],
            ["text.delta"],
        ):
            for kind in kinds:
                events.emit(kind, text="a")
            await bench.until_stored()
        await events.note_ending(ended(one))
        await events.complete(ended(one), {}, is_synced=False)
        assert levels == ["NORMAL", "FULL", "NORMAL", "NORMAL", "FULL", "NORMAL"]


async def test_a_turns_first_event_is_stored_and_shown_with_the_turn(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        await bench.stores.conversations.create(conversation())
        new = turn(state="running", started_at=AT)

        async def begin(name: str) -> None:
            given = replace(new, id=TurnId(f"trn_{name}"))
            events = bench.log.open_new_turn(given)
            await bench.log.begin_turn(
                events,
                "turn.started",
                {"text": name},
                lambda first: bench.stores.turns.accept(given, events=first),
            )
            events.emit("notice", text="then")
            await events.flush()

        async with bench.log.subscribe(new.conversation_id, 0) as reader:
            await begin("a1")
            assert texts(await take(reader, 2)) == ["a1", "then"]
            with pytest.raises(StoreConflict):
                await begin("a1")
            bench.disk.full = True
            failing = await bench.stores.turns.accept(turn("x"))
            bench.log.open_new_turn(failing).emit("notice", text="waits")
            await bench.disk.until_refused()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(begin, "a2")
                while bench.log.backlog < 3:
                    await anyio.lowlevel.checkpoint()
                bench.disk.full = False
            assert texts(await take(reader, 3)) == ["waits", "a2", "then"]
            await bench.stores.events.append([event(6, failing, 2)])  # somebody else has written
            with pytest.raises(StoreConflict):
                await begin("a3")
            await begin("a3")
            assert texts(await take(reader, 2)) == ["a3", "then"]
        told = [event.seq for event in await bench.stored()]
        assert texts(await bench.stored()) == [
            "a1",
            "then",
            "waits",
            "a2",
            "then",
            None,
            "a3",
            "then",
        ]
        assert told == list(range(1, 9))
