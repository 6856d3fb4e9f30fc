"""The program that the agent starts in place of each shell command: the broker runs it in a box.

It is run by the script that `Box.write_script_blocking` writes, inside the agent's own sandbox. It
uses next to nothing of the standard library, because each command pays for its start. When it ends
early, its connection closes and the broker ends the box.

Arguments: the folder of the broker's socket, and the command line of the agent program. That ends
with where the shell's last working directory is to be written.
"""

import _socket
import os
import sys

SOCKET = "socket"
"""The same as in `gateway.engine.box.process`."""
KEY = "key"
"""The file of what a request begins with."""
MARK = "AGENT_OF_CANDOR"
"""The same as in `gateway.engine.processes`."""

_CWD = " && pwd -P >| "
_MAX_ANSWER = 65_536
_MAX_KEY = 256
_OUTPUTS = b"".join(fd.to_bytes(4, sys.byteorder) for fd in (1, 2))
"""The descriptors of standard output and standard error, as the kernel takes them."""
_GONE = "The sandbox does not run at the moment, so this command did not run to its end. Try again."


def main(folder: str, line: str) -> int:
    """Ask for a line to be run; return its exit code."""
    cwd = os.getcwd()  # noqa: PTH109  pathlib costs start-up time
    file = _unquote(line.rpartition(_CWD)[2]) if _CWD in line else ""
    mark = os.environ.get(MARK, "")  # noqa: TID251  a program of its own
    broker = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    os.chdir(folder)  # the path of a socket must be short
    try:
        broker.connect(SOCKET)
        opened = os.open(KEY, os.O_RDONLY)
        key = os.read(opened, _MAX_KEY).decode()
        request = os.fsencode(f"{key}{mark}\0{cwd}\0{file}\0{line}")
        rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, _OUTPUTS)
        broker.sendmsg([request], [rights])
        code, _, ended_in = (
            broker.recv(_MAX_ANSWER).decode("utf-8", "surrogateescape").partition(" ")
        )
    except OSError:
        code, ended_in = "", ""
    if not code:
        os.write(2, f"{_GONE}\n".encode())
        return 1
    if ended_in and file:
        target = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        os.write(target, os.fsencode(ended_in + "\n"))
    return int(code)


def _unquote(word: str) -> str:
    if "'" not in word:
        return word
    import shlex  # noqa: PLC0415  most commands need not wait for it

    return "".join(shlex.split(word))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
