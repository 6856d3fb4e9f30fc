"""200 streams of 20 events a second on PostgreSQL: read at the server that stores them, and at another one.

From the moment an event is made (its text is the clock's reading) to the moment a reader has it; a process
each for the server that writes, the one that reads elsewhere, and PostgreSQL, which syncs its commits. And how
long a commit takes with the bell after it, as the servers ring it, or in its transaction.
"""

import json
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import anyio
import psutil
from anyio.streams.buffered import BufferedByteReceiveStream

from bench.report import percentile, save, show
from bench.stand_in import ROOT, clean_environ
from bench.synced_postgres import server_s, sync_commits
from gateway.conversations.doorbell import Doorbell
from gateway.conversations.event_log import EventLog
from gateway.conversations.feed_follower import FeedFollower
from gateway.conversations.model import Turn, TurnEvent
from gateway.conversations.sql.events import insert_events
from gateway.ids import ConversationId, NodeId, TurnId
from memory.stores.database import Connection
from memory.stores.postgres.database import PostgresDatabase
from memory.stores.postgres.notifications import PostgresNotifications
from tests.conformance.suites.conversation_values import conversation, ended, event, turn
from tests.support import postgres
from tests.support.stores import POSTGRES_MIGRATIONS, stores_on

STREAMS = 200
PER_SECOND = 20
SECONDS = 5
SIZES = (1, 20, 200)
PLAIN, AFTER, WITHIN = "no bell", "bell after it", "bell in it"
ARMS = {"own, alone": "w-r", "own, with a bell": "w-r-b", "at another server": "w-b"}


async def run(rounds: int) -> None:
    """Measure, print and save."""
    sync_commits()
    figures = {}
    for name, parts in ARMS.items():
        with postgres.empty_schema_blocking("bench") as schema:
            figures[name] = await _measure(schema, parts.split("-"))
    header = ["readers", *next(iter(figures.values()))]
    rows = [[name, *(f"{v:.2f}" for v in arm.values())] for name, arm in figures.items()]
    show(f"{STREAMS} streams, {PER_SECOND} events a second each, {SECONDS} s", header, rows)
    with postgres.empty_schema_blocking("bench") as schema:
        commits = await _commits(schema, rounds * 5)
    rows = [[name, *(f"{v:.2f}" for v in arm.values())] for name, arm in commits.items()]
    show("A commit of events, ms", ["", *commits[PLAIN]], rows)
    save("two_nodes", {"readers": figures, "commits": commits})


async def _measure(schema: str, parts: Sequence[str]) -> dict[str, float]:
    url = postgres.server_url()
    async with postgres.open_schema(schema, POSTGRES_MIGRATIONS) as database:
        for number in range(STREAMS):
            await stores_on(database).turns.accept(
                turn(f"{number:026}", f"{number:026}"), create=conversation(f"{number:026}")
            )
    began_s = server_s()
    outputs: list[dict[str, list[float]]] = []
    async with anyio.create_task_group() as tasks:
        if "r" not in parts:
            await tasks.start(_process, [url, schema, "r-b"], outputs)
        tasks.start_soon(_process, [url, schema, "-".join(parts)], outputs)
    delays = [delay for output in outputs for delay in output["delays_ms"]]
    assert len(delays) == STREAMS * PER_SECOND * SECONDS, len(delays)
    return {
        "p50 ms": percentile(delays, 0.5),
        "p95 ms": percentile(delays, 0.95),
        "p99 ms": percentile(delays, 0.99),
        "servers, CPU s": sum(output["cpu_s"][0] for output in outputs),
        "PostgreSQL, CPU s": server_s() - began_s,
    }


async def _process(given, outputs, *, task_status=anyio.TASK_STATUS_IGNORED) -> None:
    async with await anyio.open_process(
        [sys.executable, "-m", "bench.two_nodes", *given],
        cwd=ROOT,
        env=clean_environ(),
        stderr=None,
    ) as process:
        lines = BufferedByteReceiveStream(process.stdout)
        await lines.receive_until(b"ready\n", 100)
        task_status.started()
        outputs.append(json.loads(await lines.receive_until(b"\n", 10**8)))


async def _serve(url: str, schema: str, parts: Sequence[str]) -> None:
    """Be one server: write (`w`), read (`r`), with a bell (`b`)."""
    database = PostgresDatabase(url, schema)
    stores = stores_on(database)
    log = EventLog(stores.events, stores.turns)
    turns = [turn(f"{number:026}", f"{number:026}") for number in range(STREAMS)]
    delays: list[float] = []
    writes = "w" in parts
    async with anyio.create_task_group() as loops:
        loops.start_soon(log.run)
        if "b" in parts:
            name = NodeId("writer" if writes else "reader")
            doorbell = Doorbell(PostgresNotifications(url, schema), name, lambda _: writes)
            loops.start_soon(FeedFollower(log.feed, stores.events, doorbell).run)
            doorbell.stored(())  # so that it is connected
        async with anyio.create_task_group() as tasks:
            if "r" in parts:
                for one in turns:
                    tasks.start_soon(_read, log, one.conversation_id, delays)
            for one in turns if writes else ():
                await log.feed.last_seq(one.conversation_id)  # as it is known of turns that run
            await anyio.sleep(1)
            print("ready", flush=True)
            started_s = sum(psutil.Process().cpu_times()[:2])
            if writes:
                for number, one in enumerate(turns):
                    tasks.start_soon(_write, log, one, number)
        cpu_s = sum(psutil.Process().cpu_times()[:2]) - started_s
        loops.cancel_scope.cancel()
    await database.close()
    print(json.dumps({"delays_ms": delays, "cpu_s": [cpu_s]}))


async def _write(log: EventLog, one: Turn, number: int) -> None:
    events = log.open_new_turn(one)
    begin = anyio.current_time() + number / STREAMS / PER_SECOND
    for step in range(PER_SECOND * SECONDS):
        await anyio.sleep_until(begin + step / PER_SECOND)
        events.emit("text.delta", text=f"{time.monotonic_ns()} {'x' * 40}\n")
    await events.complete(ended(one), {})


async def _read(log: EventLog, conversation_id: ConversationId, delays: list[float]) -> None:
    async with log.subscribe(conversation_id, 0) as reader:
        async for found in reader.until_completed(1000):
            now = time.monotonic_ns()
            for each in found:
                if each.type == "text.delta":
                    lines = json.loads(each.data)["text"].splitlines()
                    delays.extend((now - int(line.split()[0])) / 1e6 for line in lines)


async def _commits(schema: str, rounds: int) -> dict[str, dict[str, float]]:
    url = postgres.server_url()
    taken: dict[str, dict[int, list[float]]] = {
        way: {size: [] for size in SIZES} for way in (PLAIN, AFTER, WITHIN)
    }
    async with (
        postgres.open_schema(schema, POSTGRES_MIGRATIONS) as database,
        _bell(url) as doorbell,
    ):
        stores = stores_on(database)
        one = await stores.turns.accept(turn(), create=conversation())
        last = 0
        for _ in range(rounds):
            for size in SIZES:
                for way, times in taken.items():
                    data = json.dumps({"text": "x" * 160})
                    events = [event(last + n, one, last + n, data=data) for n in range(1, size + 1)]
                    last += size
                    begun = time.perf_counter()
                    await database.write(partial(_insert, events, way, one.id))
                    times[size].append((time.perf_counter() - begun) * 1e3)
                    if way == AFTER:
                        doorbell.stored([one.conversation_id])
    return {
        way: {
            f"{size} events, {name}": percentile(times[size], share)
            for size in SIZES
            for name, share in (("p50", 0.5), ("p95", 0.95))
        }
        for way, times in taken.items()
    }


def _insert(events: Sequence[TurnEvent], way: str, name: TurnId, writer: Connection) -> None:
    insert_events(writer, events)
    if way == WITHIN:
        writer.execute("SELECT pg_notify('bench', ?)", (name,))


@asynccontextmanager
async def _bell(url: str) -> AsyncIterator[Doorbell]:
    doorbell = Doorbell(PostgresNotifications(url, "bench"), NodeId("one"), lambda _: True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(doorbell.run)
        yield doorbell
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(_serve, sys.argv[1], sys.argv[2], sys.argv[3].split("-"))
