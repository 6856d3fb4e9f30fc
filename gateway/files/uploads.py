"""Store uploaded files in the workspace's `uploads` folder, so that the agent can read them.
Blocks.
"""

import errno
import os
import re
import shutil
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

from gateway.errors import Forbidden, WorkspaceUnavailable
from gateway.files.access import WorkspaceAccess
from gateway.files.upload_journal import store_whole_blocking
from memory.notes.descriptors import open_file, opened_folder

FOLDER: Final = "uploads"
_NAMED: Final = re.compile(rf"`{FOLDER}/([^`/\n\0]+)`")
_MOST_BROUGHT: Final = 20
_MAX_NAME_BYTES: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file as a client sent it."""

    name: str
    content: BinaryIO


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file as it was stored."""

    path: str
    """Relative to the workspace: `uploads/plan.pdf`."""
    name: str
    """The last part of `path`; a number is added to a name that was taken."""
    size_bytes: int


def store_uploads_blocking(
    access: WorkspaceAccess, uploads: Sequence[Upload], journals: Path
) -> Sequence[StoredFile]:
    """Store files under their own names, all or none; nothing is overwritten. `journals` is the
    folder of the journals.

    Raise `Forbidden` if the policy denies writing a file of that name, or `uploads` is a link;
    `WorkspaceUnavailable` if the workspace cannot be written.
    """
    names = [_file_name(upload.name) for upload in uploads]
    for name in names:
        access.check_write_blocking(f"{FOLDER}/{name}")
    files = [(name, upload.content) for name, upload in zip(names, uploads, strict=True)]
    try:
        stored = store_whole_blocking(journals, access.root, FOLDER, files)
    except OSError as exc:
        if exc.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise Forbidden("The uploads folder is a link or a file.", code="path_denied") from exc
        raise WorkspaceUnavailable("The file could not be stored in the workspace.") from exc
    return [
        StoredFile(path=f"{FOLDER}/{name}", name=name, size_bytes=size) for name, size in stored
    ]


def bring_uploads_blocking(workspace: Path, folder: Path, message: str) -> None:
    """Copy uploads that a message names in backticks from a workspace into another folder, if it
    has none of that name. What cannot be copied is left out.
    """
    for name in list(dict.fromkeys(_NAMED.findall(message)))[:_MOST_BROUGHT]:
        with suppress(OSError), os.fdopen(open_file(workspace, (FOLDER, name)), "rb") as file:
            with opened_folder(folder, (FOLDER,), make=True) as into:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
                made = os.open(name, flags, 0o644, dir_fd=into)
            with os.fdopen(made, "wb") as copy:
                shutil.copyfileobj(file, copy)


def _file_name(given: str) -> str:
    """Return the last part of a client's file name, short enough to be numbered."""
    name = unicodedata.normalize("NFC", given).replace("\\", "/").rpartition("/")[2].strip()
    path = PurePosixPath(name or "file")
    stem, suffix = path.stem or "file", path.suffix
    if len(suffix.encode(errors="replace")) > _MAX_NAME_BYTES // 2:
        stem, suffix = name, ""
    room = _MAX_NAME_BYTES - len(suffix.encode(errors="replace"))
    return stem.encode(errors="replace")[:room].decode(errors="ignore") + suffix
