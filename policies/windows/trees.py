"""What stands inside a folder that a command would remove, move, copy or list.

Everything in it counts as if it had been named; the work is bounded, and what cannot be looked through
is refused.
"""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from policies.paths.protected import find_acting, find_protected_entry, find_secret
from policies.paths.workspace import Place, find_shared_fault, show
from policies.verdict import Deny
from policies.windows.workspace import WindowsWorkspace

MAX_TREE_ENTRIES = 50_000

_DEPENDENCIES = frozenset({"node_modules", "site-packages"})
"""Folders whose packages carry editor settings and certificates of their own; removing those is ordinary."""
_REPARSE_POINT = getattr(stat, "FILE_ATTRIBUTE_REPARSE_POINT", 0x400)


@dataclass(frozen=True, slots=True)
class Entry:
    """Something below a folder."""

    parts: tuple[str, ...]
    """Below the folder that is looked through."""
    path: str
    is_link: bool
    """A link or a junction, which is not followed."""
    is_folder: bool


def _is_link(path: str | os.DirEntry[str]) -> bool:
    """Say whether something is a link or a junction, which older Pythons take for a folder."""
    if not os.path.lexists(path):
        return False
    status = os.lstat(path)
    attributes = getattr(status, "st_file_attributes", 0)
    return stat.S_ISLNK(status.st_mode) or bool(attributes & _REPARSE_POINT)


def _walk(top: str) -> Iterator[Entry]:
    waiting: list[tuple[str, tuple[str, ...]]] = [(top, ())]
    while waiting:
        folder, parts = waiting.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                link = _is_link(entry)
                below = (*parts, entry.name)
                is_folder = not link and entry.is_dir(follow_symlinks=False)
                yield Entry(below, entry.path, link, is_folder)
                if is_folder:
                    waiting.append((entry.path, below))


class TreeInspector:
    """Looks through folders for one command, within one bound for all of them."""

    def __init__(self, workspace: WindowsWorkspace) -> None:
        self.workspace = workspace
        self.left = MAX_TREE_ENTRIES

    def inspect_removal(self, place: Place) -> Deny | None:
        """Refuse removing a folder that holds something protected."""

        def judge(entry: Entry) -> Deny | None:
            whole = (*place.real_parts, *entry.parts)
            return None if _is_of_package(whole) else _refuse_protected(place, entry, whole)

        return self._inspect(place, judge)

    def inspect_matches(self, place: Place, takes: Callable[[str], bool]) -> Deny | None:
        """Refuse removing the files that `takes` picks by name, anywhere below, if one is protected."""

        def judge(entry: Entry) -> Deny | None:
            whole = (*place.real_parts, *entry.parts)
            if entry.is_folder or _is_of_package(whole) or not takes(entry.parts[-1]):
                return None
            name = find_secret(whole) or find_acting(whole)
            return None if name is None else _refuse_inside(place, entry)

        return self._inspect(place, judge)

    def inspect_landing(self, place: Place, landing: Place) -> Deny | None:
        """Refuse what would be protected under the names that it has now or will have."""

        def judge(entry: Entry) -> Deny | None:
            now = _refuse_protected(place, entry, (*place.real_parts, *entry.parts))
            return now or _refuse_protected(place, entry, (*landing.real_parts, *entry.parts))

        return self._inspect(place, judge)

    def inspect_links(self, place: Place) -> Deny | None:
        """Refuse a folder that holds links out of the workspace or to something protected."""

        def judge(entry: Entry) -> Deny | None:
            if not entry.is_link:
                return None
            target = self.workspace.locate(entry.path)
            fault = target if isinstance(target, Deny) else target.find_write_fault()
            if fault is None:
                return None
            return Deny(
                "link_inside",
                f"{show(place.given)} holds the link {show(entry.parts[-1])}, which leads outside "
                "or to something protected.",
                "Name the other files in it one by one.",
            )

        return self._inspect(place, judge)

    def inspect_overwritten(self, place: Place) -> Deny | None:
        """Refuse a folder in which a copy would write through a link, symbolic or hard."""

        def judge(entry: Entry) -> Deny | None:
            return find_shared_fault(entry.path, entry.parts[-1])

        return self.inspect_links(place) or self._inspect(place, judge)

    def inspect_turn(self, place: Place, landing: Place) -> Deny | None:
        """Refuse relative links that would lead outside from where they land."""
        itself = self.workspace.locate(place.absolute, follow=False)
        if isinstance(itself, Deny):
            return itself

        def judge(entry: Entry) -> Deny | None:
            lands = os.path.join(landing.absolute, *entry.parts)  # noqa: PTH118 - the spelling
            return self._judge_turn(entry.path, lands) if entry.is_link else None

        own = self._judge_turn(itself.real, landing.absolute) if _is_link(itself.real) else None
        return own or self._inspect(place, judge)

    def _judge_turn(self, link: str, lands: str) -> Deny | None:
        target = os.readlink(link).removeprefix("\\\\?\\")  # noqa: PTH115 - what it says
        told = os.path.join(os.path.dirname(lands), target)  # noqa: PTH118, PTH120 - the spelling
        found = self.workspace.locate(os.path.normpath(told))
        if isinstance(found, Place):
            return None
        return Deny(
            "link_turned",
            f"The link {show(os.path.basename(link))} would lead outside from there.",  # noqa: PTH119
            "Leave the link where it is and name the other files.",
        )

    def _inspect(self, place: Place, judge: Callable[[Entry], Deny | None]) -> Deny | None:
        if not Path(place.real).is_dir():
            return None
        try:
            for entry in _walk(place.real):
                self.left -= 1
                if self.left < 0:
                    return Deny(
                        "tree_too_large",
                        "The folder holds too many files to be looked through.",
                        "Work on smaller folders inside it.",
                    )
                fault = judge(entry)
                if fault is not None:
                    return fault
        except OSError:
            return Deny(
                "tree_unreadable",
                "The folder cannot be looked through.",
                "Name the files in it one by one.",
            )
        return None


def _is_of_package(whole: tuple[str, ...]) -> bool:
    """Say whether a path lies in an installed package that itself is not in a protected folder."""
    for i, part in enumerate(whole[:-1]):
        if part in _DEPENDENCIES:
            return find_secret(whole[:i]) is None and find_acting(whole[:i]) is None
    return False


def _refuse_inside(place: Place, entry: Entry) -> Deny:
    inside = "\\".join(entry.parts)
    return Deny(
        "protected_inside",
        f"{show(place.given)} holds {show(inside)}, which is protected.",
        "Name the files and folders beside it, or ask the person to do it.",
    )


def _refuse_protected(place: Place, entry: Entry, whole: tuple[str, ...]) -> Deny | None:
    return None if find_protected_entry(whole) is None else _refuse_inside(place, entry)
