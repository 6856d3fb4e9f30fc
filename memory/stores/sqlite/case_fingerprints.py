"""Recomputes the fingerprints of stored cases when their rules have changed.

A rejected case is recognised by its fingerprint when it is reported again. With a fingerprint made by
older rules it would come back as a new case.
"""

import hashlib
import logging
import sqlite3
from collections.abc import Sequence
from functools import partial
from importlib.resources import files
from typing import Any, Final

import anyio.to_thread

from memory.cases.fingerprint import fingerprint_of
from memory.errors import StoreDamaged, StoreUnavailable
from memory.stores.sqlite.case_rows import read_case
from memory.stores.sqlite.database import Database

_AT_ONCE: Final = 200
_RULES: Final = files("memory.cases").joinpath("fingerprint.py")

_log = logging.getLogger(__name__)


def rules_digest_blocking() -> bytes:
    """Return a digest of the rules' source, so that no change of them is overlooked."""
    return hashlib.sha256(_RULES.read_bytes()).digest()


async def renew_fingerprints(database: Database) -> None:
    """Recompute fingerprints made by other rules, a few at a time, before any report is compared.

    The next opening repeats it if it is interrupted or the database cannot be written.
    """
    rules = await anyio.to_thread.run_sync(rules_digest_blocking)
    try:
        known = await database.row("SELECT digest FROM case_fingerprint_rules")
        if known is not None and known["digest"] == rules:
            return
        await _renew(database)
        await database.write(partial(_note_blocking, rules=rules))
    except StoreUnavailable:  # what is there is still found and read
        _log.warning("case_fingerprints_not_renewed", exc_info=True)


async def _renew(database: Database) -> None:
    after = ""
    while rows := await database.rows(
        "SELECT case_id, revision, fingerprint, value FROM cases"
        " WHERE case_id > ? ORDER BY case_id LIMIT ?",
        (after, _AT_ONCE),
    ):
        after = str(rows[-1]["case_id"])
        if changed := await anyio.to_thread.run_sync(_changed, rows):
            await database.write(partial(_put_blocking, changed=changed))


def _changed(rows: Sequence[sqlite3.Row]) -> list[tuple[Any, ...]]:
    """Return the present fingerprint, id and revision of the cases that have another one."""
    changed: list[tuple[Any, ...]] = []
    for case_id, revision, known, value in rows:
        try:
            case = read_case(value)
        except StoreDamaged:
            _log.warning("case_not_readable", extra={"case_id": case_id})
            continue
        present = fingerprint_of(case.content, case.scope)
        if present != known:
            changed.append((present, case_id, revision))
    return changed


def _put_blocking(connection: sqlite3.Connection, changed: Sequence[tuple[Any, ...]]) -> None:
    connection.executemany(
        "UPDATE cases SET fingerprint = ? WHERE case_id = ? AND revision = ?", changed
    )


def _note_blocking(connection: sqlite3.Connection, rules: bytes) -> None:
    connection.execute("DELETE FROM case_fingerprint_rules")
    connection.execute("INSERT INTO case_fingerprint_rules VALUES (?)", (rules,))
