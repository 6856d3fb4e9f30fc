"""The event log on a store that fails for a while, or falls behind: nothing is lost."""

import errno
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from gateway.conversations.model import COMPLETED
from tests.conformance.suites.conversation_values import ended
from tests.unit.gateway.conversations.faulty_log import numbers, running, take, texts


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


async def test_a_delta_that_is_being_stored_takes_no_other(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        _, events = await bench.begin("a1", "a")
        bench.disk.held = anyio.Event()
        events.emit("text.delta", text="a")
        await anyio.wait_all_tasks_blocked()
        for text in "bcd":
            events.emit("text.delta", text=text)
        bench.disk.held.set()
        await bench.until_stored()
        assert texts(await bench.stored()) == ["a", "bcd"]


async def test_events_outlive_an_error_that_no_store_foresaw(tmp_path: Path) -> None:
    async with running(tmp_path) as bench:
        one, events = await bench.begin("a1", "a")
        bench.disk.errors = [OSError(errno.EMFILE, "Too many open files") for _ in range(4)]
        events.emit("notice", text="x")
        await events.complete(ended(one), {})
        assert bench.disk.errors == []
        assert texts(await bench.stored()) == ["x", None]
