"""Starts servers out of a process that has imported them already: that is most of what a start costs.

One such process serves all tests of a test process. What it makes is the same program with the
same arguments, environment, directory and outputs; only the imports have been done before. Tests
of the start itself start the real way (`fresh`), and so do those with an environment that acts
before the first import or that others look into.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
POSSIBLE = sys.platform == "linux"

_PROGRAM = Path(__file__).with_name("warm_starts_program.py")
_STARTER_ENV = {
    "PYTHONWARNINGS": "error",
    "OPENBLAS_NUM_THREADS": "1",  # a process that forks must have one thread
}
_lock = threading.Lock()
_orders: list[socket.socket] = []


class WarmProcess:
    """A server process, to be asked and told what a `Popen` is."""

    def __init__(self, said: int) -> None:
        self._said = said
        self._rest = b""
        self._lock = threading.Lock()
        self.returncode: int | None = None
        pid = self._line(None)
        assert pid is not None, "the process that starts servers has ended"
        self.pid = int(pid)

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal, or None while it runs."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(["app.py"], timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it as a crash does."""
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout_s: float | None) -> int | None:
        with self._lock:
            if self.returncode is None and (status := self._line(timeout_s)) is not None:
                self.returncode = os.waitstatus_to_exitcode(int(status))
                os.close(self._said)
            return self.returncode

    def _line(self, timeout_s: float | None) -> str | None:
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while b"\n" not in self._rest:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([self._said], [], [], left)[0]:
                return None
            more = os.read(self._said, 100)
            assert more, "the process that starts servers has ended"
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()


def start_warm(
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    out: int,
    err: int,
    given: int | None = None,
    program: Path = ROOT / "app.py",
) -> WarmProcess:
    """Start a program with these arguments and this environment; it reads `given`, else nothing."""
    said, tell = os.pipe()
    words = [str(program), *arguments]
    try:
        order = json.dumps({"words": words, "env": dict(env)}).encode()
        streams = [out, err] if given is None else [out, err, given]
        socket.send_fds(_line_to_starter(), [order], [tell, *streams])
    finally:
        os.close(tell)
    return WarmProcess(said)


def _line_to_starter() -> socket.socket:
    with _lock:
        if not _orders:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                starter = subprocess.Popen(
                    [sys.executable, str(_PROGRAM), str(theirs.fileno())],
                    cwd=ROOT,
                    env={**os.environ, **_STARTER_ENV},
                    stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                )
            _orders.append(ours)
            atexit.register(_end, ours, starter)
        return _orders[0]


def _end(line: socket.socket, starter: subprocess.Popen[bytes]) -> None:
    line.close()
    starter.wait()
