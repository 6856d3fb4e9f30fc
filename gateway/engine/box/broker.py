"""The broker's program: takes commands from a socket and runs each in a box, one after another.

It stands outside the agents' own sandbox, so it takes from them a command line and a folder of the
workspace, and every path, limit and host from its start alone. It is ended with the server: its
standard input closes then. Without a command for long it ends by itself, with the code 0. It writes
its reports, one JSON object a line, to standard output.
"""

import json
import os
import select
import socket
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hmac import compare_digest
from pathlib import Path
from typing import Any, Final

from gateway.engine.box.aftermath import restore_blocking
from gateway.engine.box.broker_plan import BrokerPlan
from gateway.engine.box.command import Outcome, Request, Surroundings, run_blocking
from gateway.engine.box.identity import take_identity_blocking
from gateway.engine.box.limits import Limits
from gateway.engine.box.mounts import Folder
from gateway.engine.box.search import Protected, Searcher
from gateway.engine.box.seccomp import filter_program
from gateway.engine.box.work_tree import RepositorySearch, WorkTreeFolders, name_of

Search = Searcher | RepositorySearch
_MAX_REQUEST: Final = 262_144
_REQUEST_S: Final = 5.0
IDLE_S: Final = 600.0
"""A broker without a command for so long ends; the server starts another for the next one."""
_CWD_FILE: Final = "claude-"
_NOT_STARTED: Final = 126
_CREDENTIALS: Final = struct.Struct("3i")  # struct ucred
_MOST_SHOWN: Final = 5
_SHORT_BYTES: Final = 8_000
"""Of a longer output the agent gets the beginning alone, and a person sees no more at first."""
_INSTALLED_ABOVE: Final = 2
"""So many folders above the program its libraries are found, where it came as a package."""


class Broker:
    """Serves the commands of one workspace."""

    def __init__(self, plan: BrokerPlan, listener: socket.socket) -> None:
        if not Path(f"/proc/self/task/{os.getpid()}/children").exists():
            raise LookupError("this kernel does not list the children of a process")
        self._plan = plan
        self._listener = listener
        self._peer = os.getuid()
        program = Path(plan.program)
        wanted = [Path(plan.workspace), *(Path(path) for _, path in plan.folders)]
        if plan.is_packaged:
            wanted.append(program.parents[_INSTALLED_ABOVE])
        places = take_identity_blocking(wanted)
        if plan.is_packaged:
            program = places[wanted[-1]] / program.relative_to(wanted[-1])
        folders = [
            Folder(at=path, source=str(places[Path(path)]), is_writable=kind == "write")
            for kind, path in [("write", plan.workspace), *plan.folders]
        ]
        self._around = Surroundings(
            program=program,
            system=[(path, leads) for path, leads in plan.system],
            folders=folders,
            filter=filter_program(),
            limits=Limits(memory_mb=plan.memory_mb),
            hosts=plan.hosts,
            secrets={host: (name, value) for host, (name, value) in plan.secrets.items()},
            report=report,
        )
        self._searchers = [Searcher(Path(folder.source), at=folder.at) for folder in folders]
        self._work_trees = WorkTreeFolders(folders[0])

    def serve_blocking(self) -> None:
        """Serve until standard input closes, or no command has come for long."""
        while True:
            ready = select.select([self._listener, sys.stdin], [], [], IDLE_S)[0]
            if not ready or sys.stdin in ready:
                return
            speaker, _ = self._listener.accept()
            with speaker:
                self._answer(speaker)

    def _answer(self, speaker: socket.socket) -> None:
        """Run one command; whatever fails with it, the next one is served."""
        fds: list[int] = []
        try:
            peer = speaker.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            if _CREDENTIALS.unpack(peer)[1] != self._peer:
                return
            speaker.settimeout(_REQUEST_S)
            data, fds, _, _ = socket.recv_fds(speaker, _MAX_REQUEST, 2)
            request = self._read(data, fds, speaker)
            if request is not None:
                outcome = self._run(request)
                answer = f"{outcome.code} {outcome.ended_in}"
                with suppress(OSError):  # they are gone
                    speaker.send(answer.encode("utf-8", "surrogateescape"))
        except Exception as exc:  # noqa: BLE001  the broker outlives a command
            report({"fault": f"{type(exc).__name__}: {exc}"})
        finally:
            for fd in fds:
                os.close(fd)

    def _read(self, data: bytes, fds: list[int], speaker: socket.socket) -> Request | None:
        key = self._plan.key.encode()
        if not key or not compare_digest(data[: len(key)], key):
            return None
        parts = data[len(key) :].decode("utf-8", "surrogateescape").split("\0", 3)
        if len(parts) != 4 or len(fds) != 2 or "\0" in parts[3]:  # noqa: PLR2004
            return None
        mark, cwd, cwd_file, line = parts
        workspace = self._plan.workspace
        folder, _, name = cwd_file.rpartition("/")
        is_theirs = folder == self._plan.temporary and name.startswith(_CWD_FILE)
        is_inside = f"{cwd}/".startswith(f"{workspace}/") and ".." not in cwd.split("/")
        return Request(
            line=line,
            cwd=cwd if is_inside else workspace,
            cwd_file=cwd_file if is_theirs else "",
            outputs=fds,
            speaker=speaker,
            mark=mark,
        )

    def _run(self, request: Request) -> Outcome:
        around, searchers = self._around, list[Search](self._searchers)
        if name := name_of(request.cwd, self._plan.workspace):
            folders, own = self._work_trees.of(name)
            around = replace(around, folders=(*folders, *around.folders[1:]))
            searchers = [*own, *searchers[1:]]
        searches = [searcher.search_blocking() for searcher in searchers]
        if unclear := next((why for _, why in searches if why), ""):
            _tell(request, [f"This command did not run: {unclear}."])
            return Outcome(code=_NOT_STARTED)
        before = [found for found, _ in searches]
        outcome = run_blocking(around, request, before)
        sentences = []
        if outcome.reason:
            sentences.append(f"The sandbox ended this command: {outcome.reason}.")
        for folder, searcher, found in zip(around.folders, searchers, before, strict=True):
            if folder.is_writable:
                sentences += _restore(folder, searcher, found)
        _tell(request, sentences, outcome.written)
        return outcome


def _restore(folder: Folder, searcher: Search, before: Sequence[Protected]) -> Iterator[str]:
    """Take away what a command left in a folder under protected names; yield what to say of it."""
    after, unclear = searcher.search_blocking()
    try:
        restored = restore_blocking(Path(folder.source), before, after, at=folder.at)
    except OSError as fault:
        report({"fault": f"not removed: {fault}"})
        yield "What this command made under protected names could not be removed."
        return
    if unclear:
        yield f"No further command runs: {unclear}. Remove it."
    if restored.removed:
        shown = _list(restored.removed)
        yield f"Protected names cannot be made here; the sandbox removed {shown}."
    if restored.rewritten:
        shown = _list(restored.rewritten)
        yield f"A new repository keeps git's own settings alone; the sandbox rewrote {shown}."


def _list(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _MOST_SHOWN} more" if len(paths) > _MOST_SHOWN else ""
    return ", ".join(paths[:_MOST_SHOWN]) + more


def _tell(request: Request, sentences: Sequence[str], written: bytes = b"") -> None:
    """Write sentences at the end of the output, or before it if it is long and in a file."""
    if not sentences:
        return
    target = request.outputs[-1]
    text = "".join(f"{sentence}\n" for sentence in sentences).encode("utf-8", "replace")
    with suppress(OSError):
        if len(written) > _SHORT_BYTES:
            begin = os.fstat(target).st_size - len(written)
            os.ftruncate(target, begin)
            os.lseek(target, begin, os.SEEK_SET)
            text += written
        while text:
            text = text[os.write(target, text) :]


def report(told: Mapping[str, object]) -> None:
    """Write a report for the server."""
    with suppress(OSError):
        os.write(1, json.dumps(told).encode() + b"\n")


def main(listener_fd: int) -> None:
    """Run the broker with a listening socket; its plan comes as a line of standard input."""
    given: dict[str, Any] = json.loads(_first_line())
    os.umask(0o022)
    listener = socket.socket(fileno=os.dup(listener_fd))  # `select` takes no number above 1023
    os.close(listener_fd)
    try:
        broker = Broker(BrokerPlan(**given), listener)
    except LookupError as exc:
        report({"refused": str(exc)})
        sys.exit(1)
    except OSError as exc:
        report({"refused": f"its user cannot be given the workspace ({exc.strerror})"})
        sys.exit(1)
    report({"ready": True})
    broker.serve_blocking()


def _first_line() -> bytes:
    """Read up to the end of a line, and not a byte more: what follows is the end of the file."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            break
        line += byte
    return line
