"""Looks through folders, within a bound, before they are removed, moved, copied or read as a whole.

What stands inside a folder counts as if it had been named.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from policies.paths.protected import find_protected_entry, find_secret
from policies.paths.workspace import Place, Workspace, find_shared_fault, show
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


class Inspector:
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
            return None if name is None else _refuse_inside(place, entry)

        return self._inspect(place.real, judge)

    def inspect_landing(self, place: Place, landing: Place) -> Deny | None:
        """Refuse what would be protected under the names that it has now or will have."""

        def judge(entry: _Entry) -> Deny | None:
            now = find_protected_entry((*place.real_parts, *entry.parts))
            name = now or find_protected_entry((*landing.real_parts, *entry.parts))
            if name is not None:
                return _refuse_inside(place, entry)
            lands = os.path.join(landing.real, *entry.parts)  # noqa: PTH118 - the link itself
            return self.inspect_turn(entry.path, lands) if entry.is_link else None

        return self._inspect(place.real, judge)

    def inspect_turn(self, link: str, lands: str) -> Deny | None:
        """Refuse a relative link that leads inside from where it stands and outside from where it lands."""
        if not Path(link).is_symlink():
            return None
        turned = Path(lands).parent / Path(link).readlink()
        inside = isinstance(self.workspace.locate(link), Place)
        if not inside or isinstance(self.workspace.locate(os.path.realpath(turned)), Place):
            return None
        return Deny(
            "link_turned",
            f"The link {show(Path(link).name)} would lead outside from where it lands.",
            "Leave the link where it is.",
        )

    def inspect_links(self, place: Place) -> Deny | None:
        """Refuse a folder that holds links out of the workspace or to something protected."""

        def judge(entry: _Entry) -> Deny | None:
            if not entry.is_link:
                return None
            target = self.workspace.locate(entry.path)
            fault = target if isinstance(target, Deny) else target.find_write_fault()
            return None if fault is None else _refuse_link(place, entry.parts[-1])

        return self._inspect(place.real, judge)

    def inspect_overwritten(self, place: Place) -> Deny | None:
        """Refuse a folder in which a copy would write through a link, symbolic or hard."""

        def judge(entry: _Entry) -> Deny | None:
            return find_shared_fault(entry.path, entry.parts[-1])

        return self.inspect_links(place) or self._inspect(place.real, judge)

    def inspect_contents(self, place: Place) -> Deny | None:
        """Refuse a folder whose files will all be read, where one holds secrets or a link leads astray."""

        def judge(entry: _Entry) -> Deny | None:
            if find_secret((*place.real_parts, *entry.parts)) is not None:
                return _refuse_secret(place, entry.parts[-1])
            if not entry.is_link:
                return None
            target = self.workspace.locate(entry.path)
            # what a linked folder holds would be read, too, and was not looked through
            astray = (
                isinstance(target, Deny)
                or target.find_read_fault() is not None
                or Path(target.real).is_dir()
            )
            return _refuse_link(place, entry.parts[-1]) if astray else None

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


def _refuse_inside(place: Place, entry: _Entry) -> Deny:
    return Deny(
        "protected_inside",
        f"{show(place.given)} holds {show('/'.join(entry.parts))}, which is protected.",
        "Name the files and folders beside it, or ask the person to do it.",
    )


def _refuse_secret(place: Place, name: str) -> Deny:
    return Deny(
        "secret_inside",
        f"{show(place.given)} holds {show(name)}, whose content is not read here.",
        "Name the other files in it one by one.",
    )


def _refuse_link(place: Place, name: str) -> Deny:
    return Deny(
        "link_inside",
        f"{show(place.given)} holds the link {show(name)}, which leads outside or to something protected.",
        "Name the other files in it one by one.",
    )
