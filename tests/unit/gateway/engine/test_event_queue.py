"""A run's events wait for their reader."""

import anyio

from gateway.engine.events import ClientLost, EngineEvent, RunFinished, TextDelta
from gateway.engine.runs import EventQueue

LOST = ClientLost(exit_code=None)


async def read(queue: EventQueue) -> list[EngineEvent]:
    with anyio.fail_after(30):
        return [event async for event in queue.read()]


async def test_what_came_before_the_reader_is_kept_in_order() -> None:
    queue = EventQueue()
    events = [TextDelta(text=str(number)) for number in range(1000)]
    for event in events:
        queue.put(event)
    ended = [queue.is_ended]
    queue.put(LOST)
    assert [*ended, queue.is_ended] == [False, True]
    assert await read(queue) == [*events, LOST]
    assert await read(queue) == []


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
                queue.put(TextDelta(text=str(number)))
                tasks.cancel_scope.cancel()
        queue.put(LOST)
        await collect()
    assert got == [*[TextDelta(text=str(number)) for number in range(3)], LOST]
