"""Back Candor up while it runs; standard library only.

    python deploy/backup.py DATA_DIR WORKSPACE LOG_DIR TARGET

TARGET must be outside of the three, and new or empty. It gets the folders `data`, `workspace` and `logs`.
To restore, stop the server and put the three where CANDOR_DATA_DIR, CANDOR_WORKSPACE and CANDOR_LOG_DIR point; see docs/operations.md.
"""

import contextlib
import os
import shutil
import sqlite3
import stat
import sys
from pathlib import Path

DATABASES = ("candor.sqlite3", "memory.sqlite3")
LEFT_OUT = (
    *(f"{name}*" for name in DATABASES),  # copied by SQLite itself
    "vectors",  # the server makes them again
    "tmp",
    "*.lock",
    "users/*/tmp",
)
"""Below the data directory, and in it alone: what agents, users and MCP servers keep there may have any name."""
SOURCES = ("DATA_DIR", "WORKSPACE", "LOG_DIR")
NODE = "node"
"""In the data directory of a server whose databases are in PostgreSQL."""


def hindrance(sources: tuple[Path, ...], target: Path) -> str | None:
    """Return why these folders cannot be copied to the target, as a sentence; None if they can."""
    for name, source in zip(SOURCES, sources, strict=True):
        if not source.is_dir():
            return f"{name} {source} is not a folder."
    for source in sources:
        if target.resolve().is_relative_to(source.resolve()):
            return (
                f"TARGET {target} is inside {source}, which is copied. "
                "Name a folder outside of the three."
            )
    if os.path.lexists(target) and not (target.is_dir() and not any(target.iterdir())):
        return (
            f"TARGET {target} exists and is not an empty folder. Name another folder, or move this "
            "one away."
        )
    data_dir = sources[0]
    for name, source in zip(SOURCES[1:], sources[1:], strict=True):
        is_around = data_dir.resolve().is_relative_to(source.resolve())
        if _has_database(source) or (is_around and _has_database(data_dir)):
            return (
                f"{name} {source} holds the server's databases, and copied as plain files they are "
                "damaged. Name DATA_DIR, WORKSPACE and LOG_DIR in this order, and keep DATA_DIR "
                "outside of the others."
            )
    if not (data_dir / DATABASES[0]).exists() and not (data_dir / NODE).exists():
        return (
            f"DATA_DIR {data_dir} holds no {DATABASES[0]}. Name the folder of CANDOR_DATA_DIR of a "
            "server that was started."
        )
    return None


def _has_database(folder: Path) -> bool:
    return any((folder / name).exists() for name in DATABASES)


def copy_database(source: Path, target: Path) -> None:
    """Copy a database as it is at one moment, whatever is being written meanwhile."""
    with (
        contextlib.closing(_open(source)) as live,
        contextlib.closing(sqlite3.connect(target)) as copy,
    ):
        live.backup(copy)


def _open(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=60)


def _copy_file(source: str, target: str) -> str:
    """Copy a regular file, unless it was removed since its folder was listed; pipes and sockets are left out."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISREG(os.stat(source).st_mode):  # noqa: PTH116  as shutil names it
            shutil.copy2(source, target)
    return target


def _copy_folder(source: Path, target: Path, left_out: tuple[str, ...] = ()) -> None:
    """Copy a folder but for what patterns of paths below it name, and what is removed meanwhile."""

    def ignored(folder: str, names: list[str]) -> set[str]:
        place = Path(folder).relative_to(source)
        depth = len(place.parts) + 1
        patterns = [pattern for pattern in left_out if len(Path(pattern).parts) == depth]
        return {name for name in names if any(map((place / name).match, patterns))}

    try:
        shutil.copytree(
            source,
            target,
            symlinks=True,
            ignore=ignored,
            copy_function=_copy_file,
            dirs_exist_ok=True,
        )
    except shutil.Error as exc:
        failed = [failure for failure in exc.args[0] if os.path.lexists(failure[0])]
        if failed:
            raise shutil.Error(failed) from exc


def back_up(data_dir: Path, workspace: Path, log_dir: Path, target: Path) -> None:
    """Copy the databases first: an agent session that is newer than its conversation does no harm."""
    (target / "data").mkdir(parents=True)
    for name in DATABASES:
        if (data_dir / name).exists():
            copy_database(data_dir / name, target / "data" / name)
    _copy_folder(data_dir, target / "data", LEFT_OUT)
    _copy_folder(workspace, target / "workspace")
    _copy_folder(log_dir, target / "logs")


if __name__ == "__main__":
    if len(sys.argv) != 5:  # noqa: PLR2004  as the first lines say
        sys.exit(__doc__)
    os.umask(0o077)
    data, workspace, logs, to = map(Path, sys.argv[1:])
    try:
        reason = hindrance((data, workspace, logs), to)
        if reason is None:
            back_up(data, workspace, logs, to)
    except (OSError, sqlite3.Error, shutil.Error) as exc:
        sys.exit(f"The backup failed and is not whole: {exc}. Remove {to} before you try again.")
    if reason is not None:
        sys.exit(f"The backup failed: {reason}")
    if not (data / DATABASES[0]).exists():
        sys.stderr.write(
            f"DATA_DIR {data} holds no {DATABASES[0]}: conversations and memory are not in this "
            "backup. That is right only with CANDOR_DATABASE_URL; back PostgreSQL up with pg_dump, "
            "too.\n"
        )
