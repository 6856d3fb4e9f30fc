"""The parent of an MCP server: it ends the server, and all that the server started, with itself.

Started by the gateway as a program of its own and never imported. It ends when the server ends,
when the gateway sends SIGTERM, and, on Linux, when the gateway dies. What the server has started
belongs to it even if it has detached (Linux), so nothing is left.

Arguments: the gateway's pid, `--`, the program and its arguments, of which each `@guardian` stands
for the guardian's own pid.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Sequence

OWN_PID = "@guardian"

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
_GRACE_S = 0.5
_LOOK_AGAIN_S = 0.01


class _Ending(BaseException):
    """The server has to end."""


def _end(number: int, _frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)
    raise _Ending


def _belong_to(gateway_pid: int) -> None:
    if sys.platform.startswith("linux"):
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != gateway_pid:  # it died before the kernel was asked
        sys.exit(1)


def _children(server_pid: int) -> list[int]:
    """Return the children that run; those of processes that ended are among them."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:  # noqa: PTH123  pathlib costs start-up time
            return [int(pid) for pid in file.read().split()]
    except OSError:  # not Linux
        return [server_pid] if server_pid else []


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _end_all(server_pid: int) -> None:
    """End the server and its descendants, after a grace by force."""
    until, told = time.monotonic() + _GRACE_S, set[int]()
    while True:
        is_late = time.monotonic() > until
        for pid in _children(server_pid):
            if is_late or pid not in told:
                told.add(pid)
                _signal(pid, signal.SIGKILL if is_late else signal.SIGTERM)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:  # none is left
            return
        time.sleep(_LOOK_AGAIN_S)


def _start(command: Sequence[str]) -> int:
    own = str(os.getpid())
    words = [own if word == OWN_PID else word for word in command]
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.execv(words[0], words)  # noqa: S606  no shell is the point
        finally:
            os._exit(127)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):  # the server alone holds the pipes
        os.dup2(null, stream)
    return child


def main(arguments: Sequence[str]) -> None:
    """Start the server, wait for its end, and end what it has left."""
    signal.signal(signal.SIGTERM, _end)
    server_pid = 0
    try:
        _belong_to(int(arguments[0]))
        server_pid = _start(arguments[2:])
        while os.wait()[0] != server_pid:
            pass
    except _Ending:
        pass
    _end_all(server_pid)


if __name__ == "__main__":
    main(sys.argv[1:])
