"""The process crashes while a memU server memorizes: the task is waited for again, and none is begun anew."""

import shutil
from pathlib import Path

import anyio
import pytest

from memory.outbox.backends.memu_server import NAME, MemuServerBackend
from memory.outbox.delivery import Operation, deliveries_of
from memory.outbox.store import enqueue_blocking
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.items import delete_item_blocking, put_item_blocking
from tests.conformance.suites.backends import item
from tests.support.crash_images import texts
from tests.support.deliveries import LATER, drain
from tests.support.episodes import AT, open_memory
from tests.unit.memory.backends.memu_services import FakeMemuServer, served

LIMIT_S = 60
ITEM_ID = "epi_zh"
pytestmark = pytest.mark.fault


async def enqueue(database: Database, operation: Operation) -> None:
    new = deliveries_of(operation, ITEM_ID, "ann", 1 if operation == "put" else 2, [NAME])
    await database.write(lambda writer: enqueue_blocking(writer, new, AT))


async def crashed_while_waiting(address: str, directory: Path) -> Path:
    """Deliver an item until the backend would wait; return a copy of the files as they were then."""
    before, copy = directory / "before", directory / "crashed"
    before.mkdir()
    with anyio.fail_after(LIMIT_S), anyio.CancelScope() as working:

        async def crash(_: float) -> None:
            await anyio.to_thread.run_sync(shutil.copytree, before, copy)
            working.cancel()
            await anyio.sleep_forever()

        async with open_memory(before) as database:
            await database.write(lambda writer: put_item_blocking(writer, item(ITEM_ID)))
            await enqueue(database, "put")
            await drain(MemuServerBackend(address, sleep=crash), database, AT)
    return copy


@pytest.mark.parametrize("meanwhile", ["goes on", "ends", "is forgotten"])
async def test_the_same_text_is_not_memorized_twice_nor_after_it_is_forgotten(
    tmp_path: Path, meanwhile: str
) -> None:
    server = FakeMemuServer(looks=3)
    with served(server.answer) as address:
        crashed = await crashed_while_waiting(address, tmp_path)
        assert len(server.tasks) == 1, "it was at it"
        if meanwhile == "ends":
            server.end_all()
        async with open_memory(crashed) as database:
            assert await texts(database, "SELECT status FROM outbox") == ["pending"]
            if meanwhile == "is forgotten":
                await database.write(lambda writer: delete_item_blocking(writer, ITEM_ID))
                await enqueue(database, "forget")
            with anyio.fail_after(LIMIT_S):
                await drain(MemuServerBackend(address), database, LATER)
            if meanwhile != "is forgotten":
                assert await texts(database, "SELECT status FROM outbox") == ["delivered"]
                kinds = await texts(database, "SELECT remote_kind FROM memory_links ORDER BY 1")
                assert kinds == ["agent", "task"]
        server.end_all()
    assert len(server.tasks) == 1
    left = 0 if meanwhile == "is forgotten" else 2
    assert len(server.items) == len({item["summary"] for item in server.items}) == left
