"""Record a turn's intents and die before a given statement; once for each statement that there is.

`python chronicle_program.py DIRECTORY` makes `DIRECTORY/<n>` for n = 1, 2, …: a memory left by a process that was
killed before the n-th statement of recording. It prints each n, and `done` when one came to its end.
"""
# ruff: noqa: T201
# a script talks by printing

import os
import shutil
import signal
import sqlite3
import sys
from functools import partial
from itertools import count
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memory.intents.intent import MemoryIntent
from tests.support.episodes import open_memory, recorder_on
from tests.support.intents import completed, cut_off, received, tool_result


def intents() -> list[MemoryIntent]:
    """Give a turn's intents: some are told, some wait, and the turn ends."""
    return [received("清理"), tool_result(), tool_result(status="error"), cut_off(), completed()]


async def record_until(directory: Path, statement: int) -> None:
    """Record, and be killed before so many statements; 0: never."""
    left = statement

    def trace(sql: str) -> None:
        nonlocal left
        del sql
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    async with open_memory(directory) as database:
        await database.write(lambda writer: sqlite3.Connection.set_trace_callback(writer, trace))
        await recorder_on(database).record_intents(intents())


async def prepare(directory: Path) -> None:
    """Make an empty memory."""
    async with open_memory(directory):
        pass


def ended(directory: Path, statement: int) -> bool:
    """Do it in a process of its own; whether that came to its end."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            anyio.run(partial(record_until, directory, statement))
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        raise SystemExit("a process failed otherwise than by being killed")
    return os.WIFEXITED(status)


def main(directory: Path) -> None:
    """Kill it before each statement, one after another."""
    template = directory / "template"
    template.mkdir()
    anyio.run(prepare, template)
    for statement in count(1):
        copy = directory / str(statement)
        shutil.copytree(template, copy)
        done = ended(copy, statement)
        print("done" if done else statement, flush=True)
        if done:
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]))
