"""The process crashes while a memU server memorizes: the task is waited for again, and none is begun anew."""

import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path

import anyio
import pytest

from memory.backends.memu_server import NAME, MemuServerBackend
from memory.outbox.delivery import NewDelivery
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.items import delete_item_blocking, put_item_blocking
from memory.stores.sqlite.outbox import enqueue_blocking
from tests.conformance.suites.backends import item
from tests.support.deliveries import LATER, drain
from tests.support.episodes import AT, open_memory
from tests.unit.memory.backends.memu_services import FakeMemuServer, served

LIMIT_S = 60
pytestmark = pytest.mark.fault


async def prepare(directory: Path, item_id: str) -> None:
    """Make an outbox in which one item waits."""

    def fill(connection: sqlite3.Connection) -> None:
        put_item_blocking(connection, item(item_id))
        new = NewDelivery(
            backend=NAME, operation="put", item_id=item_id, owner_id="ann", revision=1
        )
        enqueue_blocking(connection, [new], AT)

    directory.mkdir()
    async with open_memory(directory) as database:
        await database.write(fill)


async def deliver(
    database: Database,
    address: str,
    now: datetime,
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
) -> int:
    """Deliver whatever is due at a moment."""
    return await drain(MemuServerBackend(address, sleep=sleep), database, now)


async def crashed_while_waiting(address: str, directory: Path) -> Path:
    """Deliver until it would wait; return a copy of the files as they were then."""
    copy = directory / "crashed"
    with anyio.fail_after(LIMIT_S), anyio.CancelScope() as working:

        async def crash(_: float) -> None:
            await anyio.to_thread.run_sync(shutil.copytree, directory / "before", copy)
            working.cancel()
            await anyio.sleep_forever()

        async with open_memory(directory / "before") as database:
            await deliver(database, address, AT, crash)
    return copy


async def statuses(database: Database) -> list[str]:
    return [row["status"] for row in await database.rows("SELECT status FROM outbox")]


@pytest.mark.parametrize("meanwhile", ["goes on", "ends"])
async def test_the_same_text_is_not_memorized_twice(tmp_path: Path, meanwhile: str) -> None:
    server = FakeMemuServer(looks=3)
    with served(server.answer) as address:
        await prepare(tmp_path / "before", "epi_zh")
        crashed = await crashed_while_waiting(address, tmp_path)
        assert len(server.tasks) == 1, "it was at it"
        if meanwhile == "ends":
            server.end_all()
        async with open_memory(crashed) as database:
            assert await statuses(database) == ["pending"]
            with anyio.fail_after(LIMIT_S):
                await deliver(database, address, LATER)
            assert await statuses(database) == ["delivered"]
            rows = await database.rows("SELECT remote_kind FROM memory_links ORDER BY 1")
            assert [row["remote_kind"] for row in rows] == ["agent", "task"]
        server.end_all()
    assert len(server.tasks) == 1
    assert len(server.items) == len({item["summary"] for item in server.items}) == 2


async def test_what_is_forgotten_after_the_kill_does_not_come_back(tmp_path: Path) -> None:
    server = FakeMemuServer(looks=3)
    with served(server.answer) as address:
        await prepare(tmp_path / "before", "epi_zh")
        crashed = await crashed_while_waiting(address, tmp_path)
        new = NewDelivery(
            backend=NAME, operation="forget", item_id="epi_zh", owner_id="ann", revision=2
        )
        async with open_memory(crashed) as database:
            await database.write(lambda writer: delete_item_blocking(writer, "epi_zh"))
            await database.write(lambda writer: enqueue_blocking(writer, [new], LATER))
            with anyio.fail_after(LIMIT_S):
                await deliver(database, address, LATER)
        server.end_all()
    assert server.items == []
