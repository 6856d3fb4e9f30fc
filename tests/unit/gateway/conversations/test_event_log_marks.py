"""What the event log stores between a turn's events: that all before is stored, and how the turn ended."""

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from gateway.ids import TurnId
from memory.errors import StoreConflict
from tests.conformance.suites.conversation_values import AT, conversation, ended, event, turn
from tests.support.quick_databases import be_as_shipped
from tests.unit.gateway.conversations.faulty_log import numbers, running, take, texts


async def test_a_flush_returns_when_all_that_was_emitted_is_stored(tmp_path: Path) -> None:
    async with running(tmp_path, batch=2) as bench:
        one, events = await bench.begin("a1", "a")
        await events.flush()
        for k in range(5):
            events.emit("notice", text=str(k))
        await events.flush()
        assert texts(await bench.stored()) == [*map(str, range(5))]
        events.emit("notice", text="later")
        await events.complete(ended(one), {})
        assert numbers(await bench.stored()) == list(range(1, 8))


async def test_a_flush_waits_for_a_store_that_fails(tmp_path: Path) -> None:
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
            while bench.disk.refused < 3:
                await anyio.lowlevel.checkpoint()
            assert not flushed.is_set()
            bench.disk.full = False
        assert flushed.is_set()


async def test_an_ending_that_is_noted_leaves_the_turn_running_and_is_no_event(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as bench:
        one, events = await bench.begin("a1", "a")
        async with bench.log.subscribe(one.conversation_id, 0) as reader:
            events.emit("notice", text="before")
            await events.note_ending(ended(one))
            assert texts(await bench.stored()) == ["before"]
            assert await bench.stores.turns.get(one.id) == replace(ended(one), state="running")
            assert list(await bench.stores.turns.unfinished()) == [
                replace(ended(one), state="running")
            ]
            await events.complete(ended(one), {})
            assert await bench.stores.turns.get(one.id) == ended(one)
            assert numbers(await take(reader, 2)) == [1, 2]


async def test_after_a_conflict_the_log_goes_on_behind_what_is_stored(tmp_path: Path) -> None:
    """Somebody else has written: one such batch is sorted out, and none after it is refused."""
    async with running(tmp_path) as bench:
        one, events = await bench.begin("a1", "a")
        other, _ = await bench.begin("b1", "b")
        await bench.stores.events.append([event(n, other, n) for n in range(1, 6)])
        events.emit("notice", text="first")
        await bench.until_stored()
        events.emit("notice", text="second")
        await events.complete(ended(one), {})
        assert [(each_event.seq, each_event.n) for each_event in await bench.stored("a")] == [
            (6, 1),
            (7, 2),
            (8, 3),
        ]
        assert bench.disk.writes == [["trn_a1:1"], ["trn_a1:2", "trn_a1:3"]]


async def test_only_text_and_an_ending_that_is_stored_already_do_not_wait_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_as_shipped(monkeypatch)
    async with running(tmp_path) as bench:
        one, events = await bench.begin("a1", "a")
        said: list[str] = []
        await bench.database.write(lambda writer: writer.set_trace_callback(said.append))
        for kinds in (["text.delta"], ["thinking.delta", "notice"], ["text.delta"]):
            for kind in kinds:
                events.emit(kind, text="a")
            await bench.until_stored()
        await events.note_ending(ended(one))
        await events.complete(ended(one), {}, is_synced=False)
        levels = [line.split("=")[1] for line in said if line.startswith("PRAGMA synchronous=")]
        assert levels == ["NORMAL", "FULL", "NORMAL", "FULL", "NORMAL"]


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
            while not bench.disk.refused:
                await anyio.lowlevel.checkpoint()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(begin, "a2")
                while bench.log.backlog < 3:
                    await anyio.lowlevel.checkpoint()
                bench.disk.full = False
            assert texts(await take(reader, 3)) == ["waits", "a2", "then"]
        assert texts(await bench.stored()) == ["a1", "then", "waits", "a2", "then"]
