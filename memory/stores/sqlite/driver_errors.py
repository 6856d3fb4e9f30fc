"""Translates SQLite's errors into those of the stores, in words that name no path
of this machine.
"""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from memory.errors import StoreConflict, StoreDamaged, StoreUnavailable

_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_REASONS: Final[dict[int | None, str]] = {
    sqlite3.SQLITE_BUSY: "another process holds it",
    sqlite3.SQLITE_LOCKED: "another process holds it",
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_PERM: "it is read-only",
    sqlite3.SQLITE_IOERR: "the disk failed or is full",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_CORRUPT: "it is damaged",
    sqlite3.SQLITE_NOTADB: "it is damaged or something else",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_NOMEM: "there is no memory left",
}


@contextmanager
def translating_errors(doing: str) -> Iterator[None]:
    """Raise a store's error for the driver's; `doing` is a participle, such as "read"."""
    try:
        yield
    except OSError as exc:  # of the file itself, before SQLite sees it
        is_full = exc.errno in {errno.ENOSPC, errno.EDQUOT}
        reason = _REASONS[sqlite3.SQLITE_FULL] if is_full else exc.strerror
        raise StoreUnavailable(f"The database cannot be {doing}: {reason}.") from exc
    except sqlite3.IntegrityError as exc:
        raise StoreConflict("What is stored already contradicts this.") from exc
    except UnicodeDecodeError as exc:  # SQLite's message quotes the file
        raise StoreDamaged(f"The database cannot be {doing}: it is damaged.") from exc
    except sqlite3.Error as exc:
        code = getattr(exc, "sqlite_errorcode", None)
        primary = code & 0xFF if isinstance(code, int) else None
        if _is_foreign(str(exc)):
            primary = sqlite3.SQLITE_CORRUPT
        error = StoreDamaged if primary in _DAMAGED else StoreUnavailable
        reason = _REASONS.get(primary, "it failed")
        raise error(f"The database cannot be {doing}: {reason}.") from exc


def _is_foreign(message: str) -> bool:
    """Return whether the file holds text or a schema that this program did not write.

    These have no error code of their own. The statements are fixed, so a table or a column can be
    missing only from the file.
    """
    signs = ("Could not decode", "no such table", "no such column")
    return message.startswith(signs) or " has no column" in message
