"""Finds, measures and ends the agents' processes by a mark in their environment.

Every agent process is started with `MARK=<owner>:<client_id>` in its environment, which its
children inherit even if they detach. So a whole tree is found without the SDK, and after a crash
the next server finds exactly the processes of the last one: the owner names the data directory.
Everything here blocks; callers use a worker thread.
"""

import contextlib
import hashlib
import os
import shlex
import stat
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import psutil

from gateway.atomic import write_atomically_blocking

MARK = "AGENT_OF_CANDOR"
"""Not `CANDOR_…`, so that a server started inside an agent does not read it as a setting."""

_TERMINATE_GRACE_S = 2.0
_LOOK_AGAIN_S = 0.01
_LIST_AGAIN_S = 0.1
_MAX_ROUNDS = 20


def owner_of(data_dir: Path) -> str:
    """Return the name of the server that uses a data directory; restarts do not change it."""
    return hashlib.sha256(os.fsencode(data_dir.resolve())).hexdigest()[:16]


def _mark_of(process: psutil.Process) -> str | None:
    """Return a process's mark; None if it has none, has ended, or belongs to another user.

    Raise `OSError` if its environment could not be read for another reason, such as no free
    descriptor.
    """
    try:
        mark: str | None = process.environ().get(MARK)
    except (psutil.Error, PermissionError, FileNotFoundError, ProcessLookupError):
        return None
    return mark


def _marked(wanted: Callable[[str], bool]) -> list[psutil.Process]:
    def fits(process: psutil.Process) -> bool:
        mark = _mark_of(process)
        return mark is not None and wanted(mark)

    me = os.getpid()
    found = []
    for listed in psutil.process_iter():
        if listed.pid != me and fits(listed):
            with contextlib.suppress(psutil.Error):
                # psutil keeps what it lists: `listed` may stand for an earlier process of this id
                process = psutil.Process(listed.pid)
                if fits(process):
                    found.append(process)
    return found


def tree_blocking(root: psutil.Process) -> list[psutil.Process]:
    """Return an agent and its attached descendants; the agent first.

    Reads only the processes of this tree if the kernel lists a process's children.
    """
    if not Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists():
        with contextlib.suppress(psutil.Error):
            return [root, *root.children(recursive=True)]
        return []
    tree = [root] if root.is_running() else []
    for process in tree:  # which grows meanwhile
        for pid in _child_pids(process.pid):
            with contextlib.suppress(psutil.Error, OSError):
                tree.append(psutil.Process(pid))
    return tree


def memory_bytes_blocking(root: psutil.Process) -> int:
    """Return the proportional memory of an agent's tree, or its resident memory if
    that is unknown.
    """
    total = 0
    for process in tree_blocking(root):
        try:
            full = process.memory_full_info()
            total += getattr(full, "pss", 0) or full.rss
        except (psutil.Error, OSError):
            continue
    return total


def _child_pids(pid: int) -> list[int]:
    """Return the children of all threads of a process; empty if it has ended."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                found += map(int, (task / "children").read_bytes().split())
    return found


def is_running(pid: int) -> bool:
    """Return whether a child of this process is running. Does not block."""
    if sys.platform != "linux":
        return psutil.pid_exists(pid)
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:  # it has ended and was waited for
        return False


def kill_client_blocking(mark: str, known: Iterable[psutil.Process] = ()) -> int:
    """Kill all processes with this mark, including detached children, and those `known` to belong
    to it.

    Repeats until none is found, because a process can start others meanwhile. Returns their number.
    Raise `OSError` if the processes could not be listed; some may be left.
    """
    return _kill_all(lambda one: one == mark, known)


def await_commands_blocking(mark: str, agent: psutil.Process) -> None:
    """Wait until all that an agent has started is gone; kill what stays longer than the grace.

    Raise `OSError` if the processes could not be listed, or stay.
    """
    until = time.monotonic() + _TERMINATE_GRACE_S
    while time.monotonic() < until + _TERMINATE_GRACE_S:
        marked = _marked(lambda other: other == mark)
        left = [process for process in marked if process != agent and _is_active(process)]
        if not left:
            return
        if time.monotonic() > until:
            for process in left:
                with contextlib.suppress(psutil.Error, OSError):
                    process.kill()
        time.sleep(_LOOK_AGAIN_S)
    raise TimeoutError


def end_owner_blocking(owner: str) -> int:
    """End all agents of `owner` after a crash and return their number."""

    def wanted(mark: str) -> bool:
        return mark.partition(":")[0] == owner

    politely = _with_descendants(_marked(wanted))
    for process in politely:
        with contextlib.suppress(psutil.Error, OSError):
            process.terminate()
    _wait_ended(politely)
    return len(politely) + _kill_all(
        wanted, [process for process in politely if _is_active(process)]
    )


def _kill_all(wanted: Callable[[str], bool], known: Iterable[psutil.Process]) -> int:
    total = 0
    found = {process for process in known if _is_active(process)}
    fault: OSError | None = None
    for _ in range(_MAX_ROUNDS):
        try:
            found |= set(_with_descendants(_marked(wanted)))
            fault = None
        except OSError as exc:  # does not mean that none is left
            fault = exc
            time.sleep(_LIST_AGAIN_S)
        if not found and fault is None:
            return total
        for process in found:
            with contextlib.suppress(psutil.Error, OSError):
                process.kill()
                total += 1
        _wait_ended(found)
        found = set()
    if fault is not None:
        raise fault
    return total


def _with_descendants(roots: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Add the attached descendants: a child may have cleared its environment,
    including the mark.
    """
    return list(dict.fromkeys(process for root in roots for process in tree_blocking(root)))


def _is_active(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
    except OSError:  # unknown
        return True


def _wait_ended(processes: Iterable[psutil.Process]) -> None:
    """Wait, within a bound, until they have ended; their exit codes are left to their owners."""
    until = time.monotonic() + _TERMINATE_GRACE_S
    while time.monotonic() < until and any(map(_is_active, processes)):
        time.sleep(_LOOK_AGAIN_S)


def launch_words(server_pid: int | str, wall: Sequence[str]) -> list[str]:
    """Return the command prefix that starts a program as an agent is started."""
    return [*_start_of_launcher(), str(server_pid), *wall, "--"]


def _start_of_launcher() -> list[str]:
    return [sys.executable, "-I", "-S", str(Path(__file__).with_name("launcher.py"))]


def launch_script_blocking(directory: Path, agent: Path, wall: Sequence[str] = ()) -> Path:
    """Write the script that the SDK starts as its agent; the launcher then becomes `agent`.

    `wall` are the launcher's words for the kernel's sandbox; empty for none.
    """
    before, after = shlex.join(_start_of_launcher()), shlex.join([*wall, "--", str(agent)])
    line = f'exec {before} "$PPID" {after} "$@"\n'
    script = directory / "start-agent"
    write_atomically_blocking(script, f"#!/bin/sh\n{line}".encode(), mode=stat.S_IRWXU)
    return script
