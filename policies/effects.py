"""What an allowed command would do to each path, and whether it may.

`ls` and `cat` read; `rm` removes names; `mv` removes names here and makes them there; `cp` reads here and
makes there; `mkdir` makes. Folders are looked through, within a bound, before they are removed, moved or
copied, because what stands inside them counts as if it had been named.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from policies.options import Invocation
from policies.paths import Place, Workspace, show
from policies.protected import find_protected_entry
from policies.verdict import Deny

MAX_TREE_ENTRIES = 50_000

_DEPENDENCIES = frozenset({"node_modules", "site-packages"})
"""Folders whose packages carry editor settings and certificates of their own; removing those is ordinary."""

_UNREADABLE = Deny(
    "tree_unreadable",
    "The folder cannot be looked through.",
    "Name the files in it one by one.",
)
_TOO_LARGE = Deny(
    "tree_too_large",
    "The folder holds too many files to be looked through.",
    "Work on smaller folders inside it.",
)


@dataclass(frozen=True, slots=True)
class _Entry:
    parts: tuple[str, ...]
    """Below the folder that was walked."""
    path: str
    is_link: bool


def _walk_tree(top: str) -> Iterator[_Entry]:
    """Give what stands below a folder, links not followed; errors of the disk are raised."""
    waiting: list[tuple[str, tuple[str, ...]]] = [(top, ())]
    while waiting:
        folder, parts = waiting.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                below = (*parts, entry.name)
                yield _Entry(below, entry.path, entry.is_symlink())
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, below))


class _Inspector:
    """Looks through folders for one command, within one bound for all of them."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.left = MAX_TREE_ENTRIES

    def inspect_removal(self, place: Place) -> Deny | None:
        """Refuse removing a folder that holds something protected."""

        def judge(entry: _Entry) -> Deny | None:
            whole = (*place.real_parts, *entry.parts)
            if not _DEPENDENCIES.isdisjoint(whole[:-1]):
                return None
            name = find_protected_entry(whole)
            return None if name is None else _refuse_inside(place, name)

        return self._inspect(place.real, judge)

    def inspect_landing(self, place: Place, landing: Place) -> Deny | None:
        """Refuse what would be protected under the names that it has now or will have."""

        def judge(entry: _Entry) -> Deny | None:
            now = find_protected_entry((*place.real_parts, *entry.parts))
            name = now or find_protected_entry((*landing.real_parts, *entry.parts))
            return None if name is None else _refuse_inside(place, name)

        return self._inspect(place.real, judge)

    def inspect_links(self, place: Place) -> Deny | None:
        """Refuse a folder that holds links out of the workspace or to something protected."""

        def judge(entry: _Entry) -> Deny | None:
            if not entry.is_link:
                return None
            target = self.workspace.locate(entry.path)
            fault = target if isinstance(target, Deny) else target.find_write_fault()
            return None if fault is None else _refuse_link(place, entry.parts[-1])

        return self._inspect(place.real, judge)

    def _inspect(self, top: str, judge: Callable[[_Entry], Deny | None]) -> Deny | None:
        if Path(top).is_symlink() or not Path(top).is_dir():
            return None
        try:
            for entry in _walk_tree(top):
                self.left -= 1
                fault = _TOO_LARGE if self.left < 0 else judge(entry)
                if fault is not None:
                    return fault
        except OSError:
            return _UNREADABLE
        return None


def _refuse_inside(place: Place, name: str) -> Deny:
    return Deny(
        "protected_inside",
        f"{show(place.given)} holds {show(name)}, which is protected.",
        "Name the other files in it one by one.",
    )


def _refuse_link(place: Place, name: str) -> Deny:
    return Deny(
        "link_inside",
        f"{show(place.given)} holds the link {show(name)}, which leads outside or to something protected.",
        "Name the other files in it one by one.",
    )


def _locate_removed(workspace: Workspace, operand: str) -> Place | Deny:
    place = workspace.locate(operand, follow=False)
    if isinstance(place, Deny):
        return place
    if place.is_root:
        return Deny(
            "workspace_root",
            "The workspace itself must not be deleted or moved.",
            "Name the files inside it.",
            interrupt=True,  # whoever tries to take everything away is stopped, not corrected
        )
    if _holds_cwd(workspace, place):
        return Deny(
            "working_directory", "The command would remove the folder that it runs in.", None
        )
    return place.find_write_fault() or place


def _holds_cwd(workspace: Workspace, place: Place) -> bool:
    here = os.path.realpath(workspace.cwd)
    return here == place.real or here.startswith(f"{place.real}/")


def _locate_written(workspace: Workspace, operand: str) -> Place | Deny:
    place = workspace.locate(operand)
    return place if isinstance(place, Deny) else place.find_write_fault() or place


def _judge_reading(inspector: _Inspector, invocation: Invocation) -> Deny | None:
    for operand in invocation.operands or (".",):
        place = inspector.workspace.locate(operand)
        fault = place if isinstance(place, Deny) else place.find_read_fault()
        if fault is not None:
            return fault
    return None


def _judge_rm(inspector: _Inspector, invocation: Invocation) -> Deny | None:
    for operand in invocation.operands:
        place = _locate_removed(inspector.workspace, operand)
        if isinstance(place, Deny):
            return place
        if invocation.has("recursive"):
            fault = inspector.inspect_removal(place)
            if fault is not None:
                return fault
    return None


def _judge_mkdir(inspector: _Inspector, invocation: Invocation) -> Deny | None:
    for operand in invocation.operands:
        place = _locate_written(inspector.workspace, operand)
        if isinstance(place, Deny):
            return place
    return None


@dataclass(frozen=True, slots=True)
class _Transfer:
    """The sources and the target of `mv` or `cp`."""

    sources: tuple[str, ...]
    target: str
    into: bool
    """The target is a folder that the sources land in under their own names."""


def _read_transfer(workspace: Workspace, invocation: Invocation) -> _Transfer | Deny:
    operands = invocation.operands
    target = invocation.meanings.get("target-directory")
    exact = invocation.has("no-target-directory")
    if target is not None:
        if exact or not operands:
            return _refuse_operands(invocation)
        return _Transfer(operands, target, into=True)
    two = 2
    if len(operands) < two or (exact and len(operands) != two):
        return _refuse_operands(invocation)
    into = not exact and (len(operands) > two or Path(workspace.join(operands[-1])).is_dir())
    return _Transfer(operands[:-1], operands[-1], into=into)


def _refuse_operands(invocation: Invocation) -> Deny:
    return Deny(
        "operands",
        f"{invocation.command} needs at least one source and exactly one target.",
        f"Write it as: {invocation.command} source target.",
    )


def _locate_landing(workspace: Workspace, transfer: _Transfer, source: Place) -> Place | Deny:
    """Find where one source will stand afterwards."""
    if not transfer.into:
        return _locate_written(workspace, transfer.target)
    name = source.given.rstrip("/").rpartition("/")[2]
    if name == ".":
        return _locate_written(workspace, transfer.target)
    if not name or name == "..":
        return Deny(
            "source_name",
            f"{show(source.given)} does not say under which name it should land.",
            "Name the file or folder itself.",
        )
    return _locate_written(workspace, f"{transfer.target.rstrip('/') or '/'}/{name}")


def _judge_move(inspector: _Inspector, source: str, transfer: _Transfer) -> Deny | None:
    place = _locate_removed(inspector.workspace, source)
    if isinstance(place, Deny):
        return place
    landing = _locate_landing(inspector.workspace, transfer, place)
    if isinstance(landing, Deny):
        return landing
    return inspector.inspect_landing(place, landing)


def _judge_copy(inspector: _Inspector, source: str, transfer: _Transfer) -> Deny | None:
    place = inspector.workspace.locate(source)
    if isinstance(place, Deny):
        return place
    landing = place.find_read_fault() or _locate_landing(inspector.workspace, transfer, place)
    target = _locate_written(inspector.workspace, transfer.target)
    if isinstance(landing, Deny):
        return landing
    if isinstance(target, Deny):
        return target
    if not Path(place.real).is_dir():
        return None
    fault = inspector.inspect_landing(place, landing) or inspector.inspect_links(place)
    if fault is None and source.endswith("/"):  # some systems then copy what is inside it
        fault = inspector.inspect_landing(place, target) or inspector.inspect_links(target)
    return fault or inspector.inspect_links(landing if target.is_root else target)


def _judge_transfer(inspector: _Inspector, invocation: Invocation) -> Deny | None:
    transfer = _read_transfer(inspector.workspace, invocation)
    if isinstance(transfer, Deny):
        return transfer
    target = _locate_written(inspector.workspace, transfer.target)
    if isinstance(target, Deny):
        return target
    judge = _judge_move if invocation.command == "mv" else _judge_copy
    for source in transfer.sources:
        fault = judge(inspector, source, transfer)
        if fault is not None:
            return fault
    return None


_JUDGES: Mapping[str, Callable[[_Inspector, Invocation], Deny | None]] = {
    "ls": _judge_reading,
    "cat": _judge_reading,
    "rm": _judge_rm,
    "mkdir": _judge_mkdir,
    "mv": _judge_transfer,
    "cp": _judge_transfer,
}
CHANGING = frozenset({"rm", "mkdir", "mv", "cp"})


def judge_effects(invocation: Invocation, workspace: Workspace) -> Deny | None:
    """Say why a command must not run; `None`: everything that it touches may be touched so."""
    return _JUDGES[invocation.command](_Inspector(workspace), invocation)
