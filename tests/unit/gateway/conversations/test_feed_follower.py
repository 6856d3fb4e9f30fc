"""What another server has stored, brought to readers while this one looks, loses its place or fails."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel

from gateway.conversations.doorbell import Doorbell, Ring
from gateway.conversations.feed_follower import FeedFollower
from gateway.conversations.model import CHANGED, Turn, TurnEvent
from gateway.conversations.sql.events import EventStore
from gateway.ids import ConversationId, NodeId
from memory.background import keep_running
from memory.errors import StoreDamaged, StoreUnavailable
from tests.conformance.suites.conversation_values import event, turn
from tests.unit.gateway.conversations.faulty_log import (
    LONG_S,
    Bench,
    numbers,
    running,
    take,
)

A = ConversationId("cnv_a")


class Wire:
    """Carries what a test sends, and nothing else."""

    def __init__(self) -> None:
        self.on_payload: Callable[[str], None] = lambda _: None
        self.failures = 0
        """So many texts are not sent."""
        self.sent: list[str] = []

    async def send(self, payload: str) -> None:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("The database cannot be reached.")
        self.sent.append(payload)

    async def listen(
        self, on_payload: Callable[[str], None], on_listening: Callable[[], None]
    ) -> None:
        self.on_payload = on_payload
        on_listening()
        await anyio.sleep_forever()

    async def close(self) -> None:
        """Do nothing."""


class Other(EventStore):
    """Another server: it stores events and rings for them, and holds every conversation."""

    def __init__(self, bench: Bench, wire: Wire, first: Turn) -> None:
        super().__init__(bench.database)
        self._bench = bench
        self._wire = wire
        self.first = first
        self._stored = 0
        self.before_found: Callable[[], Awaitable[None]] | None = None
        """Runs once, when the follower has read events and does not have them yet."""
        self.errors: list[Exception] = []
        """Raised by the follower's next reads of events, one each."""

    async def store(self, count: int = 1) -> None:
        """Store so many events, and ring."""
        places = range(self._stored + 1, self._stored + count + 1)
        self._stored += count
        await self._bench.stores.events.append([event(at, self.first, at) for at in places])
        self._wire.on_payload(Ring(node=NodeId("other"), stored={A}).payload())

    async def after_each(
        self, last_seqs: Mapping[ConversationId, int], *, limit: int
    ) -> Sequence[TurnEvent]:
        if self.errors:
            raise self.errors.pop()
        found = await super().after_each(last_seqs, limit=limit)
        if self.before_found is not None:
            before, self.before_found = self.before_found, None
            await before()
        return found


@asynccontextmanager
async def beside(directory: Path, **options: Any) -> AsyncIterator[tuple[Bench, Other, Wire]]:
    async with running(directory, **options) as bench:
        first, _ = await bench.begin("a1", "a")
        wire = Wire()
        other = Other(bench, wire, first)
        doorbell = Doorbell(wire, NodeId("this"), lambda _: False)
        follower = FeedFollower(bench.log.feed, other, doorbell, poll_s=1e6)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(keep_running, "follower", follower.run, pause_s=0))
            await anyio.wait_all_tasks_blocked()
            yield bench, other, wire
            tasks.cancel_scope.cancel()


async def test_a_ring_while_a_reader_finds_its_place_is_not_lost(tmp_path: Path) -> None:
    """The store has said where the conversation ends, and the reader does not know it yet."""
    async with beside(tmp_path) as (bench, other, _):

        async def store() -> None:
            bench.events.before_last = None
            await other.store()
            await anyio.wait_all_tasks_blocked()

        bench.events.before_last = store
        async with bench.log.subscribe(A, 0) as reader:
            assert numbers(await take(reader, 1)) == [1]


async def test_more_than_is_read_at_once_comes_whole_and_in_order(tmp_path: Path) -> None:
    async with (
        beside(tmp_path, window=100) as (bench, other, _),
        bench.log.subscribe(A, 0) as reader,
    ):
        await reader.next(0)
        await other.store(1300)
        assert numbers(await take(reader, 1300)) == list(range(1, 1301))


async def test_what_is_read_while_the_conversation_changes_hands_comes_once(
    tmp_path: Path,
) -> None:
    """This server becomes the owner, finds its place anew and stores, before it has what it read."""
    async with beside(tmp_path) as (bench, other, _), bench.log.subscribe(A, 0) as reader:
        await reader.next(0)

        is_over = anyio.Event()

        async def take_over() -> None:
            bench.log.feed.lose(A)
            assert numbers(await take(reader, 2)) == [1, 2]
            is_over.set()

        other.before_found = take_over
        await other.store(2)
        await is_over.wait()
        await other.store()
        assert numbers(await take(reader, 1)) == [3]


async def test_a_read_that_fails_is_tried_again(tmp_path: Path) -> None:
    async with beside(tmp_path) as (bench, other, _), bench.log.subscribe(A, 0) as reader:
        await reader.next(0)
        other.errors = [StoreUnavailable("The database cannot be reached.")]
        await other.store()
        assert numbers(await take(reader, 1)) == [1]


async def test_where_the_events_of_all_are_damaged_each_reader_reads_its_own(
    tmp_path: Path,
) -> None:
    async with beside(tmp_path) as (bench, other, _), bench.log.subscribe(A, 0) as reader:
        await reader.next(0)
        reads = bench.events.reads
        other.errors = [StoreDamaged("The database is damaged.")]
        await other.store()
        assert numbers(await take(reader, 1)) == [1]
        assert bench.events.reads > reads


async def test_a_ring_that_cannot_be_sent_is_sent_later(tmp_path: Path) -> None:
    async with beside(tmp_path) as (bench, _, wire):
        wire.failures = 1
        bench.log.feed.delete(A)
        bench.log.feed.announce(A, turn().id)
        while not wire.sent:  # noqa: ASYNC110
            await anyio.sleep(0.01)
        assert '"deleted":["cnv_a"]' in wire.sent[0]


async def test_a_servers_own_ring_says_nothing_to_it(tmp_path: Path) -> None:
    changed = {(A, turn().id)}
    async with beside(tmp_path) as (bench, _, wire), bench.log.subscribe(A, 0) as reader:
        wire.on_payload(Ring(node=NodeId("this"), changed=changed).payload())
        assert await reader.next(0) == []
        wire.on_payload(Ring(node=NodeId("other"), changed=changed).payload())
        assert [each.type for each in await reader.next(LONG_S)] == [CHANGED]


async def test_an_event_that_is_read_before_its_writer_knows_it_stored_comes_once(
    tmp_path: Path,
) -> None:
    async with beside(tmp_path) as (bench, other, _), bench.log.subscribe(A, 0) as reader:
        await reader.next(0)
        bench.disk.lost_answers = 1
        writing = bench.log.open_new_turn(other.first)
        writing.emit("notice", text="1")
        while not bench.disk.writes:
            await anyio.lowlevel.checkpoint()
        bench.disk.held = anyio.Event()
        await other.store(0)
        assert numbers(await take(reader, 1)) == [1]
        bench.disk.held.set()
        writing.emit("notice", text="2")
        assert numbers(await take(reader, 1)) == [2]
        async with bench.log.subscribe(A, 0) as later:
            assert numbers(await take(later, 2)) == [1, 2]
