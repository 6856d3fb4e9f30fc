"""What a person approved of the workspace's own configuration, and what is there now.

Read before every start of an agent, and by the command `policy trust`. Each file is read once, its bytes
judged and hashed, never through a link; how many there are and how long is bounded. Approvals are exact
contents by path, kept in the data directory, where the agent cannot write: any change asks again.
Everything here blocks; callers on the event loop use a worker thread.
"""

import contextlib
import json
import os
import stat
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import StartError
from gateway.settings import Settings
from policies.configuration import FOLDER, Concern, Found, digest_of, find_concerns, is_content
from policies.paths.protected import fold
from policies.paths.protected_names import INSTRUCTIONS

MAX_FILES = 5000
MAX_ENTRIES = 10_000
"""How much of the workspace is searched for a `.claude` deeper in it. Beyond that the options hold alone
with which an agent is started: a search of everything would make each start wait."""
MAX_FILE_BYTES = 1024 * 1024
MAX_APPROVALS_BYTES = 16 * 1024 * 1024
_APPROVALS = "trusted.json"
_ROOTS = frozenset({".claude", ".mcp.json", *INSTRUCTIONS})
"""What the agent program looks for at the top of its folder, in the form of `fold`."""

_WORDS = {
    "link": "is a link; put the file itself there, or remove it",
    "unreadable": "cannot be read; remove it, or let the server read it",
    "too_large": "is too large to be judged; remove it",
    "too_many": "holds too many files to be judged; remove what is not needed",
    "syntax": "cannot be understood",
    "unknown_kind": "is of a kind that is not known here",
}

_Approved = Mapping[str, str]
"""For each path the digest of what was approved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustReport:
    """What stands in the workspace's configuration."""

    workspace: Path
    concerns: tuple[Concern, ...]
    """What acts and nobody approved; while there is any, no agent starts."""
    approved: tuple[str, ...] = ()
    """What acts and was approved as it stands."""

    @property
    def is_trusted(self) -> bool:
        """True if agents start there."""
        return not self.concerns

    def lines(self) -> list[str]:
        """Say it for a person at a terminal, one file a line."""
        told = [f"{one.path}: {_WORDS.get(one.what, f'acts: {one.what}')}" for one in self.concerns]
        return [*told, *(f"{path}: approved" for path in self.approved)]


def approvals_file(data_dir: Path) -> Path:
    """Give the file that approvals are kept in."""
    return data_dir / _APPROVALS


def review_blocking(settings: Settings) -> TrustReport:
    """Look at the workspace's configuration as it is now; writes nothing.

    Raises:
        StartError: the approvals cannot be read.
    """
    workspace = settings.workspace.resolve()
    file = approvals_file(settings.data_dir.resolve())
    try:
        return review_folder_blocking(workspace, file)
    except OSError as exc:
        raise _cannot(file, "read", exc) from exc


def trust_blocking(settings: Settings, report: TrustReport | None = None) -> TrustReport:
    """Approve exactly the contents that a report shows, and give the report as it stands afterwards.

    Idempotent. What cannot be approved (a link, a file that is too large) stays a concern.

    Raises:
        StartError: the approvals cannot be read or written.
    """
    shown = report or review_blocking(settings)
    file = approvals_file(settings.data_dir.resolve())
    wanted = {one.path: one.digest for one in shown.concerns if one.digest}
    if wanted:
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            everything = _read_approvals(file)
            key = str(shown.workspace)
            _write_approvals(file, {**everything, key: {**everything.get(key, {}), **wanted}})
        except OSError as exc:
            raise _cannot(file, "written", exc) from exc
    return review_blocking(settings)


def review_folder_blocking(workspace: Path, approvals: Path | None) -> TrustReport:
    """Look at a folder's configuration, with what was approved for it.

    Raises:
        OSError: the approvals cannot be read. Approvals that cannot be understood count as none.
    """
    known = _read_approvals(approvals) if approvals is not None else {}
    approved = known.get(str(workspace), {})
    files = list(_find_files(workspace))
    concerns = find_concerns(files, approved)
    quiet = [one for one in files if one.trouble is None]
    held = tuple(one.path for one in quiet if approved.get(one.path) == digest_of(one.content))
    return TrustReport(workspace=workspace, concerns=concerns, approved=held)


def _find_files(workspace: Path) -> Iterator[Found]:
    """Read what the agent program would take for configuration, sorted, up to a bound."""
    count = 0
    at_top = sorted(one for one in _list(workspace) if fold(one.name) in _ROOTS)
    for path in (*at_top, *sorted(_find_deeper(workspace))):
        for found in _read(workspace, path):
            count += 1
            if count > MAX_FILES:
                name = path.relative_to(workspace).as_posix()
                yield Found(path=name, trouble="too_many")
                return
            yield found


def _find_deeper(workspace: Path) -> Iterator[Path]:
    """Give the `.claude` folders below the workspace's own folders, nearest first, up to a bound."""
    folders = deque([str(workspace)])
    left = MAX_ENTRIES
    while folders and left > 0:
        folder = folders.popleft()
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                left -= 1
                if left <= 0:
                    break
                if entry.name.lower() == FOLDER:
                    if folder != str(workspace):
                        yield Path(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)


def _list(folder: Path) -> list[Path]:
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        return [Path(entry.path) for entry in entries]
    return []


def _read(workspace: Path, path: Path) -> Iterator[Found]:
    """Read one file, or a folder's files at any depth."""
    name = path.relative_to(workspace).as_posix()
    try:
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            for one in sorted(_list(path)):
                yield from _read(workspace, one)
        elif stat.S_ISREG(mode):
            yield Found(path=name) if is_content(name) else _read_file(path, name)
        else:
            yield Found(path=name, trouble="link" if stat.S_ISLNK(mode) else "unreadable")
    except FileNotFoundError:
        return  # gone since it was listed
    except (OSError, RecursionError):
        yield Found(path=name, trouble="unreadable")


def _read_file(path: Path, name: str) -> Found:
    """Read a file's bytes, the very ones that are judged; a link that took its place is not followed."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return Found(path=name, trouble="unreadable")
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        return Found(path=name, trouble="too_large")
    return Found(path=name, content=content)


def _read_approvals(file: Path) -> dict[str, _Approved]:
    try:
        with file.open("rb") as opened:
            told = json.loads(opened.read(MAX_APPROVALS_BYTES))["workspaces"]
    except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    if not isinstance(told, dict):
        return {}
    return {
        workspace: {path: digest for path, digest in one.items() if isinstance(digest, str)}
        for workspace, one in told.items()
        if isinstance(one, dict)
    }


def _write_approvals(file: Path, approvals: Mapping[str, _Approved]) -> None:
    """Put the whole file there or leave it as it was; for this user alone."""
    fresh = file.with_name(f".{file.name}.{os.getpid()}.part")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
            json.dump({"workspaces": approvals}, opened, indent=2, sort_keys=True)
            opened.flush()
            os.fsync(opened.fileno())
        fresh.replace(file)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _cannot(file: Path, what: str, exc: OSError) -> StartError:
    return StartError(
        f"The approvals in {file} cannot be {what} ({exc.strerror}); "
        "let the server use them, or set CANDOR_DATA_DIR to another directory."
    )
