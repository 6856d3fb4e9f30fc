"""The place of a path in Windows' spelling: `WindowsWorkspace`.

Windows resolves `..` before it looks at the disk, and compares names without regard to case. The same code
judges on every system, so that it can be tested on every system: separators are unified, and on a disk with
case-sensitive names each component is looked up without regard to case. Spellings that Windows reads as
something other than plain names below a folder (devices, alternate streams, short names, trailing dots,
shares, namespaces, providers) are refused, whether or not they would lead outside.
"""

import contextlib
import os
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from policies.denials import denied
from policies.paths.workspace import (
    MAX_NAME_BYTES,
    MAX_PATH_BYTES,
    ExtraDirectory,
    Place,
    Workspace,
)
from policies.verdict import Refused
from policies.visible_text import has_hidden_character, show

_DEVICES = frozenset("con nul aux prn conin$ conout$ clock$".split()).union(
    f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789"
)
_PROVIDERS = frozenset(
    "alias cert env function hkcu hklm hkcr hku hkcc registry temp variable wsman filesystem "
    "certificate environment feed gac".split()
)
_SHORT_NAME = re.compile(r"~\d")
_ILLEGAL = frozenset('<>|"')
_DRIVE = re.compile(r"[A-Za-z]:")
_SWAPPED = frozenset("/\\\"'`$%")
"""What a look-alike may become in an old code page."""
_YEN_AND_WON = frozenset("¥₩￥￦")
"""They stand for a backslash in Japanese and Korean code pages."""


def unify(path: str) -> str:
    """Return a path with / for every separator, which is how paths are compared here."""
    return path.replace("\\", "/")


def check_text(path: str) -> None:
    """Refuse a path that is empty, too long or not plainly visible."""
    if not path:
        raise denied("path_empty")
    if has_hidden_character(path):
        raise denied("path_characters")
    encoded = unify(path).encode()
    if len(encoded) > MAX_PATH_BYTES or max(map(len, encoded.split(b"/"))) > MAX_NAME_BYTES:
        raise denied("path_too_long")
    if path.startswith("~"):
        raise denied("path_tilde")


def refuse_rooted(path: str) -> Refused:
    """Return the denial of an absolute or qualified path that is not below the root."""
    unified = unify(path)
    if unified.startswith(("//?/", "//./")):
        return denied("path_namespace")
    if unified.startswith("/??/"):
        return denied("path_namespace.rooted")
    if unified.startswith("//"):
        return denied("path_share", show(path))
    if unified.startswith("/"):
        return denied("path_rooted", show(path))
    return denied("path_drive", show(path))


def is_rooted(unified: str) -> bool:
    """Return whether a path starts from a drive, a share or a namespace."""
    return unified.startswith("/") or (_DRIVE.match(unified) is not None and unified[2:3] == "/")


def check_colon(path: str) -> None:
    """Refuse a colon below the root: a drive, a provider or a stream, all of them elsewhere."""
    if ":" not in path:
        return
    unified = unify(path)
    if _DRIVE.match(unified) and ":" not in unified[2:]:
        raise denied("path_drive_relative", show(path))
    qualifier = unified.partition(":")[0].rpartition("/")[2]
    if qualifier.casefold() in _PROVIDERS:
        raise denied("path_provider", show(path))
    raise denied("path_stream", show(path))


def _is_device(name: str) -> bool:
    stem = unicodedata.normalize("NFKC", name).partition(".")[0]
    return stem.partition(":")[0].rstrip(" ").casefold() in _DEVICES


def _find_lookalike(name: str) -> bool:
    normal = unicodedata.normalize("NFKC", name)
    swapped = any(
        not _SWAPPED.isdisjoint(unicodedata.normalize("NFKC", char))
        for char in name
        if not char.isascii()
    )
    return (
        swapped or not _YEN_AND_WON.isdisjoint(name) or (normal != name and normal in {".", ".."})
    )


def check_name(name: str) -> None:
    """Refuse one component that Windows reads as something other than its letters."""
    if name in {"", ".", ".."}:
        return
    if _is_device(name):
        raise denied("path_device", show(name))
    if name.endswith((".", " ")) or name.startswith(" "):
        raise denied("path_trailing", show(name))
    if _SHORT_NAME.search(name):
        raise denied("path_short_name", show(name))
    if _find_lookalike(name):
        raise denied("path_lookalike", show(name))
    if not _ILLEGAL.isdisjoint(name):
        raise denied("path_characters.name", show(name))


def _strip_root(unified: str, root: str) -> str | None:
    """Return what stands below `root`, without regard to case; `None`: the path is elsewhere."""
    head, tail = unified[: len(root)], unified[len(root) :]
    if head.casefold() != root.casefold() or (tail and not tail.startswith("/")):
        return None
    return tail.lstrip("/")


def _tidy(parts: Sequence[str]) -> tuple[str, ...] | None:
    """Apply `.` and `..` as Windows does, by the spelling; `None`: they climb above the root."""
    out: list[str] = []
    for part in parts:
        if part == "..":
            if not out:
                return None
            out.pop()
        elif part not in {"", "."}:
            out.append(part)
    return tuple(out)


class _Spelling:
    """How names stand on the disk, looked up without regard to case and remembered for one call."""

    def __init__(self) -> None:
        self._folders: dict[str, dict[str, str]] = {}

    def apply(self, top: str, parts: Sequence[str]) -> str:
        path = top
        for i, part in enumerate(parts):
            candidate = os.path.join(path, part)  # noqa: PTH118 - pathlib tidies
            if not os.path.lexists(candidate):
                found = self._read(path).get(part.casefold())
                if found is None:
                    return os.path.join(path, *parts[i:])  # noqa: PTH118 - nothing stands there
                candidate = os.path.join(path, found)  # noqa: PTH118 - pathlib tidies
            path = candidate
        return path

    def _read(self, folder: str) -> dict[str, str]:
        if folder not in self._folders:
            self._folders[folder] = {}
            with contextlib.suppress(OSError), os.scandir(folder) as entries:
                self._folders[folder] = {entry.name.casefold(): entry.name for entry in entries}
        return self._folders[folder]


class WindowsWorkspace(Workspace):
    """A `Workspace` whose paths are spelled as on Windows, with either separator."""

    separator = "\\"

    def __init__(
        self, root: Path, cwd: Path | str, directories: Sequence[ExtraDirectory] = ()
    ) -> None:
        super().__init__(root, cwd, directories)
        self._spelling = _Spelling()

    def check_cwd(self) -> None:
        """Refuse everything while the working directory is not inside the workspace."""
        place = self.find(self.cwd) if is_rooted(unify(self.cwd)) else None
        if place is None or not place.in_workspace:
            raise denied("cwd_outside.windows")

    def strip_root(self, path: str) -> str | None:
        """Return what an absolute path holds below its root; `None`: it is below none."""
        split = self._split_root(path)
        return None if split is None else split[1]

    def check_root(self, path: str) -> None:
        """Refuse an absolute or qualified path that is below no root, whatever follows in it."""
        if is_rooted(unify(path)) and self._split_root(path) is None:
            raise refuse_rooted(path)

    def locate(self, path: str, *, follow: bool = True) -> Place:
        """Find where a path leads, or refuse it as not plainly spelled or not inside.

        `given` of the place has / for every separator. With `follow` off a link at the very end stands
        for itself.
        """
        check_text(path)
        self.check_root(path)
        rooted = is_rooted(unify(path))
        split = self._split_root(path if rooted else self.cwd)
        below = split[1] if rooted and split is not None else unify(path)
        _check_spelling(below)
        base = () if rooted or split is None else _tidy(split[1].split("/"))
        if split is None or base is None:
            raise denied("cwd_outside.windows")
        return self._locate_below(path, split[0], base, tuple(below.split("/")), follow=follow)

    def _split_root(self, path: str) -> tuple[int, str] | None:
        unified = unify(path)
        for i, root in enumerate(self._roots):
            for spelled in (root.spelled, root.real):
                below = _strip_root(unified, unify(spelled))
                if below is not None:
                    return i, below
        return None

    def _locate_below(
        self, path: str, index: int, base: tuple[str, ...], parts: tuple[str, ...], *, follow: bool
    ) -> Place:
        tidy = _tidy((*base, *parts))
        climbs = not self.is_entered and _tidy(parts) is None
        if tidy is None or climbs:
            raise denied("outside_workspace", show(path))
        top = self._roots[index].spelled
        real = self._resolve(top, tidy, follow=follow)
        split = self._split_real(real)
        if split is None or (follow and Path(real).is_symlink()):
            raise _refuse_link(path)
        if ".." in parts:  # a program that follows links before .. must come to the same place
            walked = self._resolve(
                top, (*base, *(p for p in parts if p not in {"", "."})), follow=True
            )
            if self._split_real(walked) is None:
                raise _refuse_link(path)
            if walked != os.path.realpath(real):
                raise denied("path_ambiguous", show(path))
        real_index, real_parts = split
        return Place(
            given=unify(path),
            absolute=os.path.join(top, *tidy),  # noqa: PTH118 - the spelling
            parts=tidy,
            real=real,
            real_parts=real_parts,
            in_workspace=index == real_index == 0,
            writable=self._roots[index].writable and self._roots[real_index].writable,
        )

    def _resolve(self, top: str, parts: Sequence[str], *, follow: bool) -> str:
        spelled = self._spelling.apply(top, parts)
        if follow or not parts:
            return os.path.realpath(spelled)
        head, name = os.path.split(spelled)
        return os.path.join(os.path.realpath(head), name)  # noqa: PTH118 - the link itself

    def _split_real(self, real: str) -> tuple[int, tuple[str, ...]] | None:
        for i, root in enumerate(self._roots):
            below = _strip_root(unify(real), unify(root.real))
            if below is not None:
                return i, tuple(below.split("/")) if below else ()
        return None


def _check_spelling(below: str) -> None:
    check_colon(below)
    for name in below.split("/"):
        check_name(name)
        if "*" in name or "?" in name:
            raise denied("path_wildcard", show(name))


def _refuse_link(path: str) -> Refused:
    return denied("link_outside", show(path))
