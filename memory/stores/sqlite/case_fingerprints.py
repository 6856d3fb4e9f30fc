"""Recomputes the fingerprints of stored cases when their rules have changed.

A rejected case is recognised by its fingerprint when it is reported again. With a fingerprint made
by older rules it would come back as a new case.
"""

import hashlib
import logging
import sqlite3
from functools import partial
from importlib.resources import files
from typing import Final

import anyio.to_thread

from memory.cases.fingerprint import fingerprint_of
from memory.errors import StoreDamaged, StoreUnavailable
from memory.stores.sqlite.case_rows import read_case
from memory.stores.sqlite.database import Database

_RULES: Final = files("memory.cases").joinpath("fingerprint.py")

_log = logging.getLogger(__name__)


def rules_digest_blocking() -> bytes:
    """Return a digest of the rules' source, so that no change of them is overlooked."""
    return hashlib.sha256(_RULES.read_bytes()).digest()


async def renew_fingerprints(database: Database) -> None:
    """Recompute fingerprints made by other rules in one transaction, before any report is compared.

    The next opening repeats it if it is interrupted or the database cannot be written.
    """
    rules = await anyio.to_thread.run_sync(rules_digest_blocking)
    try:
        if await database.scalar("SELECT digest FROM case_fingerprint_rules") != rules:
            await database.write(partial(_renew_blocking, rules=rules))
    except StoreUnavailable:  # what is there is still found and read
        _log.warning("case_fingerprints_not_renewed", exc_info=True)


def _renew_blocking(connection: sqlite3.Connection, rules: bytes) -> None:
    for case_id, value in connection.execute("SELECT case_id, value FROM cases").fetchall():
        try:
            case = read_case(value)
        except StoreDamaged:
            _log.warning("case_not_readable", extra={"case_id": case_id})
            continue
        connection.execute(
            "UPDATE cases SET fingerprint = ? WHERE case_id = ?",
            (fingerprint_of(case.content, case.scope), case_id),
        )
    connection.execute("DELETE FROM case_fingerprint_rules")
    connection.execute("INSERT INTO case_fingerprint_rules VALUES (?)", (rules,))
