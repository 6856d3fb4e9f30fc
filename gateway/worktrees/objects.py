"""Takes the objects that commands made in a work tree into the repository.

A command's git writes to an object folder of its work tree's own and sees the repository's
read-only, so it can neither delete nor replace what others have there. An object is taken over if
its content is what its name says, a digest (gitformat-loose(5) and gitglossary(7), "object name").
Blocks.
"""

import hashlib
import logging
import re
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import BinaryIO, Final

from gateway.worktrees.git import GIT_S, GitFailed, WorkTree
from gateway.worktrees.repository_files import RepositoryFiles

_log = logging.getLogger(__name__)

OBJECTS: Final = "objects"
"""The folder, in the repository and in a work tree's part of it."""
_SHARED: Final = (".git", OBJECTS)
_FOLDER: Final = re.compile("[0-9a-f]{2}")
_LOOSE: Final = re.compile("[0-9a-f]{38}(?:[0-9a-f]{24})?")
_PACK: Final = re.compile(r"pack-[0-9a-f]{40,64}\.pack")
_SHA1_CHARS: Final = 40
_PIECE: Final = 1 << 18
_MAX_BYTES: Final = 1 << 30
"""Of a loose object, unpacked: git packs files of half that size (`core.bigFileThreshold`)."""
_KINDS: Final = frozenset({b"blob", b"commit", b"tag", b"tree"})
_MOST_HEADER: Final = 32
"""Bytes before the content of a loose object: its kind, its size and a zero."""
_FATAL: Final = 128
"""The exit code of git when it gives up."""
_DAMAGED: Final = re.compile(
    "bad object|early EOF|failed to apply delta|inflate returned|junk at the end"
    "|pack is corrupted|pack signature|pack version|serious inflate|SHA1 COLLISION"
    "|unknown object type|unresolved delta",
)
"""What `git index-pack` says of the content of a pack, as opposed to the machine."""


def has_new(files: RepositoryFiles, own: Sequence[str]) -> bool:
    """Return whether a work tree has objects that the repository may lack; `own` is where its part
    of the repository is.
    """
    return any(_loose(files, own)) or any(_packs(files, own))


def take_in_blocking(main: WorkTree, files: RepositoryFiles, own: Sequence[str]) -> None:
    """Move the objects of a work tree into the repository; those that are damaged are left out.

    So are those that a command has closed to the server: they would keep the tree from being shown
    and thrown away.

    Raise `OSError` if one cannot be read or written and `GitFailed` if git fails or it takes too
    long; what was not moved is where it was.
    """
    end = time.monotonic() + GIT_S
    damaged = 0
    for folder, name in _loose(files, own):
        if time.monotonic() > end:
            raise GitFailed(-1, b"", "taking in objects took too long")
        place = (*own, OBJECTS, folder, name)
        if _is_closed(files, place):
            damaged += 1
            continue
        target = (*_SHARED, folder, name)
        damaged += not (files.has_file(target) or _moved(files, place, target))
        files.remove(place)
    store = (*own, OBJECTS, "pack")
    for name in _packs(files, own):
        damaged += _is_closed(files, (*store, name)) or not _take_pack(main, files, store, name)
    if damaged:
        _log.warning("damaged_objects_left_out", extra={"count": damaged, "work_tree": own[-1]})


def _loose(files: RepositoryFiles, own: Sequence[str]) -> Iterator[tuple[str, str]]:
    store = (*own, OBJECTS)
    for folder in filter(_FOLDER.fullmatch, _listed(files, store)):
        for name in filter(_LOOSE.fullmatch, _listed(files, (*store, folder))):
            yield folder, name


def _packs(files: RepositoryFiles, own: Sequence[str]) -> Iterator[str]:
    """Yield the packs that were written to their end, which have an index."""
    names = set(_listed(files, (*own, OBJECTS, "pack")))
    for name in sorted(filter(_PACK.fullmatch, names)):
        if str(PurePath(name).with_suffix(".idx")) in names:
            yield name


def _listed(files: RepositoryFiles, folder: Sequence[str]) -> list[str]:
    """Return the names in a folder; none if a command has closed it."""
    try:
        return files.names(folder)
    except PermissionError:
        return []


def _is_closed(files: RepositoryFiles, place: Sequence[str]) -> bool:
    """Return whether a command has closed a file, or the folder that it is in."""
    try:
        files.has_file(place)
    except PermissionError:
        return True
    return False


def _moved(files: RepositoryFiles, place: Sequence[str], target: Sequence[str]) -> bool:
    """Copy a loose object to its place; return False if it is not what its name says."""
    if not files.has_file(place):
        return False
    with files.open(place) as source:
        return files.fill_object(
            target, lambda file: _copy_checked(source, file, "".join(target[-2:]))
        )


def _copy_checked(source: BinaryIO, target: BinaryIO, name: str) -> bool:
    digest = hashlib.new("sha1" if len(name) == _SHA1_CHARS else "sha256", usedforsecurity=False)
    unpack = zlib.decompressobj()
    size, head = 0, b""

    def take(content: bytes) -> None:
        nonlocal size, head
        digest.update(content)
        size += len(content)
        head += content[: _MOST_HEADER - len(head)]

    try:
        while piece := source.read(_PIECE):
            if unpack.eof:
                return False
            target.write(piece)
            while piece and not unpack.eof:
                take(unpack.decompress(piece, _PIECE))
                piece = unpack.unconsumed_tail
            if size > _MAX_BYTES or unpack.unused_data:
                return False
        take(unpack.flush())
    except zlib.error:
        return False
    return unpack.eof and _is_header(head, size) and digest.hexdigest() == name


def _is_header(head: bytes, size: int) -> bool:
    """Return whether an object of a size begins with its kind and the size of its content."""
    line, end, _ = head.partition(b"\0")
    kind, _, length = line.partition(b" ")
    return kind in _KINDS and end != b"" and length == b"%d" % (size - len(line) - 1)


def _take_pack(main: WorkTree, files: RepositoryFiles, store: Sequence[str], name: str) -> bool:
    """Move a pack, whose objects git names by their content; return False if it is damaged.

    A damaged one, or what is no file, gets another name, under which nothing reads it.
    """
    place = (*store, name)
    if not (files.has_file(place) and _is_indexed(main, files, place)):
        with suppress(OSError):  # a command may have closed the folder
            files.rename(place, f"{name}.damaged")
        return False
    stem = name.removesuffix(".pack")
    for beside in files.names(store):
        if beside.startswith(f"{stem}."):
            files.remove((*store, beside))
    return True


def _is_indexed(main: WorkTree, files: RepositoryFiles, place: Sequence[str]) -> bool:
    """Copy a pack into the repository; return False if git finds it damaged.

    Raise `GitFailed` if git fails for another reason, so that the pack stays where it is.
    """
    try:
        with files.open(place) as pack:
            main.run_blocking("index-pack", "--stdin", "--fix-thin", given=pack)
    except GitFailed as exc:
        if exc.code != _FATAL or not _DAMAGED.search(exc.errors):
            raise
        _log.warning("pack_not_taken_in", extra={"reason": str(exc)})
        return False
    return True
