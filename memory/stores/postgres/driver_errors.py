"""Translates psycopg's errors into those of the stores, in words that name no address and no user
of the database.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg

from memory.errors import StoreConflict, StoreDamaged, StoreUnavailable

_REASONS: Final = {
    "25006": "it is read-only",
    "28": "it refused the user or the password",
    "3D000": "there is no database of that name",
    "42501": "the user may not do that",
    "42P01": "a table is missing",
    "42703": "a column is missing",
    "40": "others wrote the same at the same time",
    "53100": "its disk is full",
    "53200": "it has no memory left",
    "53300": "it has no connection left",
    "55P03": "another program holds it",
    "57": "it is being stopped or started",
    "58": "its disk failed",
    "XX": "it is damaged",
}
"""By SQLSTATE, or by the class of one."""
_DAMAGED: Final = frozenset({"42P01", "42703", "XX001", "XX002"})
_UNREACHABLE: Final = "it cannot be reached"
_NOT_OPENED: Final = (
    "it cannot be reached, or it refuses the user, the password or the database's name of the "
    "address; PostgreSQL's log says which"
)
"""A connection that fails has no SQLSTATE, and the server's text is in its own language."""


@contextmanager
def translating_errors(doing: str) -> Iterator[None]:
    """Raise a store's error for the driver's; `doing` is a participle, such as "read"."""
    try:
        yield
    except psycopg.IntegrityError as exc:
        raise StoreConflict("What is stored already contradicts this.") from exc
    except psycopg.Error as exc:
        error = StoreDamaged if exc.sqlstate in _DAMAGED else StoreUnavailable
        reason = _reason(exc, _NOT_OPENED if doing == "opened" else _UNREACHABLE)
        raise error(f"The database cannot be {doing}: {reason}.") from exc


def _reason(exc: psycopg.Error, unreachable: str) -> str:
    if exc.sqlstate is None:
        is_lost = isinstance(exc, psycopg.OperationalError | psycopg.InterfaceError)
        return unreachable if is_lost else "it failed"
    state = exc.sqlstate
    default = _UNREACHABLE if state.startswith("08") else "it failed"
    return _REASONS.get(state) or _REASONS.get(state[:2], default)
