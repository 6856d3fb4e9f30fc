"""What an allowed command would do to each path: whatever it may not do is refused.

Most commands read names and dates, or contents. `rm` and `rmdir` remove names; each source of
`mv` and `cp` is judged where it stands and where it would land; `mkdir` and `touch` create.
"""

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from policies.denials import denied
from policies.paths.protected import may_hold_secret
from policies.paths.trees import TreeInspector
from policies.paths.workspace import Place, Workspace
from policies.shell.options import Invocation
from policies.visible_text import show


def locate_read(workspace: Workspace, operand: str) -> Place:
    """Find a path that will be looked at."""
    place = workspace.locate(operand)
    place.check_read()
    return place


def locate_content(workspace: Workspace, operand: str) -> Place:
    """Find a file whose content will be read; devices have no end, or act on being read."""
    place = locate_read(workspace, operand)
    if _is_device(Path(place.real)):
        raise denied("special_file", show(operand))
    return place


def _is_device(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False  # what is not there is told by the command itself
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or stat.S_ISSOCK(mode)


def locate_made(workspace: Workspace, operand: str) -> Place:
    """Find a folder that will be made with all that is missing above it.

    A missing folder before `..` would be made, too, though the tidied path does not show it.
    """
    names = operand.split("/")
    for i, name in enumerate(names):
        above = "/".join(names[:i])
        if name == ".." and above and not os.path.lexists(workspace.join(above)):
            raise denied("parents_spelling", show(operand))
    return locate_written(workspace, operand)


def locate_removed(workspace: Workspace, operand: str) -> Place:
    """Find what will be deleted or moved away, a link standing for itself."""
    place = workspace.locate(operand, follow=False)
    if place.is_root:
        raise denied("workspace_root", interrupt=True)
    if Path(workspace.locate(workspace.cwd).real).is_relative_to(place.real):
        raise denied("working_directory")
    place.check_write()
    return place


def locate_written(workspace: Workspace, operand: str) -> Place:
    """Find what will be made or changed."""
    place = workspace.locate(operand)
    place.check_change()
    return place


_KEEPS_LINKS = ("recursive", "no-dereference", "P", "d")
"""Options of `cp` under which a link is copied as a link."""


@dataclass(frozen=True, slots=True)
class _Transfer:
    sources: tuple[str, ...]
    target: str
    into: bool
    """The target is a folder, and each source lands in it under its own name."""


def _read_transfer(workspace: Workspace, invocation: Invocation) -> _Transfer:
    operands = invocation.operands
    target = invocation.meanings.get("target-directory")
    exact = invocation.has("no-target-directory")
    if target is not None and operands and not exact:
        return _Transfer(operands, target, into=True)
    *sources, last = operands or ("",)
    if target is not None or not sources or (exact and len(sources) > 1):
        raise denied("operands", invocation.command)
    into = not exact and (len(sources) > 1 or Path(workspace.join(last)).is_dir())
    return _Transfer(tuple(sources), last, into=into)


def _locate_landing(workspace: Workspace, transfer: _Transfer, source: Place) -> Place:
    name = source.given.rstrip("/").rpartition("/")[2]
    if not transfer.into or name == ".":
        return locate_written(workspace, transfer.target)
    if not name or name == "..":
        raise denied("source_name", show(source.given))
    return locate_written(workspace, f"{transfer.target.rstrip('/') or '/'}/{name}")


def judge_move(inspector: TreeInspector, invocation: Invocation) -> None:
    """Refuse `mv` unless every source may leave and land as written."""
    workspace = inspector.workspace
    transfer = _read_transfer(workspace, invocation)
    locate_written(workspace, transfer.target)
    for source in transfer.sources:
        place = locate_removed(workspace, source)
        landing = _locate_landing(workspace, transfer, place)
        inspector.check_turn(place.real, landing)
        inspector.inspect_move(place, landing)


def judge_copy(inspector: TreeInspector, invocation: Invocation) -> None:
    """Refuse `cp` unless every source may be read and land as written."""
    workspace = inspector.workspace
    if not invocation.has("recursive"):  # with it, devices are made anew and not read
        sources = len(invocation.operands) - (not invocation.has("target-directory"))
        for path in invocation.operands[:sources]:
            locate_content(workspace, path)
    transfer = _read_transfer(workspace, invocation)
    target = locate_written(workspace, transfer.target)
    for source in transfer.sources:
        _judge_copied(inspector, source, transfer, target)
        if any(map(invocation.has, _KEEPS_LINKS)):
            link = workspace.locate(source, follow=False)
            inspector.check_turn(link.real, _locate_landing(workspace, transfer, link))


def _judge_copied(
    inspector: TreeInspector, source: str, transfer: _Transfer, target: Place
) -> None:
    place = inspector.workspace.locate(source)
    place.check_read()
    landing = _locate_landing(inspector.workspace, transfer, place)
    if not Path(place.real).is_dir():
        return
    inspector.inspect_landing(place, landing)
    inspector.inspect_links(place)
    if source.endswith("/"):  # some systems then copy what is inside it
        inspector.inspect_landing(place, target)
        inspector.inspect_overwritten(target)
    inspector.inspect_overwritten(landing)
    if not target.is_root:
        inspector.inspect_links(target)


CHANGING = frozenset({"rm", "rmdir", "mkdir", "mv", "cp", "touch"})

_Judge = Callable[[TreeInspector, Invocation], None]


def _each(locate: Callable[[Workspace, str], Place]) -> _Judge:
    """Return a judge that locates every operand for one kind of access; without any, the working
    directory.
    """

    def judge(inspector: TreeInspector, invocation: Invocation) -> None:
        for path in invocation.operands or (".",):
            locate(inspector.workspace, path)

    return judge


def _judge_grep(inspector: TreeInspector, invocation: Invocation) -> None:
    for path in invocation.operands:
        place = locate_content(inspector.workspace, path)
        # below such a folder the exclusions do not match, because `grep -r` does not see its name
        if invocation.has("recursive") and may_hold_secret(place.real_parts):
            inspector.inspect_contents(place)


def _judge_diff(inspector: TreeInspector, invocation: Invocation) -> None:
    """Judge folders file by file, because `diff` compares them so even without an option."""
    for path in invocation.operands:
        inspector.inspect_contents(locate_content(inspector.workspace, path))


def _judge_rm(inspector: TreeInspector, invocation: Invocation) -> None:
    for path in invocation.operands:
        place = locate_removed(inspector.workspace, path)
        if invocation.has("recursive"):
            inspector.inspect_removal(place)


def _judge_rmdir(inspector: TreeInspector, invocation: Invocation) -> None:
    """Judge `rmdir`; plain names keep `-p` from removing folders above the working directory."""
    for path in invocation.operands:
        names = path.rstrip("/").split("/")
        if invocation.has("parents") and not {"", ".", ".."}.isdisjoint(names):
            raise denied("parents_spelling.rmdir", show(path))
        locate_removed(inspector.workspace, path)


_JUDGES: Mapping[str, _Judge] = {
    **dict.fromkeys(("ls", "stat", "du", "find"), _each(locate_read)),
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


def judge_effects(invocation: Invocation, workspace: Workspace) -> None:
    """Refuse a command that touches anything as it may not."""
    for path in invocation.reads:
        locate_content(workspace, path)
    _JUDGES[invocation.command](TreeInspector(workspace), invocation)
