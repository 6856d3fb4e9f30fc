"""The process is killed while a memU server memorizes: the task is waited for again, and none is begun anew."""

import signal
import sys
from pathlib import Path

import anyio
import pytest

from memory.backends.memu_server import NAME
from memory.outbox.delivery import NewDelivery
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.items import delete_item_blocking
from memory.stores.sqlite.outbox import enqueue_blocking
from tests.fault.memu_program import deliver, prepare
from tests.fault.outbox_program import LATER
from tests.support.episodes import open_memory
from tests.unit.memory.backends.memu_services import FakeMemuServer, served

SCRIPT = Path(__file__).with_name("memu_program.py")
LIMIT_S = 60
pytestmark = pytest.mark.fault


async def killed_while_waiting(address: str, directory: Path) -> None:
    with anyio.fail_after(LIMIT_S):
        done = await anyio.run_process(
            [sys.executable, str(SCRIPT), address, str(directory)], check=False, stderr=None
        )
    assert done.returncode == -signal.SIGKILL


async def statuses(database: Database) -> list[str]:
    return [row["status"] for row in await database.rows("SELECT status FROM outbox")]


@pytest.mark.parametrize("meanwhile", ["goes on", "ends"])
async def test_the_same_text_is_not_memorized_twice(tmp_path: Path, meanwhile: str) -> None:
    server = FakeMemuServer(looks=3)
    with served(server.answer) as address:
        await prepare(tmp_path, "epi_zh")
        await killed_while_waiting(address, tmp_path)
        assert len(server.tasks) == 1, "it was at it"
        if meanwhile == "ends":
            server.end_all()
        async with open_memory(tmp_path) as database:
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
        await prepare(tmp_path, "epi_zh")
        await killed_while_waiting(address, tmp_path)
        new = NewDelivery(
            backend=NAME, operation="forget", item_id="epi_zh", owner_id="ann", revision=2
        )
        async with open_memory(tmp_path) as database:
            await database.write(lambda writer: delete_item_blocking(writer, "epi_zh"))
            await database.write(lambda writer: enqueue_blocking(writer, [new], LATER))
            with anyio.fail_after(LIMIT_S):
                await deliver(database, address, LATER)
        server.end_all()
    assert server.items == []
