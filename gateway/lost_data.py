"""Refuse to start with a lost database."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from gateway.errors import StartError
from gateway.settings import Settings
from memory.stores.sqlite.integrity import holds_nothing_blocking, look_at_blocking

DATABASE: Final = "candor.sqlite3"


_BEGUN_ANEW: Final = (
    "CANDOR_LOG_DIR has logs of earlier turns, and the database is new: if there are earlier "
    "conversations, CANDOR_DATA_DIR is not their directory."
)


def refuse_lost_database_blocking(settings: Settings) -> str | None:
    """Refuse to create a new database if there are traces of earlier conversations.

    Agent sessions are in the data directory beside the database, so without it they are orphans.
    Logs may be kept elsewhere and for longer: they count only if the database file is there and
    empty. If it is missing, return a sentence about them for the operator. Raise `StartError` if
    the database is missing or empty, and there are earlier conversations; or it is a database of
    something else.
    """
    if settings.database_url is not None:
        return None
    path = settings.data_dir / DATABASE
    if _is_foreign(path):
        raise StartError(
            f"The file {DATABASE} in CANDOR_DATA_DIR is a database without conversations: it "
            "belongs to"
            " another program or part. Put the right file in its place, or move this one away."
        )
    if not holds_nothing_blocking(path):
        return None
    state = "empty" if path.exists() else "missing"
    remedy = "Restore it from a backup"
    has_logs = _has_any(settings.log_dir, "*/trn_*.jsonl")
    if _has_sessions(settings):
        traces = "agent sessions of earlier conversations in the data directory"
        if state == "missing":
            remedy += ", set CANDOR_DATABASE_URL again if the conversations are in PostgreSQL"
    elif has_logs and state == "empty":
        traces = "logs of earlier turns"
    else:
        return _BEGUN_ANEW if has_logs else None
    raise StartError(
        f"The database {DATABASE} is {state}, but there are {traces}. {remedy}, or begin anew: "
        "move the contents of CANDOR_DATA_DIR and CANDOR_LOG_DIR to another place."
    )


def refuse_new_database_blocking(settings: Settings) -> None:
    """Refuse a PostgreSQL database that was just made, if there are earlier conversations.

    Raise `StartError` if the data directory has conversations or their agent sessions.
    """
    if _has_sessions(settings) or not holds_nothing_blocking(settings.data_dir / DATABASE):
        raise StartError(
            "The database of CANDOR_DATABASE_URL is empty, but the data directory has "
            "conversations or their agent sessions. Correct the address, copy them with `candor db "
            "copy --to postgresql`, or begin anew: give the server an empty directory with "
            "CANDOR_DATA_DIR."
        )


def _has_sessions(settings: Settings) -> bool:
    sessions = ("sessions/projects/*/*.jsonl", "users/*/sessions/projects/*/*.jsonl")
    return any(_has_any(settings.data_dir, pattern) for pattern in sessions)


def _has_any(directory: Path, pattern: str) -> bool:
    return next(directory.glob(pattern), None) is not None


def _is_foreign(path: Path) -> bool:
    """Return whether the file is a database that has tables, but not the gateway's."""
    if not path.exists():
        return False
    try:
        with closing(look_at_blocking(path)) as connection:
            rows = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table'"
            ).fetchall()
    except (sqlite3.Error, UnicodeDecodeError):  # damaged: opening it reports that
        return False
    return bool(rows) and ("conversations",) not in rows


UNREADABLE: Final = (
    "SELECT (SELECT count(*) FROM events WHERE data != '' AND NOT json_valid(data))"
    " + (SELECT count(*) FROM turns WHERE result IS NOT NULL AND NOT json_valid(result))"
)
"""Counts the damaged events and results."""


def count_damaged_blocking(settings: Settings) -> int:
    """Return how many events and results in the file are damaged; 0 if there is no such database,
    or all of it is.
    """
    path = settings.data_dir / DATABASE
    if settings.database_url is not None or not path.exists():
        return 0
    try:
        with closing(look_at_blocking(path)) as connection:
            return int(connection.execute(UNREADABLE).fetchone()[0])
    except (sqlite3.Error, UnicodeDecodeError):  # opening it reports that
        return 0
