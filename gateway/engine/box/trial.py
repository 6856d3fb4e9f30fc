"""Proves the box before it is relied on: a command in it tries to do what it must not.

The broker, the script and, where there is one, the agent's own sandbox around it are those of the
server. Only the outcome counts.
"""

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from gateway.engine.box.process import ENVIRONMENT, Box
from gateway.engine.environment import KEEPS
from gateway.engine.protocol import EngineUnavailable

_DEADLINE_S: Final = 30.0
_KEPT: Final = "kept"

_REFUSED = "CANDOR_SHELL=sandboxed cannot be kept: {reason}. {remedy}"
_OR_LISTED = "Otherwise set CANDOR_SHELL=listed."
_NOT_LANDLOCK = (
    "Landlock alone would keep neither secrets nor protected files in the workspace from a command."
)
_INSTALL = (
    "Install bubblewrap with the system's package manager, or as a package: "
    f"pip install 'candor[sandbox]'. {_NOT_LANDLOCK} {_OR_LISTED}"
)
_ALLOW = (
    "The system has to allow user namespaces to ordinary programs, or at least to bubblewrap. "
    f"{_NOT_LANDLOCK} {_OR_LISTED}"
)
_USER = (
    "Run Candor as an ordinary user, or put the workspace on a file system that can be mounted for "
    f"another user (ext4, xfs, btrfs, tmpfs; Linux 5.12). {_OR_LISTED}"
)

_ATTEMPTS = """\
outside={outside}; port={port}; processes={processes}; planted={planted}
(echo x > "$outside/written") 2>/dev/null && echo "write outside of the workspace"
(read -r line < "$outside/kept") 2>/dev/null && echo "read outside of the workspace"
(read -r line < "$planted/.env") 2>/dev/null && echo "read a secret in the workspace"
(echo x > "$planted/CLAUDE.md") 2>/dev/null && echo "change a protected file in the workspace"
(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && echo "reach the network"
[ "$(readlink /proc/self/ns/pid)" != "$processes" ] || echo "see other processes"
while read -r key value; do
  case $key in
    CapEff:) [ "$value" = 0000000000000000 ] || echo "use capabilities" ;;
    Seccomp:) [ "$value" = 2 ] || echo "use every system call" ;;
  esac
done < /proc/self/status
for descriptor in /proc/self/fd/*; do
  case $(readlink "$descriptor") in
    /proc/*|/dev/null|pipe:*|socket:*|"") ;;
    *) echo "use a file that was left open" ;;
  esac
done
[ "$(ulimit -u)" -le 512 ] || echo "start any number of processes"
(echo x > .candor-trial && read -r line < .candor-trial && rm .candor-trial) && echo works
"""


def refuse(reason: str, remedy: str = _OR_LISTED) -> EngineUnavailable:
    """Return the error of a start that cannot keep what the setting asks for."""
    return EngineUnavailable(_REFUSED.format(reason=reason, remedy=remedy))


def refuse_without_program() -> EngineUnavailable:
    """Return the error of a system without bubblewrap."""
    if not sys.platform.startswith("linux"):
        return refuse("the sandbox is offered on Linux alone", "Set CANDOR_SHELL=listed.")
    return refuse("bubblewrap is not installed", _INSTALL)


def try_box_blocking(box: Box, scratch: Path, before: Sequence[str] = ()) -> None:
    """Run the trial; `before` is the command prefix of the agent's own sandbox.

    `scratch` is a directory of the server outside of the box. Nothing is left there or in the
    workspace. Raise `EngineUnavailable` with a sentence that says what is missing.
    """
    with _running_broker(box):
        could = attempt_blocking([*before, str(box.prefix)], Path(box.plan.workspace), scratch)
    if could:
        raise refuse(f"a program in the box could {could[0]}")


def attempt_blocking(before: Sequence[str], workspace: Path, scratch: Path) -> list[str]:
    """Return what a command could do that none should; `before` are the words in front of its line.

    Raise `EngineUnavailable` if it could not run or not write in the workspace.
    """
    outside = Path(tempfile.mkdtemp(prefix="box-trial-", dir=scratch))
    planted = Path(tempfile.mkdtemp(prefix=".candor-trial-", dir=workspace))
    try:
        (outside / _KEPT).write_text("kept\n", encoding="ascii")
        for name in (".env", "CLAUDE.md"):
            (planted / name).write_text("kept\n", encoding="ascii")
        for path in (planted, *planted.iterdir()):
            path.chmod(0o777)  # only the box keeps a command from them
        with socket.create_server(("127.0.0.1", 0)) as decoy:
            line = _ATTEMPTS.format(
                outside=shlex.quote(str(outside)),
                planted=planted.name,
                port=decoy.getsockname()[1],
                processes=Path("/proc/self/ns/pid").readlink(),
            )
            said = _run(before, line, workspace)
    finally:
        shutil.rmtree(outside, ignore_errors=True)
        shutil.rmtree(planted, ignore_errors=True)
    lines = said.stdout.decode("utf-8", "replace").splitlines()
    if "works" not in lines:
        words = said.stderr.decode("utf-8", "replace").strip().splitlines()
        told = words[-1] if words else "a command ended without a word"
        raise refuse(f"no command can run in a box here ({told})", _ALLOW)
    lines.remove("works")
    return lines


def _run(before: Sequence[str], line: str, workspace: Path) -> "subprocess.CompletedProcess[bytes]":
    try:
        return subprocess.run(  # noqa: S603  our own arguments
            [*before, line],
            env={"PATH": os.defpath, KEEPS: "PATH"},
            cwd=workspace,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_DEADLINE_S,
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise refuse(f"no command can run in a box here ({type(exc).__name__})", _ALLOW) from exc


@contextmanager
def _running_broker(box: Box) -> Iterator[None]:
    """Run a broker of its own while the block runs."""
    with box.listen_blocking() as listener:
        process = subprocess.Popen(  # noqa: S603  our own arguments
            box.command(listener),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=ENVIRONMENT,
            pass_fds=[listener.fileno()],
        )
        with process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(box.order())
                process.stdin.flush()
                told = json.loads(process.stdout.readline() or b"{}")
                if "ready" not in told:
                    reason = str(told.get("refused") or "its broker does not start")
                    raise refuse(reason, _USER if os.getuid() == 0 else _ALLOW)
                yield
            finally:
                process.kill()
