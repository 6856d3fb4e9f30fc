"""The SDK's own sandbox, used without Landlock: bubblewrap around each Bash command.

It covers no other tool, and does not restrict reading.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from gateway.engine.sandbox.trial import attempt_blocking


def find_bubblewrap_fault_blocking(scratch: Path, workspace: Path) -> str | None:
    """Try bubblewrap as the SDK uses it; return the fault as the end of a sentence, or None."""
    program = shutil.which("bwrap")
    if program is None or shutil.which("socat") is None:
        return "bubblewrap and socat are not installed"
    outcome = attempt_blocking(_around(program, workspace), scratch, [workspace])
    if not outcome.ran:
        return "bubblewrap cannot start a program here"
    if outcome.writes_outside or outcome.changes_outside or not outcome.works_inside:
        return "bubblewrap does not keep a program in the workspace here"
    return None


def _around(program: str, workspace: Path) -> Sequence[str]:
    """Return the command prefix that the SDK uses: everything read-only except the workspace."""
    return (
        program,
        "--new-session",
        "--die-with-parent",
        *("--ro-bind", "/", "/"),
        *("--bind", str(workspace), str(workspace)),
        *("--dev", "/dev"),
        "--unshare-net",
        "--unshare-pid",
        *("--proc", "/proc"),
        "--",
    )
