"""Remember turns, or forget one, and die before a given statement; once for each that there is.

`python memory_program.py remember|forget DIRECTORY` makes `DIRECTORY/<n>` for n = 1, 2, …: each a copy of
the same memory, left by a process that was killed before its n-th statement: in `remember` turns
wait to be remembered, in `forget` they are, and what the first became is forgotten. It prints each n, and
`done` when a process came to its end.
"""
# ruff: noqa: T201
# a script talks by printing

import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memory.episodes.remembering import Remembering
from memory.episodes.writer import MemoryWriter
from memory.forgetting import Forgetting
from memory.ids import derived_id
from memory.intents.turns import ChronicleTurns
from memory.scope import Scope
from memory.stores.sqlite.chronicle import SqliteChronicle
from memory.stores.sqlite.database import Database
from tests.support.episodes import AT, open_memory, opened_on, recorder_on, turn_intents

COMMANDS = {
    "trn_1": "deploy the shop",
    "trn_2": "清理归档目录",
    "trn_3": "deploy the shop",  # the same again: merged, and only counted
    "trn_4": "rotate the keys of the ledger",
}


async def prepare(directory: Path) -> None:
    """Make a memory in which turns wait."""
    async with open_memory(directory) as database:
        for turn_id, command in COMMANDS.items():
            intents = turn_intents(turn_id, command=command, message=f"please {command}")
            await recorder_on(database).record_intents(intents)


async def remember(database: Database) -> int:
    """Remember whatever waits."""
    store = opened_on(database).store
    writer = MemoryWriter(store, deliver_to=["vector", "memu"], now=lambda: AT)
    return await Remembering(ChronicleTurns(SqliteChronicle(database)), writer, store).drain()


async def prepare_remembered(directory: Path) -> None:
    """Make a memory in which they are remembered."""
    await prepare(directory)
    async with open_memory(directory) as database:
        await remember(database)


async def forget(database: Database) -> bool:
    """Forget what the first turn became."""
    forgetting = Forgetting(
        database, backends=["vector"], recording=recorder_on(database).recording, now=lambda: AT
    )
    return await forgetting.forget(derived_id("epi", "trn_1"), Scope(owner_id="ann"))


WORK: Mapping[str, Callable[[Database], Awaitable[object]]] = {
    "remember": remember,
    "forget": forget,
}
PREPARE = {"remember": prepare, "forget": prepare_remembered}


async def work_until(what: str, directory: Path, statement: int) -> None:
    """Do it, and be killed before so many statements of the writer's."""
    left = statement

    def trace(sql: str) -> None:
        nonlocal left
        if sql.startswith("--"):
            return  # a statement within one
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(connection: sqlite3.Connection) -> None:
        connection.set_trace_callback(trace)

    async with open_memory(directory) as database:
        await database.write(watch)
        await WORK[what](database)


def in_child(work: Callable[..., Awaitable[None]], *arguments: object) -> bool:
    """Run it in a process of its own; whether that came to its end."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            anyio.run(work, *arguments)
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        raise SystemExit("a process failed otherwise than by being killed")
    return os.WIFEXITED(status)


def main(what: str, directory: Path) -> None:
    """Kill it before each statement, one after another."""
    template = directory / "template"
    template.mkdir()
    in_child(PREPARE[what], template)
    for statement in count(1):
        copy = directory / str(statement)
        shutil.copytree(template, copy)
        ended = in_child(work_until, what, copy, statement)
        print("done" if ended else statement, flush=True)
        if ended:
            return


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
