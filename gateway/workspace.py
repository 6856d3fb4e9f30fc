"""Prepare an agent's workspace: `memory/`, and Candor's skills under `.claude/skills`.

Called before any agent runs there: once at the start, or when a user comes who has a folder of
their own. A skill is one `SKILL.md`. The SHA-256 of every
version written is kept in `.claude/skills/.candor.json`, so that an untouched skill is updated and
a changed one is left alone. Files are written atomically and hashes are stored before their files,
so the next start repairs a killed one. Nothing is written through a link, and nothing a person
wrote is overwritten.
"""

import contextlib
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from gateway.atomic import write_atomically_blocking
from gateway.errors import SettingsError, StartError, start_error

MANIFEST = ".candor.json"
SKILL_FILE = "SKILL.md"

_Written: TypeAlias = dict[str, list[str]]
"""For each skill the hashes of the versions we wrote, oldest first."""
_State: TypeAlias = Literal["missing", "current", "earlier", "theirs"]
"""An installed skill compared with ours: `earlier` is an untouched older version of ours."""

_README = Path(__file__).with_name("memory_readme.md")


def skill_names(source: Path) -> tuple[str, ...]:
    """List the skills in `source`, sorted: its folders that hold a `SKILL.md`.

    Raise `StartError` if `source` is missing or holds no skill.
    """
    names = tuple(sorted(path.parent.name for path in source.glob(f"*/{SKILL_FILE}")))
    if not names:
        raise StartError(
            f"The skills that belong to Candor are missing from {source}: install Candor again."
        )
    return names


def prepare_workspace_blocking(workspace: Path, skills_source: Path) -> None:
    """Create what is missing: the folder, `memory/` with its README, and the skills.

    Idempotent. A skill is written if it is missing and updated if it is an untouched older version
    of ours; anything else of that name is left alone. If everything is in place `.claude` may be
    read-only, the workspace and `memory/` never. Raise `StartError` if the workspace cannot be
    created, read or written, is not a folder, or a link is in the place of one of our folders; or
    the skills in `skills_source` are missing.
    """
    skills = _read_skills(skills_source)
    with _as_start_error(workspace):
        _make_root(workspace)
        _fill(workspace, skills)


def prepare_users_blocking(own: Path) -> None:
    """Create the folder in which each user gets one, and the server's `own` in it, for this user
    alone.

    Idempotent. Raise `StartError` as `prepare_workspace_blocking` does.
    """
    workspace = own.parent.parent
    with _as_start_error(workspace):
        _make_root(workspace)
        _make_folder(workspace, own.parent.name, mode=stat.S_IRWXU)
        for folder in (own.parent, _make_folder(own.parent, own.name, mode=stat.S_IRWXU)):
            _probe(folder)


def prepare_user_blocking(root: Path, skills_source: Path) -> None:
    """Create a user's folder, for this user alone, and what is missing in it.

    As `prepare_workspace_blocking`; the folder of the users' folders exists.
    """
    skills = _read_skills(skills_source)
    with _as_start_error(root):
        _fill(_make_folder(root.parent, root.name, mode=stat.S_IRWXU), skills)


def _fill(workspace: Path, skills: Mapping[str, bytes]) -> None:
    memory = _make_folder(workspace, "memory")
    for folder in (workspace, memory):
        _probe(folder)
    readme = memory / "README.md"
    if not os.path.lexists(readme):
        write_atomically_blocking(readme, _README.read_bytes())
    claude = _make_folder(workspace, ".claude")
    _install(skills, _make_folder(claude, "skills"))


def _read_skills(source: Path) -> dict[str, bytes]:
    names = skill_names(source)
    try:
        return {name: (source / name / SKILL_FILE).read_bytes() for name in names}
    except OSError as exc:
        raise StartError(f"The skills in {source} cannot be read: {_reason(exc)}.") from exc


@contextlib.contextmanager
def _as_start_error(workspace: Path) -> Iterator[None]:
    """Turn an OSError into a sentence that says what to do."""
    try:
        yield
    except OSError as exc:
        raise start_error(
            f"The workspace {workspace} cannot be made or written: {_reason(exc)}; set "
            "CANDOR_WORKSPACE to a folder that the server may read and write.",
            exc,
        ) from exc


def _reason(exc: OSError) -> str:
    return exc.strerror or "the system refused it"


def _make_root(workspace: Path) -> None:
    try:
        workspace.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as exc:
        raise SettingsError(
            f"The workspace {workspace} is not a directory; set CANDOR_WORKSPACE to one."
        ) from exc


def _make_folder(parent: Path, name: str, mode: int = 0o777) -> Path:
    """Create a folder of ours; a link in its place is refused.

    A link out of the workspace would redirect our files; one inside would give `.claude` a second
    name under which the agent could write.
    """
    folder = parent / name
    if not os.path.lexists(folder):
        folder.mkdir(mode=mode, exist_ok=True)  # another server may make it just now
    if folder.is_symlink() or not folder.is_dir():
        raise SettingsError(
            f"{folder} must be a real folder, not a link or a file; move it away, or set "
            "CANDOR_WORKSPACE to another folder."
        )
    return folder


def _probe(folder: Path) -> None:
    """Raise an OSError now, not at the first note, if the folder cannot be listed or written."""
    with os.scandir(folder) as entries:
        next(entries, None)
    with tempfile.TemporaryFile(dir=folder):
        pass


def _install(skills: Mapping[str, bytes], target: Path) -> None:
    manifest = target / MANIFEST
    written = _read_manifest(manifest)
    states = {name: _state(target / name, text, written) for name, text in skills.items()}
    ours = {
        name: list(dict.fromkeys([*written.get(name, []), _digest(text)]))
        for name, text in skills.items()
        if states[name] != "theirs"
    }
    if any(written.get(name) != hashes for name, hashes in ours.items()):
        stored = json.dumps({"skills": {**written, **ours}}, indent=2, sort_keys=True)
        write_atomically_blocking(manifest, f"{stored}\n".encode())
    for name, text in skills.items():
        if states[name] in {"missing", "earlier"}:
            (target / name).mkdir(exist_ok=True)
            write_atomically_blocking(target / name / SKILL_FILE, text)


def _state(folder: Path, text: bytes, written: _Written) -> _State:
    file = folder / SKILL_FILE
    if folder.is_symlink() or file.is_symlink() or (folder.exists() and not folder.is_dir()):
        return "theirs"
    if not file.exists():
        return "missing"
    digest = _digest(file.read_bytes()) if file.is_file() else ""
    if digest == _digest(text):
        return "current"
    return "earlier" if digest in written.get(folder.name, []) else "theirs"


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def _read_manifest(manifest: Path) -> _Written:
    """Return the hashes of what we wrote; empty if the file is missing or damaged."""
    if manifest.is_symlink():
        raise SettingsError(f"{manifest} must be a real file, not a link; remove it.")
    try:
        skills = json.loads(manifest.read_bytes())["skills"]
    except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    if not isinstance(skills, dict):
        return {}
    return {
        str(name): [str(digest) for digest in hashes]
        for name, hashes in skills.items()
        if isinstance(hashes, list)
    }
