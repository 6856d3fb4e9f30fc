"""Chooses the sandbox of the agents by trying it: `CANDOR_SANDBOX`.

In order of preference: Landlock around the whole agent process, with read-only mounts if the system
allows a mount namespace, else without them; bubblewrap around Bash commands; none. See `landlock`.
"""

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gateway.engine.processes import launch_words
from gateway.engine.protocol import EngineUnavailable
from gateway.engine.sandbox.places import AgentPlaces
from gateway.engine.sandbox.trial import Outcome, attempt_blocking
from gateway.errors import SettingsError


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


WallKind = Literal["landlock", "bubblewrap", "off"]
WallMode = Literal["auto", "require", "off"]

_WHOLE = (
    "The kernel confines the whole agent process (Landlock): it writes in the workspace and in its "
    "own directories, and reads nothing of other users and nothing of the server's."
)
_NO_MOUNTS = (
    "Modes and dates of this user's other files it could still change: the system allows no mounts "
    "of one's own."
)
_BASH = (
    "The kernel confines what Bash runs (bubblewrap): it writes in the workspace alone. What is "
    "read, "
    "and the other tools, the policy alone watches, because {reason}."
)
_NONE = "The kernel's wall is not raised, because {reason}; the policy alone watches."
_SWITCHED_OFF = "The kernel's wall is switched off by CANDOR_SANDBOX=off; the policy alone watches."
_REFUSED = (
    "CANDOR_SANDBOX=require asks for the kernel's wall, and {reason}; it takes Linux 5.13 or newer "
    "with Landlock. Set CANDOR_SANDBOX=auto to start without it."
)
_NOT_KEPT = "Landlock does not keep a program in the workspace here"
_EXPOSED = "{path} lies where the agent may write; move it out of the workspace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """The sandbox around the agents."""

    kind: WallKind
    sentence: str
    """What it protects, for people."""
    words: Sequence[str] = ()
    """For the launcher."""


def protect_blocking(mode: WallMode, places: AgentPlaces, scratch: Path) -> Protection:
    """Return the strongest sandbox that works when tried; `scratch` is the server's own directory.

    With the mode `require`, raise `SettingsError` if the whole agent process cannot be confined,
    `EngineUnavailable` if the trial failed, which may pass.
    """
    if mode == "off":
        return Protection(kind="off", sentence=_SWITCHED_OFF)
    wall, reason = _whole_process_blocking(places, scratch)
    if wall is None:
        if mode == "require":
            error = EngineUnavailable if reason == _NOT_KEPT else SettingsError
            raise error(_REFUSED.format(reason=reason))
        return _without_landlock_blocking(places, scratch, reason)
    if not (exposed := places.exposed()):
        return wall
    fault = _EXPOSED.format(path=exposed[0])
    if mode == "require":
        raise SettingsError(f"CANDOR_SANDBOX=require cannot be kept: {fault}.")
    return Protection(kind=wall.kind, sentence=f"{wall.sentence} But {fault}.", words=wall.words)


def _whole_process_blocking(places: AgentPlaces, scratch: Path) -> tuple[Protection | None, str]:
    """Return the sandbox of the whole process, or None and the reason as part of a sentence."""
    if not sys.platform.startswith("linux"):
        return None, "it is offered on Linux alone"
    from gateway.engine.sandbox import landlock  # noqa: PLC0415  its library is for Linux

    version = landlock.landlock_version()
    if not version:
        return None, "this kernel offers no Landlock"
    rules = landlock.landlock_words(places, version)
    for words, sentence in (
        ([*landlock.mount_words(places), *rules], _WHOLE),
        (rules, f"{_WHOLE} {_NO_MOUNTS}"),
    ):
        outcome = _attempt_blocking(words, places, scratch)
        if _holds(outcome) and not (words is not rules and outcome.changes_outside):
            return Protection(kind="landlock", sentence=sentence, words=words), ""
    if any(scratch.is_relative_to(path) for path in (places.workspace, *places.writable)):
        return None, "CANDOR_DATA_DIR lies where the agent may write; move it out of the workspace"
    return None, _NOT_KEPT


def _attempt_blocking(words: Sequence[str], places: AgentPlaces, scratch: Path) -> Outcome:
    before = launch_words(os.getpid(), words)
    return attempt_blocking(before, scratch, [places.workspace, *places.own, *places.writable])


def _holds(outcome: Outcome) -> bool:
    """Return whether a sandbox is effective; changes of modes and dates are judged separately."""
    return (
        outcome.ran
        and outcome.works_inside
        and not outcome.writes_outside
        and not outcome.reads_outside
    )


def _without_landlock_blocking(places: AgentPlaces, scratch: Path, reason: str) -> Protection:
    if not sys.platform.startswith("linux"):
        return Protection(kind="off", sentence=_NONE.format(reason=reason))
    fault = find_bubblewrap_fault_blocking(scratch, places.workspace)
    if fault is None:
        return Protection(kind="bubblewrap", sentence=_BASH.format(reason=reason))
    return Protection(kind="off", sentence=_NONE.format(reason=f"{reason}, and {fault}"))
