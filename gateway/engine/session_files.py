"""The agent program's session files: `projects/<folder>/<session>.jsonl`, those of sub-agents in a
directory beside it, and the list of tasks in `tasks/<session>`.
"""

import errno
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from claude_agent_sdk import project_key_for_directory

from gateway.transcripts import MAIN, Entry
from memory.stores.sqlite.statements import is_storable

_SESSION_ID: Final = re.compile(r"[0-9a-fA-F-]{36}")
_SUBPATH: Final = re.compile(r"subagents(/[\w-][\w.-]*)+", re.ASCII)
_MOST_UUID_CHARS: Final = 100
_TASK_FILE: Final = re.compile(r"\.?\w[\w-]*(\.json)?", re.ASCII)
_MOST_TASKS_BYTES: Final = 1_000_000
TASKS: Final = "tasks"
"""The subpath of the list of tasks: each entry is the whole of it, and the last one counts."""
_METADATA: Final = "agent_metadata"
"""The type of the entry that stands for the file `<sub-agent>.meta.json`."""


def is_session_id(text: str) -> bool:
    """Return whether this may be part of a path."""
    return _SESSION_ID.fullmatch(text) is not None


def transcripts_of(config_dir: Path, session_id: str) -> list[Path]:
    """Return the files of a session, whichever folder the agent worked in; usually one."""
    if not is_session_id(session_id):
        return []
    return list(config_dir.glob(f"projects/*/{session_id}.jsonl"))


def forget_blocking(config_dir: Path, session_id: str) -> None:
    """Delete a session's transcript and the folders that belong to it."""
    for transcript in transcripts_of(config_dir, session_id):
        transcript.unlink(missing_ok=True)
        shutil.rmtree(transcript.with_suffix(""), ignore_errors=True)
    if is_session_id(session_id):
        for kind in ("file-history", "session-env", "todos", "tasks"):
            shutil.rmtree(config_dir / kind / session_id, ignore_errors=True)


def sessions_in(config_dir: Path) -> set[str]:
    """Return the sessions that have files. Blocks."""
    found = {path.stem for path in config_dir.glob("projects/*/*.jsonl")}
    return {name for name in found if is_session_id(name)}


def folder_of(workspace: Path) -> str:
    """Return the folder of sessions in which an agent of a workspace looks. Blocks."""
    return project_key_for_directory(workspace)


def place_of(config_dir: Path, folder: str, session_id: str) -> Path:
    """Return the file of a session in a folder of sessions. Blocks."""
    return config_dir.resolve() / "projects" / folder / f"{session_id}.jsonl"


def entry_of(value: Any) -> Entry:
    """Return an entry that the agent program wrote."""
    return Entry(json.dumps(value, separators=(",", ":")).encode(), _uuid_of(value))


def _uuid_of(value: Any) -> str | None:
    uuid = value.get("uuid") if isinstance(value, dict) else None
    if not isinstance(uuid, str) or len(uuid) > _MOST_UUID_CHARS or not is_storable(uuid):
        return None
    return uuid


def entries_in(content: bytes) -> Iterator[Entry]:
    """Yield the entries of a file; a line that was cut off is left out."""
    for line in content.split(b"\n"):
        try:
            yield Entry(line, _uuid_of(json.loads(line)))
        except ValueError:
            continue


def last_uuid_in(content: bytes) -> str | None:
    """Return the `uuid` of the last entry that has one."""
    for line in reversed(content.split(b"\n")):
        if b'"uuid"' in line and (last := next(entries_in(line), None)) and last.uuid is not None:
            return last.uuid
    return None


def read_blocking(path: Path) -> bytes:
    """Return what a file holds. Raise `OSError` if it cannot be read, or a link leads to it."""
    _refuse_links(path)
    return path.read_bytes()


def _refuse_links(path: Path) -> None:
    """Raise `OSError` if there is a link on the way, which an agent may have made."""
    if path.resolve() != path:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def read_session_blocking(file: Path) -> dict[str, list[Entry]]:
    """Return the transcripts of a session by subpath. Raise `OSError`."""
    found = {MAIN: list(entries_in(read_blocking(file)))}
    folder = file.with_suffix("")
    for path in sorted(folder.glob("subagents/**/*.jsonl")):
        entries = list(entries_in(read_blocking(path)))
        if (told := _metadata_blocking(path)) is not None:
            entries.append(entry_of({**told, "type": _METADATA}))
        found[path.relative_to(folder).with_suffix("").as_posix()] = entries
    if (tasks := read_tasks_blocking(_tasks_of(file))) is not None:
        found[TASKS] = [tasks]
    return {subpath: entries for subpath, entries in found.items() if entries}


def tasks_of(config_dir: Path, session_id: str) -> Path:
    """Return the folder of a session's list of tasks. Blocks."""
    return config_dir.resolve() / "tasks" / session_id


def _tasks_of(file: Path) -> Path:
    return tasks_of(file.parents[2], file.stem)


def read_tasks_blocking(folder: Path) -> Entry | None:
    """Return a list of tasks; None if there is none, or it cannot be read or is too long."""
    try:
        names = sorted(path.name for path in folder.iterdir() if _TASK_FILE.fullmatch(path.name))
        files = {name: read_blocking(folder / name).decode() for name in names if name != ".lock"}
    except (OSError, ValueError):
        return None
    entry = entry_of({"type": TASKS, "files": files})
    return entry if files and len(entry.data) <= _MOST_TASKS_BYTES else None


def _write_tasks_blocking(folder: Path, line: bytes) -> None:
    files = json.loads(line)["files"]
    for name, text in files.items():
        if _TASK_FILE.fullmatch(name):
            _write_blocking(folder / name, text.encode())
    for path in [path for path in folder.glob("*.json") if path.name not in files]:
        path.unlink()


def _metadata_blocking(transcript: Path) -> dict[str, Any] | None:
    try:
        told = json.loads(read_blocking(transcript.with_suffix(".meta.json")))
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) else None


def write_session_blocking(file: Path, transcripts: Mapping[str, Sequence[bytes]]) -> None:
    """Write the files of a session in the place of those that are there.

    The session's own comes last: without it nothing is resumed. Raise `OSError`.
    """
    folder = file.with_suffix("")
    for subpath, lines in sorted(transcripts.items(), reverse=True):
        if subpath == MAIN:
            _write_blocking(file, _joined(lines))
        elif subpath == TASKS:
            _write_tasks_blocking(_tasks_of(file), lines[-1])
        elif _SUBPATH.fullmatch(subpath):
            path = (folder / subpath).with_suffix(".jsonl")
            told = [told for line in lines if (told := _metadata_in(line)) is not None]
            _write_blocking(path, _joined([line for line in lines if _metadata_in(line) is None]))
            if told:
                _write_blocking(path.with_suffix(".meta.json"), json.dumps(told[-1]).encode())


def _metadata_in(line: bytes) -> dict[str, Any] | None:
    entry = json.loads(line) if _METADATA.encode() in line else None
    if not isinstance(entry, dict) or entry.get("type") != _METADATA:
        return None
    return {name: value for name, value in entry.items() if name != "type"}


def _joined(lines: Sequence[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _write_blocking(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _refuse_links(path.parent)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(part, flags, 0o600), "wb") as file:
        file.write(content)
    part.replace(path)
