"""The event log on real stores: stored before shown, each once, in order, whatever happens."""
# ruff: noqa: SLF001
# what is waited for has no event of its own; and it must be seen that a channel is freed

import json
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import TaskGroup
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.conversations.eventlog import EventLog, Subscription, TurnEvents, open_event_log
from gateway.conversations.model import COMPLETED, Turn, TurnEvent
from gateway.conversations.sqlite.events import SqliteEventStore
from gateway.conversations.sqlite.turns import SqliteTurnStore
from gateway.conversations.testing.values import Stores, conversation, ended, turn
from gateway.ids import ConversationId, TurnId
from memory.errors import StoreConflict, StoreUnavailable
from memory.stores.sqlite.database import Database
from tests.support.stores import open_file, stores_on

WAIT_S = 60
LONG_S = 1000.0
"""A reader's patience in tests that never wait so long."""


class Disk:
    """Stands before the stores' writes: lets them through, fails them, or holds them."""

    def __init__(self) -> None:
        self.full = False
        self.conflicts: set[str] = set()
        self.writes: list[list[str]] = []
        self.refused = 0
        self.held: anyio.Event | None = None
        self.lost_answers = 0
        """So many commits succeed and are reported as failed."""

    async def write(self, events: Sequence[TurnEvent], work: Callable[[], Awaitable[None]]) -> None:
        if self.held is not None:
            await self.held.wait()
        await anyio.lowlevel.checkpoint()
        if self.full:
            self.refused += 1
            raise StoreUnavailable("The database cannot be written: the disk is full.")
        if self.conflicts & {one.id for one in events}:
            raise StoreConflict("What is stored already contradicts this.")
        await work()
        self.writes.append([one.id for one in events])
        if self.lost_answers:
            self.lost_answers -= 1
            raise StoreUnavailable("The database cannot be written: the disk failed or is full.")


class FaultyEvents(SqliteEventStore):
    def __init__(self, database: Database, disk: Disk) -> None:
        super().__init__(database)
        self._disk = disk
        self.reads = 0
        self.before_answer: Callable[[], Awaitable[None]] | None = None

    async def append(self, events: Sequence[TurnEvent]) -> None:
        await self._disk.write(events, lambda: super(FaultyEvents, self).append(events))

    async def after(
        self,
        conversation_id: ConversationId,
        seq: int,
        *,
        limit: int,
        turn_id: TurnId | None = None,
    ) -> Sequence[TurnEvent]:
        found = await super().after(conversation_id, seq, limit=limit, turn_id=turn_id)
        self.reads += 1
        if self.before_answer is not None:
            await self.before_answer()
        return found


class FaultyTurns(SqliteTurnStore):
    def __init__(self, database: Database, disk: Disk) -> None:
        super().__init__(database)
        self._disk = disk

    async def finish(self, turns: Sequence[Turn], events: Sequence[TurnEvent]) -> None:
        await self._disk.write(events, lambda: super(FaultyTurns, self).finish(turns, events))


class Bench:
    """A log on real stores with a disk that can fail."""

    def __init__(self, database: Database, **options: Any) -> None:
        self.disk = Disk()
        self.events = FaultyEvents(database, self.disk)
        self.stores: Stores = stores_on(database)
        self.log = EventLog(
            self.events, FaultyTurns(database, self.disk), 0, **{"retry_s": 0.001, **options}
        )

    async def begin(self, name: str, of: str, *, create: bool = True) -> tuple[Turn, TurnEvents]:
        one = await self.stores.turns.accept(
            turn(name, of), create=conversation(of) if create else None
        )
        return one, self.log.open_new_turn(one)

    async def stored(self, of: str = "a") -> list[TurnEvent]:
        return list(await self.stores.events.after(ConversationId(f"cnv_{of}"), 0, limit=1_000_000))

    async def until_stored(self) -> None:
        while self.log.backlog:
            await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def running(directory: Path, **options: Any) -> AsyncIterator[Bench]:
    async with open_file(directory) as database:
        bench = Bench(database, **options)
        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(bench.log.run)
                yield bench
                tasks.cancel_scope.cancel()


async def take(subscription: Subscription, count: int) -> list[TurnEvent]:
    found: list[TurnEvent] = []
    while len(found) < count:
        found += await subscription.next(LONG_S)
    return found


def texts(events: Sequence[TurnEvent]) -> list[Any]:
    return [json.loads(one.data).get("text") for one in events]


def numbers(events: Sequence[TurnEvent]) -> list[int]:
    return [one.n for one in events]


# --- writing


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


async def test_fields_are_taken_as_they_are_when_they_are_emitted(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        _, events = await bench.begin("a1", "a")
        given = {"x": [1]}
        events.emit("tool.started", input=given)
        given["x"].append(2)
        await bench.until_stored()
        assert json.loads((await bench.stored())[0].data)["input"] == {"x": [1]}


async def test_nothing_that_is_emitted_can_stop_the_log(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        one, events = await bench.begin("a1", "a")
        events.emit("notice", code=object(), message="\ud800", nan=float("nan"), path=tmp_path)
        await events.complete(ended(one, result={"reply": "\ud800"}), {"reply": "\ud800"})
        assert numbers(await bench.stored()) == [1, 2]


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


async def test_a_batch_is_bounded(tmp_path: Path) -> None:
    async with running(tmp_path, batch=10) as bench:
        _, events = await bench.begin("a1", "a")
        for k in range(35):
            events.emit("notice", k=k)
        await bench.until_stored()
        assert [len(write) for write in bench.disk.writes] == [10, 10, 10, 5]


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


# --- a store that fails


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
            async with anyio.create_task_group() as tasks:
                for one, events in made:
                    tasks.start_soon(events.complete, ended(one), {})
            assert numbers(await take(reader, 41)) == list(range(1, 42))
        for name in "ab":
            stored = await bench.stored(name)
            assert texts(stored) == [*map(str, range(40)), None]


async def test_an_ending_waits_for_a_store_that_fails(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        one, events = await bench.begin("a1", "a")
        bench.disk.full = True
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(events.complete, ended(one), {})
            while bench.disk.refused < 3:
                await anyio.lowlevel.checkpoint()
            assert bench.log.backlog == 1
            assert await bench.stores.turns.get(one.id) == one
            bench.disk.full = False
        assert await bench.stores.turns.get(one.id) == ended(one)


async def test_a_commit_whose_answer_was_lost_is_stored_and_shown_once(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        one, events = await bench.begin("a1", "a")
        bench.disk.lost_answers = 2
        async with bench.log.subscribe(one.conversation_id, 0) as reader:
            for k in range(3):
                events.emit("notice", text=str(k))
            await events.complete(ended(one), {})
            assert numbers(await take(reader, 4)) == [1, 2, 3, 4]
            assert await reader.next(0) == []
        assert numbers(await bench.stored()) == [1, 2, 3, 4]


async def test_one_turns_fault_does_not_stop_the_others(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        made = [await bench.begin(name, name) for name in "abc"]
        bench.disk.conflicts = {"trn_b:1"}
        for one, events in made:
            events.emit("notice", text=one.id)
        async with anyio.create_task_group() as tasks:
            for one, events in made:
                tasks.start_soon(events.complete, ended(one), {})
        assert [numbers(await bench.stored(name)) for name in "abc"] == [[1, 2], [2], [1, 2]]


async def test_a_failure_is_logged_once_and_its_end_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log's disk may be the one that is full."""
    async with running(tmp_path) as bench:
        _, events = await bench.begin("a1", "a")
        bench.disk.full = True
        events.emit("notice", k=1)
        while bench.disk.refused < 5:
            await anyio.lowlevel.checkpoint()
        bench.disk.full = False
        await bench.until_stored()
    assert [record.message for record in caplog.records] == [
        "events_not_stored",
        "events_stored_again",
    ]


async def test_far_behind_deltas_are_joined_and_nothing_of_them_is_lost(tmp_path: Path) -> None:
    async with running(tmp_path, batch=8, merge_from=20) as bench:
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
        async with anyio.create_task_group() as tasks:
            for one, events in made:
                tasks.start_soon(events.complete, ended(one), {})
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


async def test_deltas_are_not_joined_while_the_store_keeps_up(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        _, events = await bench.begin("a1", "a")
        for k in range(100):
            events.emit("text.delta", text=str(k))
        await bench.until_stored()
        assert texts(await bench.stored()) == [*map(str, range(100))]


async def test_a_delta_that_is_being_stored_takes_no_other(tmp_path: Path) -> None:
    async with running(tmp_path, merge_from=0) as bench:
        _, events = await bench.begin("a1", "a")
        bench.disk.held = anyio.Event()
        events.emit("text.delta", text="a")
        await anyio.wait_all_tasks_blocked()
        for text in "bcd":
            events.emit("text.delta", text=text)
        bench.disk.held.set()
        await bench.until_stored()
        assert texts(await bench.stored()) == ["a", "bcd"]


async def test_what_waits_grows_with_the_text_alone(tmp_path: Path) -> None:
    """A disk that stays full while a model streams: a million words are some megabytes."""
    async with running(tmp_path, merge_from=100) as bench:
        _, events = await bench.begin("a1", "a")
        bench.disk.full = True
        for _ in range(100):
            events.emit("text.delta", text="word ")
        tracemalloc.start()
        try:
            for _ in range(100_000):
                events.emit("text.delta", text="word ")
            grown, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert bench.log.backlog <= 101
        assert grown < 100_000 * 32
        bench.disk.full = False
        await bench.until_stored()
        assert "".join(texts(await bench.stored())) == "word " * 100_100


# --- reading


async def test_a_reader_gets_what_was_before_and_then_what_comes(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        one, events = await bench.begin("a1", "a")
        for k in range(5):
            events.emit("notice", text=str(k))
        await bench.until_stored()
        async with bench.log.subscribe(one.conversation_id, 2) as reader:
            assert numbers(await take(reader, 3)) == [3, 4, 5]
            events.emit("notice", text="live")
            assert numbers(await take(reader, 1)) == [6]
            assert await reader.next(0) == []


async def test_a_reader_beside_the_writer_needs_no_store(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        one, events = await bench.begin("a1", "a")
        async with bench.log.subscribe(one.conversation_id, 0) as reader:
            for k in range(20):
                events.emit("notice", text=str(k))
                await take(reader, 1)
        assert bench.events.reads == 0


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


async def test_silence_gives_an_empty_list_and_another_turns_events_do_not_end_it(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as bench:
        one, first = await bench.begin("a1", "a")
        two, _ = await bench.begin("a2", "a", create=False)
        got: list[list[TurnEvent]] = []
        async with bench.log.subscribe(one.conversation_id, 0, turn_id=two.id) as reader:

            async def read() -> None:
                got.append(await reader.next(LONG_S))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                first.emit("notice", text="not yours")
                await bench.until_stored()
                await anyio.wait_all_tasks_blocked()
                assert got == []
                tasks.cancel_scope.cancel()
            assert await reader.next(0.001) == []


async def test_what_is_shown_while_the_store_is_read_is_not_skipped(tmp_path: Path) -> None:
    """The window may run over between the store's answer, "nothing", and the reader's next step."""
    async with running(tmp_path, window=2) as bench:
        _, others = await bench.begin("b1", "b")
        others.emit("notice", text="so that a new reader begins by asking the store")
        await bench.until_stored()
        one, events = await bench.begin("a1", "a")

        async def overflow() -> None:
            bench.events.before_answer = None
            for k in range(9):
                events.emit("notice", text=str(k))
            await bench.until_stored()

        async with bench.log.subscribe(one.conversation_id, 0) as reader:
            bench.events.before_answer = overflow
            assert numbers(await take(reader, 9)) == list(range(1, 10))


async def test_a_reader_without_events_waits(tmp_path: Path) -> None:
    async with (
        running(tmp_path) as bench,
        bench.log.subscribe(ConversationId("cnv_none"), 0) as reader,
    ):
        assert await reader.next(0) == []
        assert await reader.next(0.001) == []


async def test_two_hundred_readers_each_get_everything_once(tmp_path: Path) -> None:
    async with running(tmp_path, window=16) as bench:
        one, events = await bench.begin("a1", "a")
        got: list[list[int]] = []

        async def read(after: int) -> None:
            async with bench.log.subscribe(one.conversation_id, after, turn_id=one.id) as reader:
                mine: list[int] = []
                got.append(mine)
                async for batch in reader.until_completed(LONG_S):
                    mine.extend(numbers(batch))

        async with anyio.create_task_group() as tasks:
            for n in range(200):
                tasks.start_soon(read, 0)
                if n % 10 == 0:
                    events.emit("notice", text=str(n))
                    await anyio.lowlevel.checkpoint()
            await events.complete(ended(one), {})
        assert got == [list(range(1, 22))] * 200
        assert bench.log._channels == {}


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
        assert bench.log._channels == {}
        events.emit("notice", text="nobody reads")
        await bench.until_stored()
        assert bench.log._channels == {}


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
            await bench.stores.conversations.delete(one.conversation_id)
            bench.log.end_conversation(one.conversation_id)
            bench.log.end_conversation(ConversationId("cnv_none"))
            assert await busy.next(LONG_S) == [], "it was not waiting just then"
        assert woken == [[], [], []]


async def test_events_of_a_deleted_conversation_hold_up_nobody(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        one, gone = await bench.begin("a1", "a")
        two, kept = await bench.begin("b1", "b")
        await bench.stores.conversations.delete(one.conversation_id)
        gone.emit("notice", text="late")
        kept.emit("notice", text="fine")
        await gone.complete(ended(one), {})
        await kept.complete(ended(two), {})
        assert numbers(await bench.stored("b")) == [1, 2]
        assert await bench.stored("a") == []


# --- all of it at once

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("emit"), st.integers(0, 2), st.integers(1, 9)),
        st.tuples(st.just("read"), st.integers(0, 2), st.integers(0, 30)),
        st.tuples(st.just("one"), st.integers(0, 2), st.integers(0, 5)),
        st.tuples(st.just("rest"), st.integers(0, 0), st.integers(0, 4)),
        st.tuples(st.just("disk"), st.integers(0, 0), st.integers(0, 3)),
        st.tuples(st.just("next"), st.integers(0, 2), st.integers(0, 0)),
    ),
    max_size=40,
)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS, window=st.integers(1, 6), batch=st.integers(1, 5))
def test_readers_miss_nothing_and_see_nothing_twice(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, int, int]],
    window: int,
    batch: int,
) -> None:
    """Random emits over three conversations, readers that join anywhere, and a disk that fails."""
    directory = tmp_path_factory.mktemp("log")
    anyio.run(_play, directory, steps, window, batch)


@dataclass(frozen=True, slots=True)
class Reading:
    """A reader that joined, and what it got."""

    which: int
    after: int
    turn_id: TurnId | None
    got: list[TurnEvent] = field(default_factory=list)

    def expected(self, stored: list[list[TurnEvent]]) -> list[TurnEvent]:
        return [
            one
            for one in stored[self.which]
            if one.seq > self.after and self.turn_id in {None, one.turn_id}
        ]


class Play:
    """Three conversations, each with a turn that is being written, and any number of readers."""

    def __init__(self, bench: Bench, readers: TaskGroup) -> None:
        self.bench = bench
        self.readers = readers
        self.turns: list[list[Turn]] = [[], [], []]
        self.writing: list[TurnEvents] = []
        self.readings: list[Reading] = []

    async def begin(self) -> None:
        for which in range(3):
            one, events = await self.bench.begin(f"{which}-0", str(which))
            self.turns[which].append(one)
            self.writing.append(events)

    async def step(self, what: str, which: int, much: int) -> None:
        match what:
            case "emit":
                for k in range(much):
                    self.writing[which].emit("notice", text=str(k))
            case "read":
                self.join(Reading(which, much, None))
            case "one":
                known = self.turns[which]
                self.join(Reading(which, 0, known[much % len(known)].id))
            case "disk":
                self.bench.disk.full = much == 0
                self.bench.disk.lost_answers = int(much == 1)
            case "next":
                self.bench.disk.full = False
                await self.end(which)
                name = f"{which}-{len(self.turns[which])}"
                one, events = await self.bench.begin(name, str(which), create=False)
                self.turns[which].append(one)
                self.writing[which] = events
            case _:
                for _ in range(much):
                    await anyio.lowlevel.checkpoint()

    def join(self, reading: Reading) -> None:
        self.readings.append(reading)
        self.readers.start_soon(self.read, reading)

    async def read(self, reading: Reading) -> None:
        subscription = self.bench.log.subscribe(
            ConversationId(f"cnv_{reading.which}"), reading.after, turn_id=reading.turn_id
        )
        async with subscription as reader:
            while True:
                reading.got.extend(await reader.next(LONG_S))

    async def end(self, which: int) -> None:
        await self.writing[which].complete(ended(self.turns[which][-1]), {})

    async def end_all(self) -> list[list[TurnEvent]]:
        """End the turns, wait for the readers, and give what is stored."""
        self.bench.disk.full = False
        for which in range(3):
            await self.end(which)
        stored = [await self.bench.stored(str(which)) for which in range(3)]
        for reading in self.readings:
            while len(reading.got) < len(reading.expected(stored)):
                await anyio.lowlevel.checkpoint()
        await anyio.wait_all_tasks_blocked()
        return stored


async def _play(
    directory: Path, steps: list[tuple[str, int, int]], window: int, batch: int
) -> None:
    async with (
        running(directory, window=window, batch=batch, retry_s=0) as bench,
        anyio.create_task_group() as readers,
    ):
        play = Play(bench, readers)
        await play.begin()
        for step in steps:
            await play.step(*step)
        stored = await play.end_all()
        readers.cancel_scope.cancel()
    for reading in play.readings:
        assert reading.got == reading.expected(stored)
    everything = [one for events in stored for one in events]
    assert sorted(one.seq for one in everything) == list(range(1, len(everything) + 1))
    for one in [one for turns in play.turns for one in turns]:
        own = [event for event in everything if event.turn_id == one.id]
        assert numbers(own) == list(range(1, len(own) + 1))
        assert [event.type == COMPLETED for event in own] == [*[False] * (len(own) - 1), True]
