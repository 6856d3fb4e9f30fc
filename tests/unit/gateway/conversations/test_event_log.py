"""The event log: numbering, commits, readers, and deletions."""

import json
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from gateway.conversations.model import COMPLETED, TurnEvent
from gateway.ids import ConversationId
from tests.conformance.suites.conversation_values import AT, ended
from tests.unit.gateway.conversations.faulty_log import (
    LONG_S,
    complete,
    numbers,
    running,
    take,
    texts,
)


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
        await complete(*made)
        assert [len(write) for write in bench.disk.writes] == [1, 60, 1, 1, 1]


@pytest.mark.parametrize("batch", [1, 9])
async def test_while_turns_end_what_others_do_is_stored_first(tmp_path: Path, batch: int) -> None:
    async with running(tmp_path, batch=batch) as bench:
        a, b, (_, writing) = made = [await bench.begin(name, name) for name in "abc"]
        bench.disk.held = anyio.Event()
        writing.emit("text.delta", text="1")
        async with anyio.create_task_group() as tasks:
            await anyio.wait_all_tasks_blocked()
            a[1].emit("text.delta", text="last")
            tasks.start_soon(complete, a, b)
            await anyio.wait_all_tasks_blocked()
            writing.emit("notice", text="2")
            bench.disk.held.set()
        await complete(made[2])
        text = [["trn_a:1"], ["trn_c:2"]] if batch == 1 else [["trn_a:1", "trn_c:2"]]
        assert bench.disk.writes == [["trn_c:1"], *text, ["trn_a:2"], ["trn_b:1"], ["trn_c:3"]]


async def test_nothing_is_shown_before_it_is_stored_and_then_a_delta_takes_no_other(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as bench:
        one, events = await bench.begin("a1", "a")
        bench.disk.held = anyio.Event()
        async with bench.log.subscribe(one.conversation_id, 0) as reader:
            events.emit("text.delta", text="a")
            await anyio.wait_all_tasks_blocked()
            for text in "bcd":
                events.emit("text.delta", text=text)
            assert await reader.next(0) == []
            bench.disk.held.set()
            found = await take(reader, 2)
            assert texts(found) == ["a", "bcd"]
            assert found == await bench.stored()


async def test_an_ending_is_told_once_and_last(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        one, events = await bench.begin("a1", "a")
        events.emit("notice", k=1)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await events.complete(ended(one), {"reply": "first"})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(events.complete, ended(one), {"reply": "second"})
        await events.complete(ended(one), {"reply": "third"})
        events.emit("notice", k=2)
        await bench.until_stored()
        stored = await bench.stored()
        assert [each.type for each in stored] == ["notice", COMPLETED]
        assert json.loads(stored[-1].data)["reply"] == "first", "though its wait was cancelled"
        assert await bench.stores.turns.get(one.id) == ended(one)


async def test_what_waits_when_the_log_is_stopped_is_stored_first(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        _, events = await bench.begin("a1", "a")
        bench.disk.full = True
        events.emit("notice", k=1)
        await bench.disk.until_refused()
        events.emit("notice", k=2)
        bench.disk.full = False
    async with running(tmp_path) as bench:
        assert numbers(await bench.stored()) == [1, 2]


async def test_a_reader_beside_the_writer_needs_no_store(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        one, events = await bench.begin("a1", "a")
        async with bench.log.subscribe(one.conversation_id, 0) as reader:
            for k in range(20):
                events.emit("notice", text=str(k))
                await take(reader, 1)
        assert bench.events.reads == 0
        assert bench.events.lasts <= 2, "the writer and the reader ask once where they begin"


async def test_a_reader_of_one_turn_hears_nothing_of_the_next(tmp_path: Path) -> None:
    async with running(tmp_path, window=4) as bench:
        one, first = await bench.begin("a1", "a")
        two, second = await bench.begin("a2", "a", create=False)
        got: list[TurnEvent] = []

        async def read() -> None:
            async with bench.log.subscribe(one.conversation_id, 0, turn_id=two.id) as reader:
                async for batch in reader.until_completed(LONG_S):
                    assert batch, "other turns' events woke it"
                    got.extend(batch)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            for k in range(10):
                first.emit("notice", text=str(k))
                if k % 2:
                    second.emit("notice", text=str(k))
                await bench.until_stored()
                await anyio.wait_all_tasks_blocked()
            await first.complete(ended(one), {})
            await second.complete(ended(two), {})
        assert numbers(got) == [1, 2, 3, 4, 5, 6]
        assert {each.turn_id for each in got} == {two.id}


async def test_what_is_shown_while_the_store_is_read_is_not_skipped(tmp_path: Path) -> None:
    """The window may run over between the store's answer, "nothing", and the reader's next step."""
    async with running(tmp_path, window=2) as bench:
        _, others = await bench.begin("a0", "a")
        others.emit("notice", text="so that a reader of the next turn begins by asking the store")
        await bench.until_stored()
        one, events = await bench.begin("a1", "a", create=False)

        async def overflow() -> None:
            bench.events.before_answer = None
            for k in range(9):
                events.emit("notice", text=str(k))
            await bench.until_stored()

        async with bench.log.subscribe(one.conversation_id, 0, turn_id=one.id) as reader:
            bench.events.before_answer = overflow
            assert numbers(await take(reader, 9)) == list(range(1, 10))


async def test_who_reads_first_after_a_start_misses_nothing_that_is_shown_meanwhile(
    tmp_path: Path,
) -> None:
    """The log does not know the conversation's last event yet, and the window runs over."""
    async with running(tmp_path) as bench:
        one, events = await bench.begin("a1", "a")
        for k in range(3):
            events.emit("notice", text=str(k))
            await bench.until_stored()
    async with running(tmp_path, window=2) as bench:
        events = await bench.log.open_turn(one)

        async def overflow() -> None:
            bench.events.before_last = None
            for k in range(9):
                events.emit("notice", text=str(k))
            await bench.until_stored()

        async with bench.log.subscribe(one.conversation_id, 3) as reader:
            bench.events.before_last = overflow
            assert numbers(await take(reader, 9)) == list(range(4, 13))


async def test_no_number_of_a_conversation_depends_on_another(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        made = [await bench.begin(name, name) for name in "ab"]
        for k in range(3):
            for _, events in made[: 1 + k % 2]:
                events.emit("notice", text=str(k))
        await complete(*made)
        assert [event.seq for event in await bench.stored("a")] == [1, 2, 3, 4]
        assert [event.seq for event in await bench.stored("b")] == [1, 2]
        assert await bench.log.feed.last_seq(made[0][0].conversation_id) == 4
    async with running(tmp_path) as bench:
        _, events = await bench.begin("b2", "b", create=False)
        events.emit("notice", text="later")
        await bench.until_stored()
        assert [event.seq for event in await bench.stored("b")] == [1, 2, 3]


async def test_leaving_frees_the_channel_whatever_ended_the_reading(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        one, events = await bench.begin("a1", "a")
        with pytest.raises(LookupError):
            async with bench.log.subscribe(one.conversation_id, 0):
                raise LookupError
        with anyio.CancelScope() as scope:
            async with bench.log.subscribe(one.conversation_id, 0) as reader:
                scope.cancel()
                await reader.next(LONG_S)
        assert bench.log.feed.channels == {}
        events.emit("notice", text="nobody reads")
        await bench.until_stored()
        assert bench.log.feed.channels == {}


async def test_a_call_that_is_cancelled_takes_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, window=3) as bench:
        one, events = await bench.begin("a1", "a")
        got: list[int] = []
        async with bench.log.subscribe(one.conversation_id, 0) as reader:
            for k in range(60):
                events.emit("notice", text=str(k))
                with anyio.CancelScope() as scope:
                    if k % 3 == 0:
                        scope.cancel()
                    async with anyio.create_task_group() as tasks:

                        async def soon(depth: int = k % 5) -> None:
                            for _ in range(depth):
                                await anyio.lowlevel.checkpoint()
                            scope.cancel()

                        tasks.start_soon(soon)
                        got += numbers(await reader.next(LONG_S))
                        tasks.cancel_scope.cancel()
            await bench.until_stored()
            while found := await reader.next(0):
                got += numbers(found)
        assert got == list(range(1, 61))


async def test_a_deletion_wakes_each_reader_once(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        one, _ = await bench.begin("a1", "a")
        woken: list[list[TurnEvent]] = []

        async def read() -> None:
            async with bench.log.subscribe(one.conversation_id, 0) as reader:
                woken.append(await reader.next(LONG_S))
                assert await reader.next(0.001) == []

        async with (
            bench.log.subscribe(one.conversation_id, 0) as busy,
            anyio.create_task_group() as tasks,
        ):
            for _ in range(3):
                tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            await bench.stores.conversations.delete(one.conversation_id, AT)
            bench.log.feed.wake(one.conversation_id)
            bench.log.feed.wake(ConversationId("cnv_none"))
            assert await busy.next(LONG_S) == [], "it was not waiting just then"
        assert woken == [[], [], []]


async def test_a_reader_is_given_no_more_at_once_than_it_may_hold(tmp_path: Path) -> None:
    """From the window and from the store alike; an event that is larger comes alone."""
    async with running(tmp_path) as bench:
        one, events = await bench.begin("a1", "a")
        async with (
            bench.log.subscribe(one.conversation_id, 0) as beside,
            bench.log.subscribe(one.conversation_id, 0) as behind,
        ):
            for size in [30_000, 30_000, 30_000, 200_000, 1, 1, *[90_000] * 20]:
                events.emit("notice", text="x" * size)
            await bench.until_stored()
            reads = bench.events.reads
            for reader in (beside, behind):
                got: list[TurnEvent] = []
                while len(got) < 26:
                    some = await reader.next(0)
                    assert len(some) == 1 or sum(len(event.data) for event in some) <= 65_536
                    got += some
                assert numbers(got) == list(range(1, 27))
            assert bench.events.reads > reads  # the window holds a million characters, not all
