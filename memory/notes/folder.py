"""The workspace's `memory/` folder: notes that people and agents write.

Each path component is opened relative to the one before and without following links, so nothing
outside of the folder is read or removed, even if a component is swapped meanwhile. Files of secrets
are no notes, large files are read in part, and secrets in texts are masked.
"""

import errno
import hashlib
import os
import stat
import string
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from memory.intents.masking import Mask
from memory.notes.descriptors import open_file, opened_folder
from policies.paths.protected import find_protected_entry

FOLDER: Final = "memory"
ENDINGS: Final = frozenset({".md", ".yaml", ".yml"})
MAX_FILES: Final = 20_000
MAX_FILE_BYTES: Final = 65_536
"""Of a larger file the beginning is read, as much as is masked quickly."""
_MAX_DEPTH: Final = 8
_MAX_TIME_NS: Final = 2**63 - 1
"""The latest time that can be stored."""
_BREAKS: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Categories of characters that would break the line of a name."""
_NOT_THERE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""Errors of a path whose component is missing, no folder or a link."""
_WORD: Final = string.ascii_letters + string.digits + string.punctuation + "\ufffd"


@dataclass(frozen=True, slots=True, order=True)
class NoteFile:
    """A note's file."""

    name: str
    """Relative to the workspace, with slashes: `memory/ops.md`."""
    mtime_ns: int
    size: int


@dataclass(frozen=True, slots=True)
class NoteText:
    """The text of a note."""

    file: NoteFile
    text: str
    """Lines end with a line feed; empty if the file is no text."""
    digest: str
    """SHA-256 of the bytes that were read."""


def list_notes_blocking(workspace: Path) -> list[NoteFile]:
    """Return the notes of a workspace by name."""
    found: list[NoteFile] = []
    waiting = [[FOLDER]]
    while waiting and len(found) < MAX_FILES:
        parts = waiting.pop()
        with (
            suppress(OSError),
            opened_folder(workspace, parts) as folder,
            os.scandir(folder) as all_of_it,
        ):
            below = [entry for entry in all_of_it if _may_be_listed(entry.name, parts)]
            folders = sorted(entry.name for entry in below if entry.is_dir(follow_symlinks=False))
            if len(parts) <= _MAX_DEPTH:
                waiting += ([*parts, name] for name in reversed(folders))
            notes = (_listed(name, parts, folder) for name in sorted(entry.name for entry in below))
            found += filter(None, notes)
    return sorted(found[:MAX_FILES])


def read_note_blocking(
    workspace: Path, file: NoteFile, mask: Mask, *, most_bytes: int = MAX_FILE_BYTES
) -> NoteText | None:
    """Read a note, or the first whole lines of a long one; None if it is no note any more."""
    try:
        raw = _read(workspace, file.name, most_bytes + 1)
    except OSError:
        return None
    kept = raw[:most_bytes]
    text = mask(_text(kept, is_whole=len(raw) == len(kept)))
    return NoteText(file=file, text=text, digest=hashlib.sha256(kept).hexdigest())


def remove_note_blocking(workspace: Path, name: str) -> bool:
    """Remove a note's file, unless it is no note any more; return False if that failed."""
    *folders, last = _parts(name)
    try:
        with opened_folder(workspace, folders) as folder:
            if _is_note(os.stat(last, dir_fd=folder, follow_symlinks=False)):
                os.unlink(last, dir_fd=folder)
    except OSError as exc:
        return exc.errno in _NOT_THERE
    return True


def _may_be_listed(entry: str, folder: Sequence[str]) -> bool:
    """Return whether an entry of a folder may be a note or a folder of notes."""
    if entry.startswith(".") or find_protected_entry([*folder, entry]) is not None:
        return False
    return not any(unicodedata.category(char) in _BREAKS for char in entry)


def _listed(entry: str, folder: Sequence[str], descriptor: int) -> NoteFile | None:
    path = PurePosixPath(entry)
    if path.suffix.lower() not in ENDINGS or path.stem.lower() == "readme":
        return None  # a README describes the folder
    try:
        status = os.stat(entry, dir_fd=descriptor, follow_symlinks=False)
    except OSError:
        return None
    mtime_ns = min(max(0, status.st_mtime_ns), _MAX_TIME_NS)
    return (
        NoteFile("/".join([*folder, entry]), mtime_ns, status.st_size) if _is_note(status) else None
    )


def _is_note(status: os.stat_result) -> bool:
    """Return whether it is a regular file without hard links."""
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1


def _parts(name: str) -> Sequence[str]:
    parts = name.split("/")
    assert parts[0] == FOLDER, "a note's name begins with its folder"
    assert not {"", ".", ".."} & set(parts), "a note's name leads straight down"
    return parts


def _read(workspace: Path, name: str, most_bytes: int) -> bytes:
    """Read a file's beginning. Raise `OSError` if it is missing, or no note any more."""
    with os.fdopen(open_file(workspace, _parts(name)), "rb") as file:
        if not _is_note(os.fstat(file.fileno())):
            raise FileNotFoundError(name)
        return file.read(most_bytes)


def _text(raw: bytes, *, is_whole: bool) -> str:
    if b"\0" in raw:
        return ""
    text = raw.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    if is_whole:
        return text
    # half a secret is not recognised, so the text is cut at the end of a line or word
    lines, _, _ = text.rpartition("\n")
    return lines or text.rstrip(_WORD)
