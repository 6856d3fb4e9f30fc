"""Inspection of folders that a command would remove, move, copy or read as a whole.

Everything inside a folder counts as if it had been named. The work is bounded, and a folder that
cannot be walked is refused.
"""

import os
import stat
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from policies.denials import denied
from policies.paths.protected import (
    ACTING_IN_REPOSITORY,
    IN_REPOSITORY,
    find_acting,
    find_protected_entry,
    find_secret,
    makes_repository,
    tells_of_repository,
)
from policies.paths.workspace import Place, Workspace, check_shared
from policies.verdict import Refused
from policies.visible_text import show

MAX_TREE_ENTRIES = 50_000

_PACKAGE_FOLDERS = frozenset({"node_modules", "site-packages"})
"""Their packages bring editor settings and certificates; removing those is ordinary."""
_REPARSE_POINT = getattr(stat, "FILE_ATTRIBUTE_REPARSE_POINT", 0x400)


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

    def inspect_removal(self, place: Place) -> None:
        """Refuse removing a folder that holds something protected."""

        def judge(entry: Entry) -> None:
            whole = (*place.real_parts, *entry.parts)
            if not is_packaged(whole) and find_protected_entry(whole) is not None:
                raise self.refuse_inside(place, entry)

        self.inspect(place, judge)

    def inspect_landing(self, place: Place, landing: Place) -> None:
        """Refuse moving or copying a folder in which something is or becomes
        protected or turned.
        """
        self.inspect(place, lambda entry: self._judge_landing(place, landing, entry))

    def inspect_move(self, place: Place, landing: Place) -> None:
        """Refuse moving a folder as `inspect_landing` does, and what must not get another name.

        That is a link out of the workspace or to something protected, and a file with further hard
        links: it could take the place of a file that another call is about to write.
        """
        if is_link(place.real):
            self.workspace.locate(place.real).check_write()
        check_shared(place.real, place.given, is_moved=True)

        def judge(entry: Entry) -> None:
            self._judge_landing(place, landing, entry)
            self._judge_linked(place, entry)
            inside = self.workspace.separator.join((place.given.rstrip("/"), *entry.parts))
            check_shared(entry.path, inside, is_moved=True)

        self.inspect(place, judge)

    def _judge_landing(self, place: Place, landing: Place, entry: Entry) -> None:
        for folder in (place, landing):
            if find_protected_entry((*folder.real_parts, *entry.parts)) is not None:
                raise self.refuse_inside(place, entry)
        if tells_of_repository(entry.parts[-1]) and _makes_repository(place, landing, entry):
            raise self.refuse_inside(place, entry)
        if entry.is_link:
            self.check_turn(entry.path, landing, entry.parts)

    def _judge_linked(self, place: Place, entry: Entry) -> None:
        if entry.is_link:
            with _refusing_link(place, entry):
                self.workspace.locate(entry.path).check_write()

    def check_turn(self, link: str, landing: Place, below: tuple[str, ...] = ()) -> None:
        """Refuse a relative link that leads inside now, and outside from below `landing`."""
        if not is_link(link):
            return
        lands = os.path.join(landing.real, *below)  # noqa: PTH118 - the link itself
        turned = Path(lands).parent / Path(link).readlink()
        if self.workspace.find(link) and not self.workspace.find(os.path.realpath(turned)):
            raise refuse_turn(link)

    def inspect_links(self, place: Place) -> None:
        """Refuse a folder that holds links out of the workspace or to something protected."""
        self.inspect(place, lambda entry: self._judge_linked(place, entry))

    def inspect_overwritten(self, place: Place) -> None:
        """Refuse a folder in which a copy would write through a symbolic or hard link."""
        self.inspect_links(place)
        self.inspect(place, lambda entry: check_shared(entry.path, entry.parts[-1]))

    def inspect_contents(self, place: Place) -> None:
        """Refuse reading every file of a folder that holds secrets, or links to other folders."""

        def judge(entry: Entry) -> None:
            if find_secret((*place.real_parts, *entry.parts)) is not None:
                raise denied("secret_inside", show(place.given), show(entry.parts[-1]))
            if entry.is_link:
                with _refusing_link(place, entry):
                    target = self.workspace.locate(entry.path)
                    target.check_read()
                    if Path(target.real).is_dir():  # its content would be read without inspection
                        raise denied("link_inside.judge")

        self.inspect(place, judge)

    def inspect(self, place: Place, judge: Callable[[Entry], None]) -> None:
        """Make `judge` refuse what is below a place; nothing if it is not a folder."""
        if is_link(place.real) or not Path(place.real).is_dir():
            return
        try:
            for entry in _walk(place.real):
                self.left -= 1
                if self.left < 0:
                    raise denied("tree_too_large")
                judge(entry)
        except OSError:
            raise denied("tree_unreadable") from None

    def refuse_inside(self, place: Place, entry: Entry) -> Refused:
        """Return the denial of a folder that holds a protected entry."""
        inside = self.workspace.separator.join(entry.parts)
        return denied("protected_inside", show(place.given), show(inside))


def _makes_repository(place: Place, landing: Place, entry: Entry) -> bool:
    """Return whether what lands beside an entry, and what is there, make a repository together."""

    def names(folder: Place, wanted: AbstractSet[str]) -> set[str]:
        inside = Path(folder.real, *entry.parts[:-1])
        return {name for name in wanted if os.path.lexists(inside / name)}

    there = names(landing, IN_REPOSITORY | ACTING_IN_REPOSITORY)
    return bool(there) and makes_repository(there | names(place, IN_REPOSITORY))


def is_packaged(parts: tuple[str, ...]) -> bool:
    """Return whether a path lies in an installed package that is not in a protected folder."""
    for i, part in enumerate(parts[:-1]):
        if part in _PACKAGE_FOLDERS:
            return find_secret(parts[:i]) is None and find_acting(parts[:i]) is None
    return False


def refuse_turn(link: str) -> Refused:
    """Return the denial of a link that would lead outside from where it lands."""
    return denied("link_turned", show(Path(link).name))


@contextmanager
def _refusing_link(place: Place, entry: Entry) -> Iterator[None]:
    """Refuse a folder because of the link in it whose target is refused."""
    try:
        yield
    except Refused:
        raise denied("link_inside", show(place.given), show(entry.parts[-1])) from None
