"""Copies a directory before each statement of its database's writer: the files that a process killed there leaves.

A killed process leaves what it has written. A copy that is made before a statement, in the thread that is
about to run it, holds the same. Real processes are killed in `test_store_killed` and `test_kill_rounds`.
The ordinary run copies at every third statement, the soak at each.
"""

import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

at_points = pytest.mark.parametrize(
    "every", [3, pytest.param(1, marks=pytest.mark.soak)], ids=["some", "each"]
)


class CrashImages:
    """Copies a directory to `images/<n>` for n = 1, 2, …, at every so many-th point."""

    def __init__(
        self, directory: Path, images: Path, every: int, on_copy: Callable[[str], None]
    ) -> None:
        self._directory = directory
        self._images = images
        self._every = every
        self._on_copy = on_copy
        self._passed = 0
        self.count = 0

    def watch(self, connection: sqlite3.Connection) -> None:
        """Make each statement of a connection a point; those within one are none."""

        def trace(sql: str) -> None:
            if not sql.startswith("--"):
                self.pass_point()

        connection.set_trace_callback(trace)

    def pass_point(self) -> None:
        """Come to a point."""
        if self._passed % self._every == 0:
            self.take()
        self._passed += 1

    def take(self) -> None:
        """Make a copy."""
        self.count += 1
        name = str(self.count)
        shutil.copytree(self._directory, self._images / name)
        self._on_copy(name)


async def crashed_everywhere(
    images: Path,
    prepare: Callable[[Path], Awaitable[object]],
    work: Callable[[Path, CrashImages], Awaitable[object]],
    *,
    every: int,
    on_copy: Callable[[str], None] = lambda _: None,
) -> int:
    """Prepare a directory and work in it; return how many copies there are, the last one of the end.

    `on_copy` is called with the name of each copy when it is made.
    """
    directory = images / "whole"
    directory.mkdir()
    await prepare(directory)
    points = CrashImages(directory, images, every, on_copy)
    await work(directory, points)
    points.take()
    return points.count
