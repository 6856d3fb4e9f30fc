"""Imports a server once and forks one off for each order; see `warm_starts`.

    python warm_starts_program.py DESCRIPTOR

Beside each server stays a process that waits for it and tells its pid and how it ended.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
IMPORTED_WHEN_SERVING = [
    "anyio._backends._asyncio",
    "gateway.agents",
    "gateway.observability.logging",
    "gateway.serve",
    "policies.secrets",
]
_LONGEST = 1 << 20
_STANDARD = 3
_MOST_PASSED = 4


def main(descriptor: int) -> None:
    """Fork a server for each order until nobody is left who could give one."""
    sys.path[0] = str(ROOT)
    gc.disable()  # until all is imported, which lasts
    for name in IMPORTED_WHEN_SERVING:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # so that no server's collector copies the pages they share
    gc.enable()
    signal.signal(signal.SIGCHLD, _reap)  # so that their processor time counts as this process's
    with socket.socket(fileno=descriptor) as orders:
        while True:
            order, passed, _, _ = socket.recv_fds(orders, _LONGEST, _MOST_PASSED)
            if not order:
                return
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                break
            for item in passed:
                os.close(item)
    tell, *streams = passed
    server = os.fork()
    if server == 0:
        _become(json.loads(order), *streams)
    else:
        _watch(server, tell)


def _reap(number: int, frame: FrameType | None) -> None:
    del number, frame
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _become(order: dict[str, Any], out: int, err: int, given: int | None = None) -> None:
    """Be the server; returns or raises as its program does."""
    if given is not None:
        os.dup2(given, 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.closerange(_STANDARD, os.sysconf("SC_OPEN_MAX"))
    # the objects of before took the descriptors for what they were then, such as files to seek in
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, "utf-8", "backslashreplace", closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(order["env"])
    sys.argv = order["words"]
    runpy.run_path(sys.argv[0], run_name="__main__")


def _watch(server: int, tell: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's, which is the server's to obey
    os.write(tell, f"{server}\n".encode())
    _, status = os.waitpid(server, 0)
    os.write(tell, f"{status}\n".encode())
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
