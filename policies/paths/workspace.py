"""The place of a path: inside the workspace or a further directory, by its spelling and in fact.

Both must agree: the spelling alone misses links, and the resolved path alone misses what a command
does with `..` before a link exists. Resolving is the only access to the disk. This does not prevent
a folder from being swapped for a link between the check and the call: the gateway lets one changing
call run at a time and judges it then, no allowed call gives such a link another name, and the
kernel's sandbox stands behind.
"""

import copy
import errno
import os
import re
import stat
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from policies.denials import denied
from policies.paths.protected import (
    IN_REPOSITORY,
    find_acting,
    find_secret,
    fold,
    makes_repository,
    tells_of_repository,
)
from policies.verdict import Refused
from policies.visible_text import has_hidden_character, show

MAX_PATH_BYTES = 4095
MAX_NAME_BYTES = 255

_SCHEME_OR_DRIVE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[/\\]")


def find_form_fault(path: str) -> Refused | None:
    """Return why a spelling is refused that different programs read differently; `None`: it is
    plain.
    """
    if not path:
        return denied("path_empty")
    if has_hidden_character(path):
        return denied("path_characters")
    encoded = path.encode()
    longest = max(len(name) for name in encoded.split(b"/"))
    if len(encoded) > MAX_PATH_BYTES or longest > MAX_NAME_BYTES:
        return denied("path_too_long")
    if path.startswith("~"):
        return denied("path_tilde")
    if "\\" in path:
        return denied("path_backslash")
    if ".." in unicodedata.normalize("NFKC", path).split("/") and ".." not in path.split("/"):
        return denied("path_lookalike.posix")
    if path.startswith("//") or _SCHEME_OR_DRIVE.match(path):
        return denied("path_foreign")
    return None


def _below(path: str, root: str) -> tuple[str, ...] | None:
    if path == root:
        return ()
    prefix = root if root.endswith(os.sep) else f"{root}{os.sep}"
    return Path(path[len(prefix) :]).parts if path.startswith(prefix) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraDirectory:
    """A directory outside the workspace that calls may work in, too."""

    path: Path
    """Absolute, with no link in it."""
    writable: bool


@dataclass(frozen=True, slots=True)
class Root:
    """A folder that calls may work in."""

    spelled: str
    real: str
    writable: bool

    def find_parts(self, absolute: str) -> tuple[str, ...] | None:
        """Split an absolute, tidy path below this root, whichever way the root is spelled."""
        parts = _below(absolute, self.spelled)
        return _below(absolute, self.real) if parts is None else parts


@dataclass(frozen=True, slots=True)
class Place:
    """A path that lies inside, by its spelling and in fact."""

    given: str
    absolute: str
    """The spelling, made absolute and tidied, links untouched."""
    parts: tuple[str, ...]
    """The spelling below its root; empty: the root itself."""
    real: str
    """Where it leads once links are followed."""
    real_parts: tuple[str, ...]
    in_workspace: bool
    """In the workspace by its spelling and in fact; not in a further directory."""
    writable: bool

    @property
    def is_root(self) -> bool:
        """Return whether this is the workspace itself, or the whole of a further directory."""
        return not self.parts or not self.real_parts

    def check_read(self) -> None:
        """Refuse reading secrets, under their own name or a link's."""
        secret = find_secret(self.parts) or find_secret(self.real_parts)
        if secret is not None:
            raise denied("secret_file", show(secret))

    def check_write(self) -> None:
        """Refuse changing secrets and configuration that acts."""
        self.check_read()
        if not self.writable:
            raise denied("read_only_directory", show(self.given))
        acting = (
            find_acting(self.parts)
            or find_acting(self.real_parts)
            or _find_repository_part(Path(self.real), self.real_parts)
        )
        if acting is not None:
            raise denied("protected_path", show(acting))

    def check_change(self) -> None:
        """Refuse changing what must not be changed, and a file whose content has further names."""
        self.check_write()
        check_shared(self.real, self.given)


def _find_repository_part(path: Path, parts: Sequence[str]) -> str | None:
    """Name the first component that makes the folder above it a repository for git, whatever its
    name, or acts in one: git runs the programs that its settings name.
    """
    for part, folder in zip(parts, [*path.parents][len(parts) - 1 :: -1], strict=False):
        if tells_of_repository(part):
            names = {
                name
                for name in IN_REPOSITORY
                if fold(name) == fold(part) or os.path.lexists(folder / name)
            }
            if makes_repository(names):
                return f"{folder.name}/{part}"
    return None


def check_shared(path: str, shown: str, *, is_moved: bool = False) -> None:
    """Refuse changing a file with more than one hard link: the others may lie outside, or be
    protected.

    Moved, it could take the place of a file that somebody is about to write.
    """
    try:
        status = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - the path is resolved
    except FileNotFoundError:
        return
    if stat.S_ISREG(status.st_mode) and status.st_nlink != 1:
        key = "hard_link.moved" if is_moved else "hard_link"
        raise denied(key, show(shown), status.st_nlink)


class Workspace:
    """The folders that calls may work in, and the folder that relative paths start from."""

    separator = "/"
    """Between folders, as paths are shown."""

    def __init__(
        self, root: Path, cwd: Path | str, directories: Sequence[ExtraDirectory] = ()
    ) -> None:
        self.root = os.path.abspath(root)  # noqa: PTH100 - tidies the spelling, follows no link
        self.real_root = os.path.realpath(root)
        self.cwd = str(cwd)
        self.is_entered = False
        """Relative paths start from what a call names, so that no other reading of them is
        possible."""
        further = [Root(str(extra.path), str(extra.path), extra.writable) for extra in directories]
        self.roots = (Root(self.root, self.real_root, writable=True), *further)

    def check_cwd(self) -> None:
        """Refuse everything while the working directory is not inside the workspace."""
        place = self.find(self.cwd) if self.cwd.startswith("/") else None
        if place is None or not place.in_workspace:
            raise denied("cwd_outside")

    def find(self, path: str, *, follow: bool = True) -> Place | None:
        """Find where a path leads; `None` where `locate` refuses it."""
        try:
            return self.locate(path, follow=follow)
        except Refused:
            return None

    def locate(self, path: str, *, follow: bool = True) -> Place:
        """Find where a path leads, or refuse it as not plainly spelled or not inside.

        With `follow` off a link at the very end stands for itself, as it does for `rm` and `mv`; a
        final slash or dot follows it all the same.
        """
        if fault := find_form_fault(path):
            raise fault
        joined = self.join(path)
        absolute = os.path.normpath(joined)
        root = self._find_root(absolute)
        if root is None:
            raise denied("outside_workspace", show(path))
        from_root = os.path.normpath(os.path.join(self.root, path))  # noqa: PTH118 - the spelling
        if not self.is_entered and self._find_root(from_root) is not root:
            raise denied("cwd_ambiguous", show(path))
        return self.resolve(path, joined, root, follow=follow)

    def resolve(self, path: str, joined: str, root: Root, *, follow: bool) -> Place:
        """Return the place of an absolute path that is below a root by its spelling."""
        absolute = os.path.normpath(joined)
        head, name = os.path.split(joined)
        if follow or name in {"", ".", ".."}:
            real = os.path.realpath(joined)
        else:
            real = os.path.join(os.path.realpath(head), name)  # noqa: PTH118 - the link itself
        real_root = self._find_root(real, real=True)
        if root is not self.roots[0] and real_root is self.roots[0]:
            real_root = None  # whoever shares it could have an agent give away its own files
        if real_root is None or _goes_in_circles(joined, follow=follow):
            raise denied("link_outside", show(path))
        return Place(
            given=path,
            absolute=absolute,
            parts=root.find_parts(absolute) or (),
            real=real,
            real_parts=_below(real, real_root.real) or (),
            in_workspace=root is real_root is self.roots[0],
            writable=root.writable and real_root.writable,
        )

    def join(self, path: str) -> str:
        """Make a spelling absolute without tidying it, so that links still come before `..`."""
        return os.path.join(self.cwd, path)  # noqa: PTH118 - pathlib tidies

    def enter(self, place: Place) -> "Workspace":
        """Return the same folders with relative paths starting from a folder that a call names."""
        entered = copy.copy(self)
        entered.cwd = place.absolute
        entered.is_entered = True
        return entered

    def _find_root(self, absolute: str, *, real: bool = False) -> Root | None:
        for root in self.roots:
            found = _below(absolute, root.real) if real else root.find_parts(absolute)
            if found is not None:
                return root
        return None


def _goes_in_circles(path: str, *, follow: bool) -> bool:
    """Return whether links on the way lead back to themselves, which resolving passes over."""
    try:
        os.stat(path, follow_symlinks=follow)  # noqa: PTH116 - pathlib drops a final slash
    except OSError as exc:
        return exc.errno == errno.ELOOP
    return False
