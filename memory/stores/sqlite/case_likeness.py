"""Makes likenesses and fingerprints of stored cases anew where the rules for them have changed.

They are what a case that was found wrong is known by when it is told again: made by other rules than
those of today, it would come back as a new one.
"""

import hashlib
import logging
import sqlite3
from collections.abc import Sequence
from functools import partial
from importlib.resources import files
from typing import Any, Final

import anyio.to_thread

from memory.cases.item import fingerprint_of, likeness_of
from memory.errors import StoreDamaged, StoreUnavailable
from memory.stores.sqlite.case_rows import read_case
from memory.stores.sqlite.database import Database

_AT_ONCE: Final = 200
_PACKAGE: Final = "memory.cases"
_RULES: Final = ("agreement.py", "codes.py", "item.py", "lexicon.py", "lines.py", "wording.py")
"""What a likeness and a fingerprint are made by; as it is written, so that no change of it is overlooked."""

_log = logging.getLogger(__name__)


def rules_digest_blocking() -> bytes:
    """Give what stands for the present rules."""
    digest = hashlib.sha256()
    for name in _RULES:
        digest.update(files(_PACKAGE).joinpath(name).read_bytes())
    return digest.digest()


async def renew_likenesses(database: Database) -> None:
    """Bring all cases to the present rules, a few at a time, before anything is decided by them.

    Cut short, or where it cannot be written, it begins anew at the next opening.
    """
    rules = await anyio.to_thread.run_sync(rules_digest_blocking)
    try:
        known = await database.row("SELECT digest FROM case_likeness_rules")
        if known is not None and known["digest"] == rules:
            return
        await _renew(database)
        await database.write(partial(_note_blocking, rules=rules))
    except StoreUnavailable:  # what is there is still found and read
        _log.warning("case_likenesses_not_renewed", exc_info=True)


async def _renew(database: Database) -> None:
    after = ""
    while rows := await database.rows(
        "SELECT case_id, revision, fingerprint, likeness, value FROM cases"
        " WHERE case_id > ? ORDER BY case_id LIMIT ?",
        (after, _AT_ONCE),
    ):
        after = str(rows[-1]["case_id"])
        told = [tuple(one) for one in rows]
        if changed := await anyio.to_thread.run_sync(_changed, told):
            await database.write(partial(_put_blocking, changed=changed))


def _changed(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Give the present fingerprint and likeness of those that have others."""
    changed: list[tuple[Any, ...]] = []
    for case_id, revision, *known, value in rows:
        try:
            case = read_case(value)
        except StoreDamaged:
            _log.warning("case_not_readable", extra={"case_id": case_id})
            continue
        present = [fingerprint_of(case.content, case.scope), likeness_of(case.content, case.scope)]
        if present != known:
            changed.append((*present, case_id, revision))
    return changed


def _put_blocking(connection: sqlite3.Connection, changed: Sequence[tuple[Any, ...]]) -> None:
    connection.executemany(
        "UPDATE cases SET fingerprint = ?, likeness = ? WHERE case_id = ? AND revision = ?", changed
    )


def _note_blocking(connection: sqlite3.Connection, rules: bytes) -> None:
    connection.execute("DELETE FROM case_likeness_rules")
    connection.execute("INSERT INTO case_likeness_rules VALUES (?)", (rules,))
