"""What an allowed command would do to each path, and whether it may.

Most commands read: names and dates, or contents. `rm` and `rmdir` remove names; `mv` removes names here and
makes them there; `cp` reads here and makes there; `mkdir` and `touch` make.
"""

from collections.abc import Callable, Mapping

from policies.paths.access import (
    locate_content,
    locate_made,
    locate_read,
    locate_removed,
    locate_written,
)
from policies.paths.protected import may_hold_secret
from policies.paths.trees import Inspector
from policies.paths.workspace import Workspace, show
from policies.shell.options import Invocation
from policies.shell.transfers import judge_transfer
from policies.verdict import Deny


def _judge_looking(inspector: Inspector, invocation: Invocation) -> Deny | None:
    for operand in invocation.operands or (".",):
        place = locate_read(inspector.workspace, operand)
        if isinstance(place, Deny):
            return place
    return None


def _judge_reading(inspector: Inspector, invocation: Invocation) -> Deny | None:
    for operand in invocation.operands:
        place = locate_content(inspector.workspace, operand)
        if isinstance(place, Deny):
            return place
        # below such a folder `grep -r` leaves out nothing, because it does not see the folder's name
        if invocation.has("recursive") and may_hold_secret(place.real_parts):
            fault = inspector.inspect_contents(place)
            if fault is not None:
                return fault
    return None


def _judge_diff(inspector: Inspector, invocation: Invocation) -> Deny | None:
    """Folders are compared file by file, also without being asked to go deeper."""
    for operand in invocation.operands:
        place = locate_content(inspector.workspace, operand)
        fault = place if isinstance(place, Deny) else inspector.inspect_contents(place)
        if fault is not None:
            return fault
    return None


def _judge_rm(inspector: Inspector, invocation: Invocation) -> Deny | None:
    for operand in invocation.operands:
        place = locate_removed(inspector.workspace, operand)
        if isinstance(place, Deny):
            return place
        if invocation.has("recursive"):
            fault = inspector.inspect_removal(place)
            if fault is not None:
                return fault
    return None


def _judge_rmdir(inspector: Inspector, invocation: Invocation) -> Deny | None:
    """With `-p` the folders above go, too: plain names alone keep those below the working directory."""
    for operand in invocation.operands:
        names = operand.rstrip("/").split("/")
        if invocation.has("parents") and any(name in {"", ".", ".."} for name in names):
            return Deny(
                "parents_spelling",
                f"With -p {show(operand)} would remove more than is plain to see.",
                "Name the folders without /, . or .. before them.",
            )
        place = locate_removed(inspector.workspace, operand)
        if isinstance(place, Deny):
            return place
    return None


def _judge_mkdir(inspector: Inspector, invocation: Invocation) -> Deny | None:
    for operand in invocation.operands:
        place = locate_made(inspector.workspace, operand)
        if isinstance(place, Deny):
            return place
    return None


def _judge_touch(inspector: Inspector, invocation: Invocation) -> Deny | None:
    for operand in invocation.operands:
        place = locate_written(inspector.workspace, operand)
        if isinstance(place, Deny):
            return place
    return None


def _judge_cp(inspector: Inspector, invocation: Invocation) -> Deny | None:
    if not invocation.has("recursive"):  # with it, devices are made anew and not read
        sources = len(invocation.operands) - (not invocation.has("target-directory"))
        for operand in invocation.operands[:sources]:
            place = locate_content(inspector.workspace, operand)
            if isinstance(place, Deny):
                return place
    return judge_transfer(inspector, invocation)


def _judge_nothing(_inspector: Inspector, _invocation: Invocation) -> None:
    return None


_JUDGES: Mapping[str, Callable[[Inspector, Invocation], Deny | None]] = {
    **dict.fromkeys(("ls", "stat", "du", "find"), _judge_looking),
    **dict.fromkeys(("cat", "head", "tail", "wc", "file", "grep"), _judge_reading),
    "cp": _judge_cp,
    "diff": _judge_diff,
    "mkdir": _judge_mkdir,
    "mv": judge_transfer,
    "pwd": _judge_nothing,
    "rm": _judge_rm,
    "rmdir": _judge_rmdir,
    "touch": _judge_touch,
}
CHANGING = frozenset({"rm", "rmdir", "mkdir", "mv", "cp", "touch"})


def judge_effects(invocation: Invocation, workspace: Workspace) -> Deny | None:
    """Say why a command must not run; `None`: everything that it touches may be touched so."""
    for path in invocation.reads:
        place = locate_content(workspace, path)
        if isinstance(place, Deny):
            return place
    return _JUDGES[invocation.command](Inspector(workspace), invocation)
