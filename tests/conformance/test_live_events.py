"""Two servers on one PostgreSQL: what one of them stores reaches the readers of the other, live."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import anyio
import psycopg
import pytest

from gateway.conversations.doorbell import MAX_NAMED, Doorbell
from gateway.conversations.event_log import EventLog, TurnEvents
from gateway.conversations.feed import Subscription
from gateway.conversations.feed_follower import FeedFollower
from gateway.conversations.model import CHANGED, Turn, TurnEvent
from gateway.ids import ConversationId, NodeId
from memory.background import keep_running
from memory.stores.postgres.database import open_postgres
from memory.stores.postgres.notifications import MOST_BYTES, PostgresNotifications
from tests.conformance.suites.conversation_values import (
    AT,
    Stores,
    conversation,
    ended,
    turn,
)
from tests.support.postgres import new_database_blocking, restart_blocking
from tests.support.stores import POSTGRES_MIGRATIONS, stores_on

A = ConversationId("cnv_a")
LONG_S = 1000.0
WAIT_S = 60
NEVER_S = 1e6
SCHEMA = "candor"


@pytest.fixture
def url() -> Iterator[str]:
    with new_database_blocking("p") as address:
        yield address


@dataclass
class Node:
    """What of a server stores events and reads them."""

    stores: Stores
    log: EventLog
    doorbell: Doorbell
    written: set[ConversationId] = field(default_factory=set)
    """Conversations that it writes."""

    async def begin(self, name: str = "a") -> tuple[Turn, TurnEvents]:
        """Accept a turn in a new conversation, and write its events."""
        one = await self.stores.turns.accept(turn(name, name), create=conversation(name))
        self.written.add(one.conversation_id)
        return one, self.log.open_new_turn(one)


@asynccontextmanager
async def node(
    url: str, name: str, *, poll_s: float = NEVER_S, channel: str = SCHEMA
) -> AsyncIterator[Node]:
    """Run a server; it polls no more than once unless it is told to."""
    database = await open_postgres(url, POSTGRES_MIGRATIONS, schema=SCHEMA)
    try:
        stores, written = stores_on(database), set[ConversationId]()
        log = EventLog(stores.events, stores.turns, retry_s=0.05)
        notifications = PostgresNotifications(url, channel)
        doorbell = Doorbell(notifications, NodeId(name), written.__contains__)
        follower = FeedFollower(log.feed, stores.events, doorbell, poll_s=poll_s)
        async with anyio.create_task_group() as tasks:
            for loop in (log.run, follower.run):
                tasks.start_soon(partial(keep_running, "loop", loop, pause_s=0.05))
            yield Node(stores, log, doorbell, written)
            tasks.cancel_scope.cancel()
    finally:
        await database.close()


@asynccontextmanager
async def two_nodes(url: str, **options: Any) -> AsyncIterator[tuple[Node, Node]]:
    with anyio.fail_after(WAIT_S):
        async with node(url, "one", **options) as one, node(url, "other", **options) as other:
            await until_heard(url, 2)
            yield one, other


LISTENING = (
    " FROM pg_stat_activity WHERE datname = current_database() AND starts_with(query, 'LISTEN')"
)


async def until_heard(url: str, count: int) -> None:
    """Wait until so many connections listen."""
    while (await on_database(url, f"SELECT count(*){LISTENING}"))[0][0] < count:  # noqa: ASYNC110
        await anyio.sleep(0.02)


async def on_database(url: str, statement: str, *values: Any) -> list[Any]:
    def run() -> list[Any]:
        with psycopg.connect(url, autocommit=True) as connection:
            return connection.execute(statement, values).fetchall()

    return await anyio.to_thread.run_sync(run)


async def take(reader: Subscription, count: int) -> list[TurnEvent]:
    found: list[TurnEvent] = []
    while len(found) < count:
        found += await reader.next(LONG_S)
    return found


def texts(events: Sequence[TurnEvent]) -> str:
    return " ".join(json.loads(one.data)["text"] for one in events)


def counted(count: int) -> str:
    return " ".join(map(str, range(count)))


async def test_readers_elsewhere_get_a_thousand_events_once_and_in_order(url: str) -> None:
    """One from the beginning, one that comes in the middle, and one of the turn alone."""
    async with two_nodes(url) as (one, other):
        first, events = await one.begin()
        readers: list[list[TurnEvent]] = [[], [], []]
        is_half = anyio.Event()

        async def read(number: int, reader: Subscription) -> None:
            async with reader:
                async for found in reader.until_completed(LONG_S):
                    readers[number] += found

        async def read_later() -> None:
            await is_half.wait()
            await read(2, other.log.subscribe(A, 400))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read, 0, other.log.subscribe(A, 0))
            tasks.start_soon(read, 1, other.log.subscribe(A, 0, turn_id=first.id))
            tasks.start_soon(read_later)
            for number in range(1000):
                events.emit("notice", text=f"{number}")
                if number % 7 == 0:
                    await anyio.sleep(0.001)
                if number == 500:
                    is_half.set()
            await events.complete(ended(first), {"text": "end"})
        stored = list(await other.stores.events.after(A, 0, limit=2000))
        assert texts(stored) == f"{counted(1000)} end"
        assert readers == [stored, stored, stored[400:]]
        assert other.log.feed.channels == {}


async def test_a_reader_from_now_on_gets_what_is_stored_from_now_on(url: str) -> None:
    """What this server knew of the conversation once is of no use: another has written since."""
    async with two_nodes(url) as (one, other):
        _, events = await one.begin()
        for number in range(3):
            assert await other.log.feed.last_seq(A) == number
            events.emit("notice", text=f"{number}")
            await events.flush()
        async with other.log.subscribe(A, await other.log.feed.last_seq(A)) as reader:
            events.emit("notice", text="new")
            assert texts(await take(reader, 1)) == "new"


async def test_a_reader_follows_a_conversation_to_its_next_owner(url: str) -> None:
    """Both servers have readers; each is the owner once, and knows nothing of the other's events."""
    async with two_nodes(url) as (one, other):
        first, events = await one.begin()
        async with one.log.subscribe(A, 0) as here, other.log.subscribe(A, 0) as there:
            events.emit("notice", text="0")
            await take(there, 1)
            for number, owner in enumerate([other, one, other, one], 1):
                (one if owner is other else other).written.clear()
                owner.log.feed.lose(A)  # as recovery does
                writing = await owner.log.open_turn(first)
                owner.written.add(A)
                writing.emit("notice", text=f"{number}")
                assert texts(await take(there, 1)) == f"{number}"
            assert texts(await take(here, 5)) == counted(5)


async def test_without_a_bell_events_and_deletions_are_found_all_the_same(url: str) -> None:
    async with (
        node(url, "one", channel="elsewhere") as one,
        node(url, "other", poll_s=0.1) as other,
    ):
        with anyio.fail_after(WAIT_S):
            _, events = await one.begin()
            async with other.log.subscribe(A, 0) as reader:
                for number in range(3):
                    events.emit("notice", text=f"{number}")
                    assert texts(await take(reader, 1)) == f"{number}"
                await one.stores.conversations.delete(A, AT)
                assert await reader.next(LONG_S) == []


async def test_a_bell_that_was_lost_loses_nothing(url: str) -> None:
    """The connection that listens is ended; when there is a new one, everything is looked at."""
    async with two_nodes(url) as (one, other):
        first, events = await one.begin()
        async with other.log.subscribe(A, 0) as reader:
            events.emit("notice", text="before")
            await take(reader, 1)
            await events.complete(ended(first), {"text": "end"})
            await take(reader, 1)
            ended_by = f"SELECT pg_terminate_backend(pid){LISTENING}"
            assert len(await on_database(url, ended_by)) == 2
            two = await one.stores.turns.accept(turn("a2"))
            writing = one.log.open_new_turn(two)
            writing.emit("notice", text="meanwhile")
            found = await take(reader, 2)
            # what the bell alone says is said again, to be sure
            assert {each.type for each in found} == {"notice", CHANGED}
            await until_heard(url, 2)
            writing.emit("notice", text="after")
            assert texts(await take(reader, 1)) == "after"


@pytest.mark.parametrize("how", ["INT", "QUIT"])
async def test_when_the_database_is_back_readers_go_on(
    url: str, how: Literal["INT", "QUIT"]
) -> None:
    async with two_nodes(url) as (one, other):
        _, events = await one.begin()
        async with other.log.subscribe(A, 0) as reader:
            events.emit("notice", text="0")
            await take(reader, 1)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anyio.to_thread.run_sync, restart_blocking, how)
                for number in range(1, 50):
                    events.emit("notice", text=f"{number}")
                    await anyio.sleep(0.01)
            events.emit("notice", text="50")
            assert texts(await take(reader, 50)) == counted(51)[2:]


async def test_a_deletion_wakes_readers_elsewhere(url: str) -> None:
    async with two_nodes(url) as (one, other):
        await one.begin()
        async with other.log.subscribe(A, 0) as reader:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one_look, reader)
                await anyio.wait_all_tasks_blocked()
                await one.stores.conversations.delete(A, AT)
                one.log.feed.delete(A)
            assert await other.stores.conversations.get(A, conversation().user_id) is None


async def one_look(reader: Subscription) -> None:
    assert await reader.next(LONG_S) == []


async def test_a_result_that_changed_is_announced_elsewhere(url: str) -> None:
    async with two_nodes(url) as (one, other):
        first, _ = await one.begin()
        async with one.log.subscribe(A, 0) as here, other.log.subscribe(A, 0) as there:
            await here.next(0)
            one.log.feed.announce(A, first.id)
            expected = {"turn_id": first.id, "conversation_id": A}
            for reader in (here, there):
                (announced,) = await take(reader, 1)
                assert (announced.type, json.loads(announced.data)) == (CHANGED, expected)


GARBAGE = [
    "",
    "no JSON",
    "[]",
    "null",
    '{"node": "third"}',
    '{"node": "third", "stored": 7, "deleted": [], "changed": []}',
    '{"node": "third", "stored": [["cnv_a"]], "deleted": [], "changed": []}',
    '{"node": "third", "stored": [], "deleted": [], "changed": [["cnv_a"]]}',
    '{"version": 2, "bells": {}}',
]


async def test_texts_that_are_no_rings_are_ignored(url: str) -> None:
    async with two_nodes(url) as (one, other):
        _, events = await one.begin()
        listeners = f"SELECT pid{LISTENING} ORDER BY pid"
        listening_before = await on_database(url, listeners)
        async with other.log.subscribe(A, 0) as reader:
            for text in GARBAGE:
                await on_database(url, "SELECT pg_notify(%s, %s)", SCHEMA, text)
            of_a_later_version = {"node": "third", "stored": ["cnv_none"], "deleted": []}
            more = json.dumps({**of_a_later_version, "changed": [], "colour": "red"})
            await on_database(url, "SELECT pg_notify(%s, %s)", SCHEMA, more)
            events.emit("notice", text="0")
            assert texts(await take(reader, 1)) == "0"
        assert await on_database(url, listeners) == listening_before


@asynccontextmanager
async def listening(url: str) -> AsyncIterator[list[str]]:
    """Collect what is sent while the block runs, and before its last statement."""
    heard: list[str] = []
    is_listening = anyio.Event()
    notifications = PostgresNotifications(url, SCHEMA)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(notifications.listen, heard.append, is_listening.set)
        await is_listening.wait()
        yield heard
        await on_database(url, "SELECT pg_notify(%s, 'last')", SCHEMA)
        while "last" not in heard:  # noqa: ASYNC110
            await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()


async def test_a_group_commit_rings_once_and_names_no_more_than_fit(url: str) -> None:
    async with two_nodes(url) as (one, other):
        made = [await one.begin(f"{number:026}") for number in range(MAX_NAMED + 1)]
        last = made[-1][0].conversation_id
        async with listening(url) as heard, other.log.subscribe(last, 0) as reader:
            await reader.next(0)
            for count in (MAX_NAMED, MAX_NAMED + 1):
                for _, events in made[:count]:
                    events.emit("notice", text="x")
                await made[count - 1][1].flush()
            for first, _ in made[:45]:
                one.log.feed.delete(first.conversation_id)
                one.log.feed.announce(first.conversation_id, first.id)
            assert texts(await take(reader, 1)) == "x"
            while sum(len(json.loads(text)["changed"]) for text in heard) < 45:  # noqa: ASYNC110
                await anyio.sleep(0.01)
        rings = [json.loads(text) for text in heard[:-1]]
        stored = [ring["stored"] for ring in rings if ring["stored"] != []]
        assert [named and len(named) for named in stored] == [MAX_NAMED, None]
        assert sum(len(ring["deleted"]) for ring in rings) == 45
        assert sum(len(ring["changed"]) for ring in rings) == 45
        assert max(len(text.encode()) for text in heard) < MOST_BYTES


async def test_a_server_that_has_the_database_alone_rings_no_bell(url: str) -> None:
    database = await open_postgres(url, POSTGRES_MIGRATIONS, schema=SCHEMA)
    try:
        stores = stores_on(database)
        log = EventLog(stores.events, stores.turns)
        async with listening(url) as heard, anyio.create_task_group() as tasks:
            tasks.start_soon(log.run)
            first = await stores.turns.accept(turn(), create=conversation())
            await log.open_new_turn(first).complete(ended(first), {})
            log.feed.announce(A, first.id)
            log.feed.delete(A)
            tasks.cancel_scope.cancel()
        assert heard == ["last"]
    finally:
        await database.close()
