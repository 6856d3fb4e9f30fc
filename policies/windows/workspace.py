"""The place of a path in Windows' spelling: `WindowsWorkspace`.

Windows resolves `..` before it looks at the disk, compares names without regard to case, and takes
some spellings for something other than names below a folder: devices, streams, short names, shares,
stores of PowerShell. Those are refused, whether or not they would lead outside.
"""

import os
import re
import unicodedata
from collections.abc import Iterable
from pathlib import PureWindowsPath

from policies.denials import denied
from policies.paths.workspace import Place, Root, Workspace, find_form_fault
from policies.visible_text import show

_DEVICES = frozenset("con nul aux prn conin$ conout$ clock$".split()).union(
    f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789"
)
_SHORT_NAME = re.compile(r"~\d")
"""In the short name that NTFS may keep beside a long one, as `GIT~1` for `.git`."""
_ILLEGAL = frozenset('<>|"')
_SEPARATORS = frozenset("/\\¥₩￥￦")
"""With the signs that stand for a backslash in Japanese and Korean code pages."""


def _check_name(name: str) -> None:
    """Refuse one component that Windows reads as something other than its letters."""
    plain = unicodedata.normalize("NFKC", name)
    if ":" in name:
        raise denied("path_colon", show(name))
    if plain.partition(".")[0].rstrip(" ").casefold() in _DEVICES:
        raise denied("path_device", show(name))
    if name != name.rstrip(". ").lstrip(" "):
        raise denied("path_trailing", show(name))
    if _SHORT_NAME.search(name):
        raise denied("path_short_name", show(name))
    if plain in {".", ".."} or not _SEPARATORS.isdisjoint(name + plain):
        raise denied("path_lookalike", show(name))
    if not _ILLEGAL.isdisjoint(name) or '"' in plain:
        raise denied("path_characters.name", show(name))
    if "*" in name or "?" in name:
        raise denied("path_wildcard", show(name))


def _tidy(parts: Iterable[str], path: str) -> tuple[str, ...]:
    """Apply `..` as Windows does, by the spelling; refuse a path that climbs above the root."""
    tidy: list[str] = []
    for part in parts:
        if part != "..":
            tidy.append(part)
        elif not tidy:
            raise denied("outside_workspace", show(path))
        else:
            tidy.pop()
    return tuple(tidy)


class WindowsWorkspace(Workspace):
    """A `Workspace` whose paths are spelled as on Windows, with either separator."""

    separator = "\\"

    def check_cwd(self) -> None:
        """Refuse everything while the working directory is not inside the workspace."""
        place = self.find(self.cwd) if PureWindowsPath(self.cwd).root else None
        if place is None or not place.in_workspace:
            raise denied("cwd_outside")

    def locate(self, path: str, *, follow: bool = True) -> Place:
        """Find where a path leads, or refuse it as not plainly spelled or not inside.

        `given` of the place has / for every separator. With `follow` off a link at the very end
        stands for itself.
        """
        given = PureWindowsPath(path)
        start = self._split(given if given.anchor else PureWindowsPath(self.cwd))
        if start is None:
            raise denied("path_foreign" if given.anchor else "cwd_outside")
        root, base = start
        parts, base = (base, ()) if given.anchor else (given.parts, base)
        if fault := find_form_fault("/".join(parts) or (path and ".")):
            raise fault
        for name in set(parts) - {".."}:
            _check_name(name)
        if not self.is_entered:  # it must stay inside wherever in the workspace it is read from
            _tidy(parts, path)
        spelled = os.path.join(root.spelled, *_tidy((*base, *parts), path))  # noqa: PTH118
        walked = os.path.join(root.spelled, *base, *parts)  # noqa: PTH118 - links before ..
        if os.path.realpath(walked) != os.path.realpath(spelled):
            raise denied("path_ambiguous", show(path))
        return self.resolve(path.replace("\\", "/"), spelled, root, follow=follow)

    def _split(self, path: PureWindowsPath) -> tuple[Root, tuple[str, ...]] | None:
        """Return the root that an absolute path is below, and what follows it."""
        for root in self.roots:
            for spelled in (root.spelled, root.real):
                if path.is_relative_to(spelled):
                    return root, path.relative_to(spelled).parts
        return None
