"""The process crashes while it delivers, at each point: nothing is lost, nothing goes out under two keys."""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from memory.items import Item
from memory.outbox.backend import BackendHealth
from memory.outbox.delivery import Link, NewDelivery
from memory.outbox.json_service import JsonService
from memory.scope import Scope
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.items import put_item_blocking
from memory.stores.sqlite.outbox import enqueue_blocking
from tests.support.crash_images import CrashImages, at_points, crashed_everywhere
from tests.support.deliveries import LATER, drain
from tests.support.episodes import AT, open_memory
from tests.unit.memory.backends.memu_services import Reply, served

ITEMS = ("epi_1", "epi_2", "笔记_3")
GONE = "epi_gone"
WORKED = "whole"


class Mentions:
    """A backend that hands each call to a server, with its key."""

    name = "told"

    def __init__(self, address: str, of: str, answered: Callable[[], None]) -> None:
        self._service = JsonService(address, name="It", timeout_s=30, max_bytes=1000)
        self._of = of
        self._answered = answered

    async def put(self, item: Item, idempotency_key: str) -> Sequence[Link]:
        await self._tell("put", item.id, idempotency_key)
        return [Link(item_id=item.id, backend=self.name, remote_kind="file", remote_id=item.id)]

    async def forget(self, item_id: str, links: Sequence[Link], idempotency_key: str) -> None:
        await self._tell("forget", item_id, idempotency_key)

    async def _tell(self, what: str, item_id: str, key: str) -> None:
        body = {"of": self._of, "what": what, "item": item_id, "key": key}
        await self._service.ask("POST", "/told", body)
        await anyio.to_thread.run_sync(self._answered)

    async def check(self) -> BackendHealth:
        await anyio.lowlevel.checkpoint()
        return BackendHealth(name=self.name, state="ok")

    async def close(self) -> None:
        await self._service.close()


def item(item_id: str) -> Item:
    return Item(
        id=item_id,
        kind="episode",
        scope=Scope(owner_id="ann"),
        title=item_id,
        summary="",
        body=item_id,
        source="",
        occurred_at=AT,
        updated_at=AT,
    )


def fill(connection: sqlite3.Connection) -> None:
    """Write items with their deliveries, and one that is to be forgotten."""
    for entry in ITEMS:
        put_item_blocking(connection, item(entry))
        enqueue_blocking(connection, [new("put", entry)], AT)
    enqueue_blocking(connection, [new("forget", GONE)], AT)


def new(operation: str, item_id: str) -> NewDelivery:
    return NewDelivery(
        backend="told",
        operation="put" if operation == "put" else "forget",
        item_id=item_id,
        owner_id="ann",
        revision=1,
    )


async def prepare(directory: Path) -> None:
    async with open_memory(directory) as database:
        await database.write(fill)


async def deliver(
    database: Database,
    address: str,
    of: str,
    now: datetime,
    answered: Callable[[], None] = lambda: None,
) -> int:
    """Deliver whatever is due at a moment."""
    return await drain(Mentions(address, of, answered), database, now)


async def work_until(address: str, directory: Path, points: CrashImages) -> None:
    """Deliver; each statement of the writer's is a point, and each answer."""
    async with open_memory(directory) as database:
        await database.write(points.watch)
        await deliver(database, address, WORKED, AT, points.pass_point)


KEYS = {*(f"told:put:{item}:1" for item in ITEMS), f"told:forget:{GONE}:1"}
pytestmark = pytest.mark.fault


async def status(database: Database) -> Mapping[str, int]:
    rows = await database.rows("SELECT status, count(*) AS n FROM outbox GROUP BY status")
    return {row["status"]: row["n"] for row in rows}


async def linked(database: Database) -> list[str]:
    rows = await database.rows("SELECT item_id FROM memory_links ORDER BY item_id")
    return [row["item_id"] for row in rows]


@at_points
async def test_a_kill_at_any_point_loses_nothing_and_repeats_only_under_the_same_key(
    tmp_path: Path, every: int
) -> None:
    told: dict[str, list[str]] = defaultdict(list)

    def answer(_method: str, _path: str, body: Any) -> Reply:
        assert body["key"] == f"told:{body['what']}:{body['item']}:1"
        told[body["of"]].append(body["key"])
        return 200, {}

    def note(name: str) -> None:
        told[name] = [*told[WORKED]]

    with served(answer) as address:
        count = await crashed_everywhere(
            tmp_path, prepare, partial(work_until, address), every=every, on_copy=note
        )
        repeated = 0
        for number in range(1, count + 1):
            name = str(number)
            async with open_memory(tmp_path / name) as database:
                before = await status(database)
                assert sum(before.values()) == len(KEYS), "none is lost"
                assert before.get("delivered", 0) <= len(told[name])
                await deliver(database, address, name, LATER)
                assert await status(database) == {"delivered": len(KEYS)}
                assert await linked(database) == sorted(ITEMS)
                assert await deliver(database, address, name, LATER) == 0
            times = Counter(told[name])
            assert set(times) == KEYS, "each came, under its key"
            assert max(times.values()) <= 2
            assert sum(times.values()) <= len(KEYS) + 1, "only the one that was going out"
            repeated += sum(times.values()) - len(KEYS)
        assert repeated or every > 1, "some kill came between an answer and its note"
