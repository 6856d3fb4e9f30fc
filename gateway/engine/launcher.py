"""Stands between the server and the agent process for the blink of its start, then becomes it.

Run as a program by `launch_script`, never imported by the gateway: the standard library alone.
It gives the agent a session of its own, so that Ctrl-C at the server's terminal reaches the server
only and running turns can end honestly, and asks the kernel (Linux) to end the agent when the
server dies, so that no agent outlives a killed server.
"""

import contextlib
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def _die_with_the_server(server_pid: int) -> None:
    if not sys.platform.startswith("linux"):
        return
    import ctypes  # noqa: PLC0415  only here: it costs start-up time

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != server_pid:  # it died before the kernel was asked
        sys.exit(1)


def main(arguments: list[str]) -> None:
    """Become the program `arguments[1:]`; `arguments[0]` is the server's process id."""
    with contextlib.suppress(PermissionError):  # it leads a session already
        os.setsid()
    _die_with_the_server(int(arguments[0]))
    os.execv(arguments[1], arguments[1:])  # noqa: S606  no shell is the point


if __name__ == "__main__":
    main(sys.argv[1:])
