"""Fill a disk under the stores, in a process of its own, and say in JSON what became of them.

`python full_disk.py DIRECTORY [LIMIT_BYTES]`: the directory is on a small file system, or no file
may grow over the limit. Then the room comes back.
"""
# ruff: noqa: ASYNC110, T201
# a disk tells nobody, and a script talks by printing

import json
import resource
import sys
from pathlib import Path
from typing import Any

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from gateway.conversations.event_log import EventLog
from gateway.conversations.model import Turn
from memory.errors import StoreUnavailable
from memory.stores.sqlite.database import Database
from tests.conformance.suites.conversation_values import Stores, conversation, ended, turn
from tests.support.stores import open_file, stores_on

BALLAST_BYTES = 800_000
MAX_PAGES = 600
"""More than the small disk holds."""


class Disk:
    """The disk under a directory: its room is a ballast on it, or a limit of this process."""

    def __init__(self, directory: Path, limit: int | None) -> None:
        self._ballast = directory / "ballast"
        self._limit = limit
        if limit is None:
            self._ballast.write_bytes(b"x" * BALLAST_BYTES)

    def shrink(self) -> None:
        if self._limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self._limit, resource.RLIM_INFINITY))

    def grow(self) -> None:
        if self._limit is None:
            self._ballast.unlink()
        else:
            everything = resource.RLIM_INFINITY
            resource.setrlimit(resource.RLIMIT_FSIZE, (everything, everything))


async def fill(directory: Path, limit: int | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    disk = Disk(directory, limit)
    async with open_file(directory) as database:
        stores = stores_on(database)
        one = await stores.turns.accept(turn(), create=conversation())
        disk.shrink()
        found |= await accept_until_refused(stores)
        found["ping_full"] = await ping_until_refused(database)
        found |= await emit_meanwhile(stores, one, disk)
        stored = await stores.events.after(one.conversation_id, 0, limit=99)
        found["events"] = [event.n for event in stored]
        found["last"] = stored[-1].type
        read = await stores.turns.get(one.id)
        found["state"] = read.state if read else None
        found["ping_after"] = await database.ping()
        found["check"] = (await database.rows("PRAGMA integrity_check"))[0][0]
    return found


async def accept_until_refused(stores: Stores) -> dict[str, Any]:
    written = 0
    while True:
        name = f"n{written}"
        try:
            await stores.turns.accept(
                turn(name, name, message="长" * 3000), create=conversation(name)
            )
        except StoreUnavailable as exc:
            kept = len(await stores.turns.unfinished()) - 1
            return {"refused": str(exc), "written": written, "kept": kept}
        written += 1


async def ping_until_refused(database: Database) -> str | None:
    """Use up the room that is left where a turn does not fit: a page still may."""
    for _ in range(MAX_PAGES):
        if said := await database.ping():
            return said
    return None


async def emit_meanwhile(stores: Stores, one: Turn, disk: Disk) -> dict[str, Any]:
    """Emit a turn's events onto the full disk; they are stored when there is room."""
    log = EventLog(stores.events, stores.turns, await stores.events.last_seq(), retry_s=0.01)
    events = log.open_new_turn(one)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(log.run)
        for n in range(50):
            events.emit("notice", text="词" * 400, n=n)
        tasks.start_soon(events.complete, ended(one), {"reply": "done"})
        with anyio.move_on_after(0.2):
            while log.backlog:
                await anyio.sleep(0.01)
        waiting = log.backlog
        disk.grow()
        with anyio.fail_after(30):
            while log.backlog:
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    return {"waiting": waiting}


if __name__ == "__main__":
    directory, *rest = sys.argv[1:]
    print(json.dumps(anyio.run(fill, Path(directory), int(rest[0]) if rest else None)))
