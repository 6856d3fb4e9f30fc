"""Store files in a folder of the workspace all or none, also if the process is killed meanwhile.
Blocks.

The files are written to a hidden folder beside their places and then linked to their names, which
overwrites nothing. A journal in the data directory, where no agent can write, names the hidden
folder and, until all names are there, which files to take back. An upload that was cut off is
undone at the next start.
"""

import errno
import json
import logging
import os
import secrets
import shutil
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final, TypeAlias

from pydantic import TypeAdapter

from gateway.atomic import write_atomically_blocking
from memory.notes.descriptors import create_file, opened_folder

JOURNALS: Final = "uploads"
"""The folder of the journals in the data directory."""
_STAGE: Final = ".candor-upload-"
_MAX_TRIES: Final = 10_000

_Identity: TypeAlias = tuple[int, int]
"""A file's device and number, which all its names share."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Journal:
    """The journal of one upload."""

    file: Path
    workspace: Path
    folder: str
    unconfirmed: Sequence[_Identity]
    """The files whose names are to be removed again."""

    @property
    def stage(self) -> Sequence[str]:
        """Return the hidden folder, below the workspace."""
        return [self.folder, f"{_STAGE}{self.file.stem}"]

    def write(self, unconfirmed: Sequence[_Identity]) -> None:
        fields = {
            "workspace": str(self.workspace),
            "folder": self.folder,
            "unconfirmed": unconfirmed,
        }
        write_atomically_blocking(self.file, json.dumps(fields).encode(), mode=0o600)


_JOURNAL: Final = TypeAdapter(_Journal)


def store_whole_blocking(
    journals: Path, workspace: Path, folder: str, files: Sequence[tuple[str, BinaryIO]]
) -> Sequence[tuple[str, int]]:
    """Store files under their names, all or none; return each name and size.

    A number is added to a name that is taken. Raise `OSError` if they cannot be stored; `ELOOP` or
    `ENOTDIR` if the folder is a link or a file.
    """
    journals.mkdir(mode=0o700, exist_ok=True)
    file = journals / f"{secrets.token_hex(8)}.json"
    journal = _Journal(file=file, workspace=workspace, folder=folder, unconfirmed=())
    with ExitStack() as opened:
        target = opened.enter_context(opened_folder(workspace, [folder], make=True))
        journal.write([])
        try:
            staged = opened.enter_context(opened_folder(workspace, journal.stage, make=True))
            # open until the end, so that no other file can get the number of one of them
            written = [
                opened.enter_context(_write(str(number), content, staged))
                for number, (_, content) in enumerate(files)
            ]
            statuses = [os.fstat(file.fileno()) for file in written]
            identities = [(status.st_dev, status.st_ino) for status in statuses]
            journal.write(identities)
            names = [
                _link(str(number), name, identity, staged, target)
                for number, ((name, _), identity) in enumerate(zip(files, identities, strict=True))
            ]
            os.fsync(target)
            journal.write([])
        except BaseException:
            _settle(_read(file))
            raise
    _settle(journal)
    return [(name, status.st_size) for name, status in zip(names, statuses, strict=True)]


def undo_cut_uploads_blocking(journals: Path) -> None:
    """Undo the uploads that the end of an earlier process cut off."""
    for file in sorted(journals.glob("*.json")):
        try:
            journal = _read(file)
        except (OSError, ValueError, TypeError):
            _log.exception("upload_journal_unreadable")
            continue
        _settle(journal)


def _read(file: Path) -> _Journal:
    return _JOURNAL.validate_python({**json.loads(file.read_bytes()), "file": file})


def _write(name: str, content: BinaryIO, staged: int) -> BinaryIO:
    """Store one file in the hidden folder; the caller closes it."""
    file = os.fdopen(create_file(name, staged), "wb")
    try:
        shutil.copyfileobj(content, file)
        file.flush()
        os.fsync(file.fileno())
    except BaseException:
        file.close()
        raise
    return file


def _link(staged_name: str, name: str, identity: _Identity, staged: int, target: int) -> str:
    """Add a staged file's name; return it, with the number that it needed."""
    path = PurePosixPath(name)
    for number in range(1, _MAX_TRIES):
        free = name if number == 1 else f"{path.stem}-{number}{path.suffix}"
        with suppress(FileExistsError):
            os.link(staged_name, free, src_dir_fd=staged, dst_dir_fd=target, follow_symlinks=False)
            if _identity(free, target) != identity:  # an agent replaced it meanwhile
                os.unlink(free, dir_fd=target)
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return free
    raise OSError(errno.ENOSPC, "no number is free")


def _settle(journal: _Journal) -> None:
    """Remove what an upload does not need; what cannot be removed now goes at the next start."""
    try:
        if os.path.lexists(journal.workspace.joinpath(*journal.stage)):
            _clear(journal)
        journal.file.unlink()
    except OSError:
        _log.exception("upload_not_settled")


def _clear(journal: _Journal) -> None:
    """Remove the unconfirmed names, then the hidden folder.

    A name is removed only while the hidden folder holds the same file, so it cannot be of a later
    file that got the same number.
    """
    with (
        opened_folder(journal.workspace, [journal.folder]) as target,
        opened_folder(journal.workspace, journal.stage) as staged,
    ):
        staged_files = _identities(staged)
        taken_back = set(staged_files.values()).intersection(journal.unconfirmed)
        for name, identity in _identities(target).items() if taken_back else ():
            if identity in taken_back:
                os.unlink(name, dir_fd=target)
        for name in staged_files:
            os.unlink(name, dir_fd=staged)
        os.rmdir(journal.stage[-1], dir_fd=target)


def _identity(name: str, folder: int) -> _Identity:
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    return status.st_dev, status.st_ino


def _identities(folder: int) -> dict[str, _Identity]:
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
    return {name: _identity(name, folder) for name in names}
