"""Whatever is written and read at once, and whatever the disk does: readers miss nothing."""

from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import TaskGroup
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.conversations.event_log import TurnEvents
from gateway.conversations.model import COMPLETED, Turn, TurnEvent
from gateway.ids import ConversationId, TurnId
from tests.conformance.suites.conversation_values import ended
from tests.unit.gateway.conversations.faulty_log import LONG_S, Bench, numbers, running

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
    max_examples=25,
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
            event
            for event in stored[self.which]
            if event.seq > self.after and self.turn_id in {None, event.turn_id}
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
                    self.writing[which].emit("text.delta" if k % 3 else "notice", text=str(k))
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
        async with anyio.create_task_group() as tasks:
            for which in range(3):
                tasks.start_soon(self.end, which)
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
    everything = [each_event for events in stored for each_event in events]
    for events in stored:
        assert [entry.seq for entry in events] == list(range(1, len(events) + 1))
    for item in [item for turns in play.turns for item in turns]:
        own = [event for event in everything if event.turn_id == item.id]
        assert numbers(own) == list(range(1, len(own) + 1))
        assert [event.type == COMPLETED for event in own] == [*[False] * (len(own) - 1), True]
