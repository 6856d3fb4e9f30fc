"""The process crashes while it delivers, at each point: nothing is lost, nothing goes out under two keys."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from memory.items.item import Item
from memory.outbox.backend import BackendHealth
from memory.outbox.delivery import Link, Operation, deliveries_of
from memory.outbox.store import enqueue_blocking
from memory.remote.json_service import JsonService
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.items import put_item_blocking
from tests.conformance.suites.backends import item
from tests.support.crash_images import Step, at_points, crashed_everywhere, texts
from tests.support.deliveries import LATER, drain
from tests.support.episodes import AT
from tests.unit.memory.backends.memu_services import Reply, served

ITEMS = ("epi_1", "epi_2", "笔记_3")
GONE = "epi_gone"
KEYS = {*(f"told:put:{item}:1" for item in ITEMS), f"told:forget:{GONE}:1"}
pytestmark = pytest.mark.fault


class Mentions:
    """A backend that hands each call to a server, with its key."""

    name = "told"

    def __init__(self, address: str, directory: Path) -> None:
        self._service = JsonService(address, name="It", timeout_s=30, max_bytes=1000)
        self._directory = directory

    async def put(self, item: Item, idempotency_key: str) -> Sequence[Link]:
        await self._tell("put", item.id, idempotency_key)
        return [Link(item_id=item.id, backend=self.name, remote_kind="file", remote_id=item.id)]

    async def forget(self, item_id: str, links: Sequence[Link], idempotency_key: str) -> None:
        await self._tell("forget", item_id, idempotency_key)

    async def _tell(self, what: str, item_id: str, key: str) -> None:
        body = {"of": str(self._directory), "what": what, "item": item_id, "key": key}
        await self._service.ask("POST", "/told", body)

    async def check(self) -> BackendHealth:
        await anyio.lowlevel.checkpoint()
        return BackendHealth(name=self.name, state="ok")

    async def close(self) -> None:
        await self._service.close()


def answer(_method: str, _path: str, body: Any) -> Reply:
    """Write down a key beside the database that it came from, so that each crash keeps its own."""
    assert body["key"] == f"told:{body['what']}:{body['item']}:1"
    with told_in(Path(body["of"])).open("a", encoding="utf-8") as told:
        told.write(f"{body['key']}\n")
    return 200, {}


def told_in(directory: Path) -> Path:
    return directory / "told"


async def fill(database: Database) -> None:
    """Write items with their deliveries, and one that is to be forgotten."""
    told_in(database.path.parent).touch()
    for entry in ITEMS:
        await database.write(partial(put_item_blocking, item=item(entry, entry)))
        await enqueue(database, "put", entry)
    await enqueue(database, "forget", GONE)


async def enqueue(database: Database, operation: Operation, item_id: str) -> None:
    new = deliveries_of(operation, item_id, "ann", 1, ["told"])
    await database.write(lambda writer: enqueue_blocking(writer, new, AT))


async def deliver(database: Database, address: str, now: datetime) -> int:
    """Deliver whatever is due at a moment."""
    return await drain(Mentions(address, database.path.parent), database, now)


@at_points
async def test_a_kill_at_any_point_loses_nothing_and_repeats_only_under_the_same_key(
    tmp_path: Path, every: int
) -> None:
    async def check(database: Database) -> int:
        told = told_in(database.path.parent)
        before = Counter(await texts(database, "SELECT status FROM outbox"))
        assert before.total() == len(KEYS), "none is lost"
        assert before["delivered"] <= len(told.read_text("utf-8").splitlines())
        await deliver(database, address, LATER)
        assert await texts(database, "SELECT status FROM outbox") == ["delivered"] * len(KEYS)
        linked = await texts(database, "SELECT item_id FROM memory_links ORDER BY item_id")
        assert linked == sorted(ITEMS)
        assert await deliver(database, address, LATER) == 0
        times = Counter(told.read_text("utf-8").splitlines())
        assert set(times) == KEYS, "each came, under its key"
        assert times.total() <= len(KEYS) + 1, "only the one that was going out comes twice"
        return times.total() - len(KEYS)

    with served(answer) as address:
        steps: list[Step] = [fill, partial(deliver, address=address, now=AT)]
        repeated = await crashed_everywhere(tmp_path, steps, check, every=every)
    assert any(repeated) or every > 1, "some kill came between an answer and its note"
