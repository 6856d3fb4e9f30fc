"""Opens a workspace and its protected entries for mounting them into a box."""

import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final, Literal

from gateway.engine.box.descriptors import memory_file, open_below_blocking, open_folder_blocking
from gateway.engine.box.plan import Mount
from gateway.engine.box.search import Protected, ancestors, is_settings

MAX_MOUNTS: Final = 400
OBJECTS: Final = "/candor-objects"
"""In the box: the objects of a repository that cannot be written."""
_CREDENTIAL: Final = re.compile(
    rb"(?im)((?:^|\])[ \t]*(?:extraheader|[\w-]*(?:pass|password|secret|token))[ \t]*=)"
    rb"(?:.*\\\n)*.*$|(://)[^/\s]+@"
)
"""In a repository's settings: a header that is sent, a password, or a name and password in an
address.
"""
_MAX_SETTINGS: Final = 1 << 20


class TooManyMounts(Exception):
    """The workspace holds more protected entries than a box can cover."""


class Opened(ExitStack):
    """Descriptors that are passed on to a box, and closed together."""

    def __init__(self) -> None:
        super().__init__()
        self.fds: list[int] = []

    def keep(self, fd: int) -> int:
        """Pass a descriptor on to the box, and close it with the others."""
        self.fds.append(fd)
        self.callback(os.close, fd)
        return fd


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder of the box."""

    at: str
    """Its path, in the box as outside."""
    source: str
    """Where the broker finds it."""
    is_writable: bool
    own_objects: str = ""
    """Of a repository whose objects can be read alone: the folder below it that stands in their
    place, for new ones.
    """


def open_mounts(folder: Folder, found: Sequence[Protected], opened: Opened) -> Sequence[Mount]:
    """Return the mounts of a folder: itself, the folders above what is protected, and that.

    Each folder above is mounted on itself, because a mount point cannot be renamed: else it could
    be moved away, and another put in its place. So is each above a link that tells of a secret, or
    on its way: without the link nothing does. What has gone meanwhile is left out, and so is what a
    folder above that cannot be written shows as well.
    """
    kind: Literal["writable", "read_only"] = "writable" if folder.is_writable else "read_only"
    root = opened.keep(open_folder_blocking(folder.source))
    mounts = [Mount(kind, folder.at, root)]
    shown = sorted(_with_places(found), key=lambda entry: entry.is_secret)
    covered = {entry.path: entry for entry in shown}  # a secret, if it is something else as well
    secrets = {entry.path for entry in found if entry.is_secret and not entry.target}
    pinned = [
        entry.path for entry in found if entry.kind == "way" or _tells_of_secret(entry, secrets)
    ]
    folders = ancestors([*covered, *pinned])
    for path in sorted({*covered, *folders}, key=lambda path: path.split("/")):
        try:
            mount = _open_mount(root, f"{folder.at}/{path}", path, covered, opened)
        except (FileNotFoundError, NotADirectoryError):
            continue
        if mount is not None:
            mounts.append(replace(mount, kind=kind) if mount.kind == "writable" else mount)
        if len(mounts) > MAX_MOUNTS:
            raise TooManyMounts
    if folder.own_objects:
        mounts += _open_objects(root, folder, opened)
    return mounts


def _open_objects(root: int, folder: Folder, opened: Opened) -> Iterator[Mount]:
    """Mount a folder for new objects in place of a repository's, which git finds by its list of
    alternates (gitrepository-layout(5)).
    """
    at, own = f"{folder.at}/objects", folder.own_objects

    def open_below(path: str) -> int:
        return opened.keep(open_below_blocking(root, path))

    yield Mount("read_only", OBJECTS, open_below("objects"))
    yield Mount("writable", at, open_below(own))
    yield Mount("read_only", f"{at}/info", open_below(f"{own}/info"))
    alternates = opened.keep(memory_file(f"{OBJECTS}\n".encode()))
    yield Mount("file", f"{at}/info/alternates", alternates)


def _with_places(found: Sequence[Protected]) -> Iterator[Protected]:
    """Yield what can be mounted: in place of a link what it leads to, if that is in the
    workspace.
    """
    for entry in found:
        if not entry.target:
            yield entry
        elif entry.place:
            kind: Literal["secret_file", "acting"] = "secret_file" if entry.is_secret else "acting"
            yield replace(entry, path=entry.place, kind=kind)


def _tells_of_secret(entry: Protected, secrets: Collection[str]) -> bool:
    """Return whether an entry is a link that alone says that a file of the workspace is secret: it
    leads to none of the secrets that have the names of such.
    """
    is_link = entry.kind == "link" and entry.is_secret and entry.place != ""
    return is_link and not any(path in secrets for path in (entry.place, *ancestors([entry.place])))


def _open_mount(
    root: int, at: str, path: str, covered: Mapping[str, Protected], opened: Opened
) -> Mount | None:
    """Return one mount; None if the folder above shows the same. Only what bubblewrap mounts is
    passed on: it closes that, and nothing else.
    """
    protected = covered.get(path)
    above = next(filter(None, map(covered.get, reversed([*ancestors([path])]))), None)
    if _is_hidden(above):
        return None
    is_repository = protected is not None and protected.kind == "repository"
    is_shown_above = above is not None and above.kind != "repository" and not is_repository
    fd = open_below_blocking(root, path)
    content = None if protected is None else _cover(fd, path, protected)
    if content is None and not _is_hidden(protected) and not is_shown_above:
        is_writable = protected is None or is_repository
        return Mount("writable" if is_writable else "read_only", at, opened.keep(fd))
    os.close(fd)
    if content is not None:
        return Mount("file", at, opened.keep(memory_file(content)))
    return Mount("empty_folder", at) if _is_hidden(protected) else None


def _is_hidden(protected: Protected | None) -> bool:
    return protected is not None and (protected.is_secret or protected.kind == "hidden")


def _cover(fd: int, path: str, protected: Protected) -> bytes | None:
    """Return the content of a file that is mounted in place of another one; None for none."""
    if protected.is_secret:
        return None if stat.S_ISDIR(os.fstat(fd).st_mode) else b""
    if not is_settings(path):
        return None
    with open(f"/proc/self/fd/{fd}", "rb") as file:  # noqa: PTH123  a descriptor
        settings = file.read(_MAX_SETTINGS)
    masked = _CREDENTIAL.sub(rb"\1\2", settings)
    return None if masked == settings else masked
