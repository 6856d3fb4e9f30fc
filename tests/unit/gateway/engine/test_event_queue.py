"""A run's events wait for their reader."""

import anyio
import pytest

from gateway.engine import runs
from gateway.engine.events import (
    ClientLost,
    EngineEvent,
    MessageBegun,
    RunFinished,
    TextDelta,
    ThinkingDelta,
)
from gateway.engine.runs import EventQueue

LOST = ClientLost(exit_code=None)


async def read(queue: EventQueue) -> list[EngineEvent]:
    with anyio.fail_after(30):
        return [event async for event in queue.read()]


async def test_what_came_before_the_reader_is_kept_in_order() -> None:
    queue = EventQueue()
    events = [MessageBegun(context_tokens=number) for number in range(1000)]
    for event in events:
        queue.put(event)
    ended = [queue.is_ended]
    queue.put(LOST)
    assert [*ended, queue.is_ended] == [False, True]
    assert await read(queue) == [*events, LOST]
    assert await read(queue) == []


async def test_pieces_that_wait_are_joined_by_kind() -> None:
    queue = EventQueue()
    events: list[EngineEvent] = [
        *(ThinkingDelta(text=text) for text in ("想", "一想")),
        *(TextDelta(text=text) for text in "abc"),
        MessageBegun(),
        TextDelta(text="d"),
        LOST,
    ]
    for event in events:
        queue.put(event)
    assert await read(queue) == [
        ThinkingDelta(text="想一想"),
        TextDelta(text="abc"),
        MessageBegun(),
        TextDelta(text="d"),
        LOST,
    ]


async def test_the_first_piece_comes_at_once_and_later_ones_with_the_tick_or_the_next_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runs, "_GROUP_S", 1000)
    queue = EventQueue()
    got: list[EngineEvent] = []

    async def collect() -> None:
        async for event in queue.read():
            got.append(event)  # noqa: PERF401  what was got before the end counts

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(collect)
            for text in "abc":
                queue.put(TextDelta(text=text))
                await anyio.wait_all_tasks_blocked()
            assert got == [TextDelta(text="a")]
            queue.put(LOST)
    assert got == [TextDelta(text="a"), TextDelta(text="bc"), LOST]


async def test_the_tick_wakes_the_reader() -> None:
    queue = EventQueue()
    reading = queue.read()
    with anyio.fail_after(10):
        queue.put(TextDelta(text="a"))
        assert await anext(reading) == TextDelta(text="a")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(put_when_all_wait, queue, TextDelta(text="b"))
            assert await anext(reading) == TextDelta(text="b")


async def put_when_all_wait(queue: EventQueue, event: EngineEvent) -> None:
    await anyio.wait_all_tasks_blocked()
    queue.put(event)


async def test_the_last_event_is_the_last() -> None:
    queue = EventQueue()
    finished = RunFinished(subtype="success", is_error=False, result="")
    queue.put(finished)
    queue.put(LOST)
    assert await read(queue) == [finished]


async def test_a_waiting_reader_gets_each_event_and_a_cancelled_one_loses_none() -> None:
    queue = EventQueue()
    got: list[EngineEvent] = []

    async def collect() -> None:
        async for event in queue.read():
            got.append(event)  # noqa: PERF401  what was got before the end counts

    with anyio.fail_after(30):
        for number in range(3):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(collect)
                await anyio.wait_all_tasks_blocked()
                queue.put(MessageBegun(context_tokens=number))
                tasks.cancel_scope.cancel()
        queue.put(LOST)
        await collect()
    assert got == [*[MessageBegun(context_tokens=number) for number in range(3)], LOST]
