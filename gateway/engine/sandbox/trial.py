"""Tests a sandbox by trying to break out of it.

A child in the sandbox of the agents tries to write, read and change a file outside, and to write
and read in each place that should be open. The outcome counts, not the kernel's version.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gateway.engine.environment import KEEPS

_DEADLINE_S = 20.0
_KEPT = "kept"
_NAME = ".candor-trial"

_ATTEMPTS = f"""\
outside=$1
shift
(echo x > "$outside/written") 2>/dev/null && echo outside-written
(read -r line < "$outside/{_KEPT}") 2>/dev/null && echo outside-read
chmod 700 "$outside/{_KEPT}" 2>/dev/null && echo outside-changed
for place; do
  file=$place/{_NAME}
  (echo x > "$file" && read -r line < "$file" && rm "$file") 2>/dev/null && echo inside-open
done
echo tried
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the child was able to do."""

    ran: bool
    """The child finished; otherwise nothing else is known."""
    writes_outside: bool
    reads_outside: bool
    changes_outside: bool
    """Modes, owners and dates, which Landlock alone does not protect."""
    works_inside: bool
    """Every place that should be open is."""


def attempt_blocking(before: Sequence[str], scratch: Path, inside: Sequence[Path]) -> Outcome:
    """Run the trial; `before` is the command prefix that starts a program in the sandbox.

    `scratch` is a directory of the server outside of it. Nothing is left there or in the places
    inside.
    """
    outside = Path(tempfile.mkdtemp(prefix="wall-trial-", dir=scratch))
    try:
        (outside / _KEPT).write_text("kept\n", encoding="ascii")
        (outside / _KEPT).chmod(0o600)
        said = _run_blocking(
            [*before, "/bin/sh", "-c", _ATTEMPTS, "sh", *map(str, (outside, *inside))]
        )
    finally:
        shutil.rmtree(outside, ignore_errors=True)
        for place in inside:
            with suppress(OSError):
                (place / _NAME).unlink(missing_ok=True)
    return Outcome(
        ran="tried" in said,
        writes_outside="outside-written" in said,
        reads_outside="outside-read" in said,
        changes_outside="outside-changed" in said,
        works_inside=said.count("inside-open") == len(inside),
    )


def _run_blocking(command: Sequence[str]) -> list[str]:
    environ = {"PATH": os.defpath, KEEPS: "PATH"}
    try:
        done = subprocess.run(  # noqa: S603  our own arguments, no shell
            command,
            env=environ,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_DEADLINE_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.decode("ascii", "replace").split()
