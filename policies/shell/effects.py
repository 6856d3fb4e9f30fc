"""What an allowed command would do to each path, and whether it may.

Most commands read names and dates, or contents. `rm` and `rmdir` remove names; `mv` and `cp` are judged in
`transfers`; `mkdir` and `touch` create.
"""

from collections.abc import Callable, Iterable, Mapping

from policies.paths.protected import may_hold_secret
from policies.paths.trees import TreeInspector
from policies.paths.workspace import Place, Workspace
from policies.shell.access import (
    locate_content,
    locate_made,
    locate_read,
    locate_removed,
    locate_written,
)
from policies.shell.options import Invocation
from policies.shell.transfers import judge_copy, judge_move
from policies.verdict import Deny
from policies.visible_text import show

CHANGING = frozenset({"rm", "rmdir", "mkdir", "mv", "cp", "touch"})

_Judge = Callable[[TreeInspector, Invocation], Deny | None]


def _first_fault(faults: Iterable[Place | Deny | None]) -> Deny | None:
    return next((fault for fault in faults if isinstance(fault, Deny)), None)


def _each(locate: Callable[[Workspace, str], Place | Deny]) -> _Judge:
    """Return a judge that locates every operand for one kind of access."""

    def judge(inspector: TreeInspector, invocation: Invocation) -> Deny | None:
        return _first_fault(locate(inspector.workspace, path) for path in invocation.operands)

    return judge


def _judge_listing(inspector: TreeInspector, invocation: Invocation) -> Deny | None:
    paths = invocation.operands or (".",)
    return _first_fault(locate_read(inspector.workspace, path) for path in paths)


def _judge_grep(inspector: TreeInspector, invocation: Invocation) -> Deny | None:
    for path in invocation.operands:
        place = locate_content(inspector.workspace, path)
        if isinstance(place, Deny):
            return place
        # below such a folder the exclusions do not match, because `grep -r` does not see its name
        if invocation.has("recursive") and may_hold_secret(place.real_parts):
            fault = inspector.inspect_contents(place)
            if fault is not None:
                return fault
    return None


def _judge_diff(inspector: TreeInspector, invocation: Invocation) -> Deny | None:
    """Judge folders file by file, because `diff` compares them so even without an option."""
    for path in invocation.operands:
        place = locate_content(inspector.workspace, path)
        fault = place if isinstance(place, Deny) else inspector.inspect_contents(place)
        if fault is not None:
            return fault
    return None


def _judge_rm(inspector: TreeInspector, invocation: Invocation) -> Deny | None:
    for path in invocation.operands:
        place = locate_removed(inspector.workspace, path)
        if isinstance(place, Deny):
            return place
        fault = inspector.inspect_removal(place) if invocation.has("recursive") else None
        if fault is not None:
            return fault
    return None


def _judge_rmdir(inspector: TreeInspector, invocation: Invocation) -> Deny | None:
    """Judge `rmdir`; plain names keep `-p` from removing folders above the working directory."""
    for path in invocation.operands:
        names = path.rstrip("/").split("/")
        if invocation.has("parents") and not {"", ".", ".."}.isdisjoint(names):
            return Deny(
                "parents_spelling",
                f"With -p {show(path)} would remove more than is plain to see.",
                "Name the folders without /, . or .. before them.",
            )
        place = locate_removed(inspector.workspace, path)
        if isinstance(place, Deny):
            return place
    return None


_JUDGES: Mapping[str, _Judge] = {
    **dict.fromkeys(("ls", "stat", "du", "find"), _judge_listing),
    **dict.fromkeys(("cat", "head", "tail", "wc", "file"), _each(locate_content)),
    "cp": judge_copy,
    "diff": _judge_diff,
    "grep": _judge_grep,
    "mkdir": _each(locate_made),
    "mv": judge_move,
    "pwd": lambda _inspector, _invocation: None,
    "rm": _judge_rm,
    "rmdir": _judge_rmdir,
    "touch": _each(locate_written),
}


def judge_effects(invocation: Invocation, workspace: Workspace) -> Deny | None:
    """Return why a command must not run; `None` if it may touch everything as it would."""
    fault = _first_fault(locate_content(workspace, path) for path in invocation.reads)
    return fault or _JUDGES[invocation.command](TreeInspector(workspace), invocation)
