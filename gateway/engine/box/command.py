"""Runs one command in a box of its own, from its request to the end of its last process."""

import codecs
import json
import os
import select
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gateway.engine.box.descriptors import memory_file
from gateway.engine.box.limits import Limits, Watch
from gateway.engine.box.mounts import MAX_MOUNTS, Folder, Opened, TooManyMounts, open_mounts
from gateway.engine.box.netns import listen_inside_blocking
from gateway.engine.box.plan import (
    GIT_SETTINGS,
    HOME,
    BoxPlan,
    Mount,
    box_environment,
    groups_file,
    users_file,
)
from gateway.engine.box.proxy import Proxy
from gateway.engine.box.search import Protected
from gateway.engine.box.wrapper import MARK

_TICK_S: Final = 0.05
_FIRST_TICK_S: Final = 0.01
_FIRST_S: Final = 0.5
"""So long the watch looks more often: what breaks a limit at once should be seen doing so."""
_TICKS_PER_COST: Final = 4
"""The watch takes at most a fifth of the time."""
_CHUNK: Final = 65_536
_PIPE_ROOM: Final = 4096
"""What a pipe that is ready for writing takes at once (PIPE_BUF)."""
_INFO_S: Final = 10.0
_END_S: Final = 10.0
_LIVE_AFTER_S: Final = 0.3
"""A command that takes less is not reported while it runs."""
_LIVE_EVERY_S: Final = 0.2
_LIVE_PIECE_CHARS: Final = 4096
_LIVE_CHARS: Final = 65_536
"""Of one command."""
_KILLED: Final = 137
_NOT_STARTED: Final = 126
_TOO_MANY: Final = (
    "the workspace has too many files and folders with the names of secrets or of configuration"
    f" to cover them all (at most {MAX_MOUNTS}, with the folders above them)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all boxes of a broker have in common."""

    program: Path
    system: Sequence[tuple[str, str]]
    folders: Sequence[Folder]
    """The workspace first, then those that the policy's rules open."""
    filter: bytes
    limits: Limits
    hosts: Collection[str]
    secrets: Mapping[str, tuple[str, str]] = field(repr=False)
    """By host: the header that its plain requests get, name and value."""
    report: Callable[[dict[str, object]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One command."""

    line: str
    cwd: str
    cwd_file: str
    """Where the line writes its last working directory; empty: it does not."""
    outputs: Sequence[int]
    """The descriptors of its standard output and standard error."""
    speaker: socket.socket
    """The connection of the caller; the command ends when it closes."""
    mark: str
    """What they say of themselves: for the reports, and on the processes of the box, so that the
    engine finds them as it finds an agent's."""


@dataclass(slots=True, kw_only=True)
class Outcome:
    """How a command ended."""

    code: int
    ended_in: str = ""
    reason: str = ""
    """Why it was ended, as the end of a sentence; empty: it ended by itself."""
    written: bytes = field(default=b"", repr=False)
    """What it wrote to the last of its outputs, if that is a file."""


def run_blocking(
    around: Surroundings, request: Request, found: Sequence[Sequence[Protected]]
) -> Outcome:
    """Run a command; when this returns, no process of it is left.

    `found` is what is protected in each folder.
    """
    with Opened() as opened, ExitStack() as stack:
        try:
            each = zip(around.folders, found, strict=True)
            mounts = [
                mount for folder, known in each for mount in open_mounts(folder, known, opened)
            ]
        except TooManyMounts:
            return Outcome(code=_NOT_STARTED, reason=_TOO_MANY)
        except OSError:
            reason = "the protected files could not all be covered"
            return Outcome(code=_NOT_STARTED, reason=reason)
        mounts += _own_files([entry for known in found for entry in known], opened)
        info, ended_in, block = _Pipe(stack), _Pipe(stack), _Pipe(stack)
        plan = BoxPlan(
            program=around.program,
            system=around.system,
            mounts=mounts,
            cwd=request.cwd,
            line=request.line,
            limits=around.limits,
            filter_fd=opened.keep(memory_file(around.filter)),
            info_fd=info.writer,
            block_fd=block.reader if around.hosts else None,
            cwd_file=request.cwd_file,
            cwd_fd=ended_in.writer,
        )
        inherited = [info.writer, ended_in.writer, *([block.reader] if around.hosts else [])]
        live = _LiveOutput(request.mark, around.report)
        outputs = _Outputs(request.outputs, stack, live)
        written = [Path(folder.source) for folder in around.folders if folder.is_writable]
        watch = Watch(around.limits, written)
        process = subprocess.Popen(  # noqa: S603  our own arguments, no shell
            plan.arguments(),
            stdin=subprocess.DEVNULL,
            stdout=outputs.pipes[0].writer,
            stderr=outputs.pipes[-1].writer,
            env={**box_environment(around.hosts, around.secrets), MARK: request.mark},
            pass_fds=[*opened.fds, *inherited],
            cwd="/",
        )
        for pipe in (info, ended_in, *outputs.pipes):
            pipe.close_writer()
        box = _Box(process, _read_first_process(info.reader))
        stack.callback(box.end_blocking)
        if around.hosts and box.first is not None:
            _open_proxy(around, box.first, stack)
        os.write(block.writer, b"1")
        outcome = _attend(box, outputs, watch, around.limits, request.speaker)
        box.end_blocking()
        outcome.ended_in = ended_in.read_waiting()
        outcome.written = bytes(outputs.kept)
        return outcome


def _open_proxy(around: Surroundings, box: int, stack: ExitStack) -> None:
    def report(host: str, what: str) -> None:
        around.report({"host": host, "what": what})

    proxy = Proxy(listen_inside_blocking(box), around.hosts, report, secrets=around.secrets)
    proxy.start()
    stack.callback(proxy.close)


def _own_files(found: Sequence[Protected], opened: Opened) -> list[Mount]:
    """Mount the files of the box that are on no disk."""
    files = {
        "/etc/passwd": users_file(os.getuid()),
        "/etc/group": groups_file(os.getgid()),
        f"{HOME}/.gitconfig": GIT_SETTINGS,
        f"{HOME}/.gitignore": os.fsencode("\n".join(_names_of_secrets(found))),
    }
    return [Mount("file", at, opened.keep(memory_file(text))) for at, text in files.items()]


def _names_of_secrets(found: Sequence[Protected]) -> list[str]:
    """Return the names of secrets, which git is not to add: they are empty here."""
    return sorted({entry.path.rpartition("/")[2] for entry in found if entry.is_secret})


class _Pipe:
    """A pipe whose ends are closed at the end of a stack."""

    def __init__(self, stack: ExitStack) -> None:
        self.reader, self.writer = os.pipe()
        self._is_open = True
        stack.callback(os.close, self.reader)
        stack.callback(self.close_writer)

    def close_writer(self) -> None:
        """Close the end for writing. Idempotent."""
        if self._is_open:
            self._is_open = False
            os.close(self.writer)

    def read_waiting(self) -> str:
        """Return the last line of what can be read now."""
        if not select.select([self.reader], [], [], 0)[0]:
            return ""
        lines = os.read(self.reader, _CHUNK).decode("utf-8", "surrogateescape").split("\n")
        return lines[-2] if len(lines) > 1 else ""


class _LiveOutput:
    """Reports what a command writes while it runs: its beginning, in pieces, now and then."""

    def __init__(self, mark: str, report: Callable[[dict[str, object]], None]) -> None:
        self._mark = mark
        self._report = report
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._waiting = ""
        self._left = _LIVE_CHARS
        self._next = time.monotonic() + _LIVE_AFTER_S

    def add(self, data: bytes) -> None:
        """Keep a piece until it is reported."""
        if self._left > 0:
            piece = self._decode(data)[: self._left]
            self._waiting += piece
            self._left -= len(piece)

    def report(self) -> None:
        """Report what waits, if it is time."""
        now = time.monotonic()
        if self._waiting and now >= self._next:
            piece, self._waiting = (
                self._waiting[:_LIVE_PIECE_CHARS],
                self._waiting[_LIVE_PIECE_CHARS:],
            )
            self._next = now + _LIVE_EVERY_S
            self._report({"mark": self._mark, "output": piece})


class _Outputs:
    """What a command writes, on its way to whoever asked; both outputs are one if theirs are."""

    def __init__(self, targets: Sequence[int], stack: ExitStack, live: "_LiveOutput") -> None:
        is_one = os.path.samestat(*map(os.fstat, targets))
        kept = targets[:1] if is_one else targets
        self.pipes = [_Pipe(stack) for _ in kept]
        self._open = {pipe.reader: target for pipe, target in zip(self.pipes, kept, strict=True)}
        self._last = kept[-1]
        self.written = 0
        self.kept = bytearray()
        """What was written to the last of the targets, if that is a file."""
        self.live = live

    @property
    def readers(self) -> list[int]:
        """Return the descriptors that have not come to their end."""
        return list(self._open)

    def pass_on(self, ready: Collection[int]) -> None:
        """Copy a piece of each output that can be read."""
        for reader, target in list(self._open.items()):
            if reader in ready:
                self._copy(reader, target)

    def _copy(self, reader: int, target: int) -> None:
        is_file = stat.S_ISREG(os.fstat(target).st_mode)
        if not is_file and not select.select([], [target], [], _TICK_S)[1]:
            return
        data = os.read(reader, _CHUNK if is_file else _PIPE_ROOM)
        if not data:
            del self._open[reader]
        self.written += len(data)
        self.live.add(data)
        with suppress(OSError):  # nobody reads it any more
            count = os.write(target, data)
            if is_file and target == self._last:
                self.kept += data[:count]


class _Box:
    """The processes of a box: bubblewrap outside, and the first one inside, its id here."""

    def __init__(self, process: "subprocess.Popen[bytes]", first: int | None) -> None:
        self.process = process
        self.first = first
        self._descriptor = None
        if first is not None:
            with suppress(ProcessLookupError):
                self._descriptor = os.pidfd_open(first)

    def end_blocking(self) -> None:
        """Kill whatever is left, and wait for it. Idempotent."""
        self.process.kill()
        self.process.wait()
        if self._descriptor is None:
            return
        # the kernel ends the others of a process namespace before its first process
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
        select.select([self._descriptor], [], [], _END_S)
        os.close(self._descriptor)
        self._descriptor = None


def _read_first_process(info: int) -> int | None:
    """Return the process id that bubblewrap tells; None if it could not start the box."""
    told = b""
    while select.select([info], [], [], _INFO_S)[0] and (data := os.read(info, _CHUNK)):
        told += data
    try:
        return int(json.loads(told)["child-pid"])
    except (ValueError, KeyError):
        return None


def _attend(
    box: _Box, outputs: _Outputs, watch: Watch, limits: Limits, speaker: socket.socket
) -> Outcome:
    """Pass on what a command writes until it ends, uses too much, or is abandoned."""
    started = time.monotonic()
    next_look = started
    descriptor = os.pidfd_open(box.process.pid)
    asked = speaker.fileno()
    try:
        while True:
            readers = outputs.readers
            tick_s = _FIRST_TICK_S if time.monotonic() - started < _FIRST_S else _TICK_S
            ready = select.select([*readers, asked, descriptor], [], [], tick_s)[0]
            if asked in ready:
                return Outcome(code=_KILLED)  # nobody waits for it any more
            outputs.pass_on(ready)
            outputs.live.report()
            has_ended = descriptor in ready and not set(readers) & set(ready)
            now = time.monotonic()
            if outputs.written > limits.output_bytes:
                reason = f"it wrote more than {limits.output_mb} MB of output"
            elif now - started > limits.wall_s:
                reason = f"it ran longer than {limits.wall_s:g} seconds"
            elif box.first is not None and (has_ended or now >= next_look):
                reason = watch.excess_blocking(box.first) or ""
                next_look = now + max(tick_s, (time.monotonic() - now) * _TICKS_PER_COST)
            else:
                reason = ""
            if reason:
                return Outcome(code=_KILLED, reason=reason)
            if has_ended:
                return Outcome(code=box.process.wait())
    finally:
        os.close(descriptor)
