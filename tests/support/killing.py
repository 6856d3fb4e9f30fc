"""Kills a process before each of its statements, one process after another, and keeps what each left.

The ordinary run kills at every third statement, the soak at each.
"""
# ruff: noqa: T201
# a script talks by printing

import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from pathlib import Path

import anyio
import pytest

at_points = pytest.mark.parametrize(
    "every", [3, pytest.param(1, marks=pytest.mark.soak)], ids=["some", "each"]
)

Prepare = Callable[[Path], Awaitable[object]]
"""Makes in a directory what comes before."""
Work = Callable[[Path, "KillPoints"], Awaitable[object]]
"""Does in a copy of it what is cut off."""


class KillPoints:
    """Counts the points of one process; at a given one the process is killed."""

    def __init__(self, at: int) -> None:
        self._left = at

    def pass_point(self) -> None:
        """Come to a point, the last one perhaps."""
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self, connection: sqlite3.Connection) -> None:
        """Make each statement of a connection a point; those within one are none."""

        def trace(sql: str) -> None:
            if not sql.startswith("--"):
                self.pass_point()

        connection.set_trace_callback(trace)


async def killed_everywhere(script: Path, *args: str, every: int) -> int:
    """Run a program that calls `kill_at_each`; return how many copies there are, the last one whole."""
    with anyio.fail_after(240):
        done = await anyio.run_process(
            [sys.executable, str(script), *args],
            env={**os.environ, "KILL_EVERY": str(every)},
            stderr=None,
        )
    points = done.stdout.decode().split()
    assert points[-1] == "done"
    return len(points)


def kill_at_each(directory: Path, prepare: Prepare, work: Work) -> None:
    """Make `directory/<n>` for n = 1, 2, …, each left by a process that was killed at a later point.

    `KILL_EVERY` is the distance between two points. Prints each point, and `done` when a process came to its end.
    """
    template = directory / "template"
    template.mkdir()
    _in_child(partial(prepare, template))
    for number, point in enumerate(count(1, int(os.environ["KILL_EVERY"])), start=1):
        copy = directory / str(number)
        shutil.copytree(template, copy)
        ended = _in_child(partial(work, copy, KillPoints(point)))
        print("done" if ended else point, flush=True)
        if ended:
            return


def _in_child(work: Callable[[], Awaitable[object]]) -> bool:
    """Run it in a process of its own; whether that came to its end."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            anyio.run(work)
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        raise SystemExit("a process failed otherwise than by being killed")
    return os.WIFEXITED(status)
