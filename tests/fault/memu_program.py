"""Deliver what waits to a memU server, and die when its task is waited for.

`python memu_program.py ADDRESS DIRECTORY` is killed the first time that it would wait; where it never
would, it prints `done`.
"""
# ruff: noqa: T201
# a script talks by printing

import os
import signal
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memory.backends.memu_server import NAME, MemuServerBackend
from memory.outbox.delivery import NewDelivery
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.items import put_item_blocking
from memory.stores.sqlite.outbox import enqueue_blocking
from tests.conformance.suites.backends import item
from tests.fault.outbox_program import drain
from tests.support.episodes import AT, open_memory


async def prepare(directory: Path, item_id: str) -> None:
    """Make an outbox in which one item waits."""

    def fill(connection: sqlite3.Connection) -> None:
        put_item_blocking(connection, item(item_id))
        new = NewDelivery(
            backend=NAME, operation="put", item_id=item_id, owner_id="ann", revision=1
        )
        enqueue_blocking(connection, [new], AT)

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


async def die(_: float) -> None:
    """Be killed."""
    await anyio.lowlevel.checkpoint()
    os.kill(os.getpid(), signal.SIGKILL)


async def work(address: str, directory: Path) -> None:
    """Deliver until it would wait."""
    async with open_memory(directory) as database:
        await deliver(database, address, AT, die)


if __name__ == "__main__":
    anyio.run(work, sys.argv[1], Path(sys.argv[2]))
    print("done")
