"""Inspection of folders that a command would remove, move, copy or read as a whole.

Everything inside a folder counts as if it had been named. The work is bounded, and a folder that cannot be
walked is refused.
"""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from policies.paths.protected import find_acting, find_protected_entry, find_secret
from policies.paths.workspace import Place, Workspace, find_shared_fault
from policies.verdict import Deny
from policies.visible_text import show

MAX_TREE_ENTRIES = 50_000

_PACKAGE_FOLDERS = frozenset({"node_modules", "site-packages"})
"""Their packages bring editor settings and certificates; removing those is ordinary."""
_REPARSE_POINT = getattr(stat, "FILE_ATTRIBUTE_REPARSE_POINT", 0x400)

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
class Entry:
    """A file, folder or link below a folder."""

    parts: tuple[str, ...]
    """Below the inspected folder."""
    path: str
    is_link: bool
    is_folder: bool
    """A folder that is not reached through a link."""


def is_link(path: str | os.DirEntry[str]) -> bool:
    """Return whether a path is a symbolic link or a junction, which is not followed."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return False
    attributes = getattr(status, "st_file_attributes", 0)
    return stat.S_ISLNK(status.st_mode) or bool(attributes & _REPARSE_POINT)


def _walk(top: str) -> Iterator[Entry]:
    """Yield everything below a folder, a folder before its content; links are not followed."""
    waiting: list[tuple[str, tuple[str, ...]]] = [(top, ())]
    while waiting:
        folder, parts = waiting.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                below, link = (*parts, entry.name), is_link(entry)
                is_folder = not link and entry.is_dir(follow_symlinks=False)
                yield Entry(below, entry.path, link, is_folder)
                if is_folder:
                    waiting.append((entry.path, below))


class TreeInspector:
    """Inspects the folders of one command, with one bound for all of them."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.left = MAX_TREE_ENTRIES

    def inspect_removal(self, place: Place) -> Deny | None:
        """Refuse removing a folder that holds something protected."""

        def judge(entry: Entry) -> Deny | None:
            whole = (*place.real_parts, *entry.parts)
            if is_packaged(whole) or find_protected_entry(whole) is None:
                return None
            return self.refuse_inside(place, entry)

        return self.inspect(place, judge)

    def inspect_landing(self, place: Place, landing: Place) -> Deny | None:
        """Refuse moving or copying a folder in which something is or becomes protected or turned."""

        def judge(entry: Entry) -> Deny | None:
            for folder in (place, landing):
                if find_protected_entry((*folder.real_parts, *entry.parts)) is not None:
                    return self.refuse_inside(place, entry)
            if not entry.is_link:
                return None
            return self.find_turn_fault(entry.path, landing, entry.parts)

        return self.inspect(place, judge)

    def find_turn_fault(
        self, link: str, landing: Place, below: tuple[str, ...] = ()
    ) -> Deny | None:
        """Refuse a relative link that leads inside now, and outside from below `landing`."""
        if not is_link(link):
            return None
        lands = os.path.join(landing.real, *below)  # noqa: PTH118 - the link itself
        turned = Path(lands).parent / Path(link).readlink()
        inside = isinstance(self.workspace.locate(link), Place)
        if not inside or isinstance(self.workspace.locate(os.path.realpath(turned)), Place):
            return None
        return refuse_turn(link)

    def inspect_links(self, place: Place) -> Deny | None:
        """Refuse a folder that holds links out of the workspace or to something protected."""

        def judge(entry: Entry) -> Deny | None:
            if not entry.is_link:
                return None
            target = self.workspace.locate(entry.path)
            fault = target if isinstance(target, Deny) else target.find_write_fault()
            return None if fault is None else _refuse_link(place, entry)

        return self.inspect(place, judge)

    def inspect_overwritten(self, place: Place) -> Deny | None:
        """Refuse a folder in which a copy would write through a symbolic or hard link."""

        def judge(entry: Entry) -> Deny | None:
            return find_shared_fault(entry.path, entry.parts[-1])

        return self.inspect_links(place) or self.inspect(place, judge)

    def inspect_contents(self, place: Place) -> Deny | None:
        """Refuse reading every file of a folder that holds secrets, or links to other folders."""

        def judge(entry: Entry) -> Deny | None:
            if find_secret((*place.real_parts, *entry.parts)) is not None:
                return Deny(
                    "secret_inside",
                    f"{show(place.given)} holds {show(entry.parts[-1])}, whose content is not read here.",
                    "Name the other files in it one by one.",
                )
            if not entry.is_link:
                return None
            target = self.workspace.locate(entry.path)
            # the content of a linked folder would be read without being inspected
            astray = (
                isinstance(target, Deny)
                or target.find_read_fault() is not None
                or Path(target.real).is_dir()
            )
            return _refuse_link(place, entry) if astray else None

        return self.inspect(place, judge)

    def inspect(self, place: Place, judge: Callable[[Entry], Deny | None]) -> Deny | None:
        """Return the first denial by `judge` below a place; `None` also if it is not a folder."""
        if is_link(place.real) or not Path(place.real).is_dir():
            return None
        try:
            for entry in _walk(place.real):
                self.left -= 1
                fault = _TOO_LARGE if self.left < 0 else judge(entry)
                if fault is not None:
                    return fault
        except OSError:
            return _UNREADABLE
        return None

    def refuse_inside(self, place: Place, entry: Entry) -> Deny:
        """Return the denial of a folder that holds a protected entry."""
        inside = self.workspace.separator.join(entry.parts)
        return Deny(
            "protected_inside",
            f"{show(place.given)} holds {show(inside)}, which is protected.",
            "Name the files and folders beside it, or ask the person to do it.",
        )


def is_packaged(parts: tuple[str, ...]) -> bool:
    """Return whether a path lies in an installed package that is not in a protected folder."""
    for i, part in enumerate(parts[:-1]):
        if part in _PACKAGE_FOLDERS:
            return find_secret(parts[:i]) is None and find_acting(parts[:i]) is None
    return False


def refuse_turn(link: str) -> Deny:
    """Return the denial of a link that would lead outside from where it lands."""
    return Deny(
        "link_turned",
        f"The link {show(Path(link).name)} would lead outside from where it lands.",
        "Leave the link where it is and name the other files.",
    )


def _refuse_link(place: Place, entry: Entry) -> Deny:
    return Deny(
        "link_inside",
        f"{show(place.given)} holds the link {show(entry.parts[-1])}, which leads outside or to "
        "something protected.",
        "Name the other files in it one by one.",
    )
