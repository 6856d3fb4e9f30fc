"""Kills a server's agents when the server falls silent: it is paused, stuck, or dead.

Where several servers share a database another one follows a server that is silent, and what agents
of the silent one still do would be done beside the agents of the other. Nothing inside a process
that is paused as a whole can end them, so a program does. It reads how many seconds the server may
still be silent, a line each time, and kills the agents of the owner when they are over, and at the
end of its input.
"""

import os
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE
from typing import Final

import anyio

from gateway.engine.processes import end_owner_blocking

_ROOT: Final = Path(__file__).resolve().parents[2]
_TELL_S: Final = 0.5
_LONGER_S: Final = 0.5
"""A server that lets go by itself is left to do so."""
_CHUNK: Final = 4096


async def be_watched(owner: str, left_s: Callable[[], float]) -> None:
    """Run the program until cancelled; `left_s` is how long the server may be silent from now.

    Raise `anyio.BrokenResourceError` if the program has ended.
    """
    start = (
        f"import sys; sys.path[:] = {[str(_ROOT), *sys.path]!r}; "
        f"from gateway.engine.watchdog import main; main({owner!r})"
    )
    async with await anyio.open_process(
        [sys.executable, "-I", "-c", start],
        stdin=PIPE,
        stdout=None,
        stderr=None,
        start_new_session=True,  # Ctrl-C at the server's terminal must not reach it
    ) as process:
        assert process.stdin is not None, "it was asked for"
        while True:
            await process.stdin.send(f"{left_s():.3f}\n".encode())
            await anyio.sleep(_TELL_S)


def watch_blocking(told: int, owner: str, end_agents: Callable[[str], int]) -> None:
    """Read a file descriptor until its end; see the module."""
    until_s, text = float("inf"), b""
    while True:
        left_s = until_s - time.monotonic()
        wait_s = None if left_s == float("inf") else max(0.0, left_s)
        if not select.select([told], [], [], wait_s)[0]:
            end_agents(owner)
            until_s = float("inf")  # until it speaks again
            continue
        chunk = os.read(told, _CHUNK)
        if not chunk:
            end_agents(owner)
            return
        *lines, text = (text + chunk).split(b"\n")
        if lines:
            until_s = time.monotonic() + float(lines[-1]) + _LONGER_S


def main(owner: str) -> None:
    """Watch the server at the other end of standard input."""
    watch_blocking(sys.stdin.fileno(), owner, end_owner_blocking)
