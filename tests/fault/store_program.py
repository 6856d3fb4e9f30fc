"""Programs that use the stores on a disk that fills up or until they are killed; run by `test_store_killed.py`."""

import resource
from pathlib import Path
from typing import Any

import anyio

from gateway.conversations.event_log import EventLog
from gateway.conversations.model import Turn
from gateway.conversations.store import IdempotencyKey
from memory.errors import StoreUnavailable
from memory.stores.sqlite.database import Database
from tests.conformance.suites.conversation_values import (
    ANN,
    Stores,
    conversation,
    ended,
    event,
    last_event,
    turn,
)
from tests.support.child_programs import say
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


async def fill(directory: str, limit: str | None = None) -> None:
    """Fill a small file system, or files up to a limit, make room again, and say what became of it."""
    found: dict[str, Any] = {}
    disk = Disk(Path(directory), None if limit is None else int(limit))
    async with open_file(Path(directory)) as database:
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
    say(**found)


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
    log = EventLog(stores.events, stores.turns, retry_s=0.01)
    events = log.open_new_turn(one)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(log.run)
        for n in range(50):
            events.emit("notice", text="词" * 400, n=n)
        tasks.start_soon(events.complete, ended(one), {"reply": "done"})
        with anyio.move_on_after(0.2):
            while log.backlog:  # noqa: ASYNC110  nothing tells
                await anyio.sleep(0.01)
        waiting = log.backlog
        disk.grow()
        with anyio.fail_after(30):
            while log.backlog:  # noqa: ASYNC110  nothing tells
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    return {"waiting": waiting}


async def write(directory: str) -> None:
    """Write turns and events until the process is killed; say after each commit what was committed."""
    async with open_file(Path(directory)) as database:
        stores = stores_on(database)
        n = len((await stores.conversations.page(ANN, limit=100_000)).conversations)
        while True:
            n += 1
            name = f"k{n}"
            key = IdempotencyKey(key=name, request_hash="h")
            one = await stores.turns.accept(
                turn(name, name, message="长" * 2000), create=conversation(name), key=key
            )
            say(what="accepted", name=name)
            if n % 5 == 0:
                continue  # one that stays queued
            await stores.turns.start(one.id, one.created_at)
            await stores.events.append([event(1, one, 1), event(2, one, 2)])
            say(what="appended", name=name)
            await stores.turns.finish([ended(one)], [last_event(3, one, 3)])
            say(what="finished", name=name)
