"""What was forgotten, known by its id alone, and the intents that tell of an item.

A turn may run on while something that it was shown is forgotten. What it records afterwards is known by
these ids, and is recorded as forgotten, too.
"""

import json
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from memory.clock import rfc3339
from memory.stores.sqlite.database import Database

_ID: Final = re.compile(r"(?:epi|not|cas)_[0-9A-Za-z]{1,100}")
_CASE_TOOLS: Final = "tool.mcp__memory_case__"
_TELL: Final = (
    "(key LIKE 'memory.%' AND EXISTS (SELECT 1 FROM json_each(payload, '$.ids') AS one"
    " WHERE one.value IN (SELECT value FROM json_each(:ids)))"
    " OR key LIKE 'tool.mcp\\_\\_memory\\_case\\_\\_%' ESCAPE '\\'"
    " AND EXISTS (SELECT 1 FROM json_each(:ids) AS one WHERE instr(payload, one.value) > 0))"
)
"""What tells of an item by its id: that it went into a prompt, and the tools that write and show cases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """The intents that tell of items, and up to which place of the chronicle they were looked for."""

    intent_ids: tuple[str, ...]
    up_to: int


async def telling_of(
    database: Database, item_ids: Sequence[str], owner_id: str | None = None
) -> Telling:
    """Find the intents that tell of items; None: whoever's they are.

    It reads much, so no transaction waits for it: `telling_since_blocking` finds there what came since.
    """
    last = await database.row("SELECT max(seq) AS seq FROM intents")
    up_to = int(last["seq"] or 0) if last is not None else 0
    rows = await database.rows(
        f"SELECT id FROM intents WHERE seq <= :up_to"  # noqa: S608  words of our own
        f" AND (:owner IS NULL OR owner_id = :owner) AND {_TELL}",
        {"up_to": up_to, "owner": owner_id, "ids": json.dumps(item_ids)},
    )
    return Telling(intent_ids=tuple(row["id"] for row in rows), up_to=up_to)


def telling_since_blocking(
    connection: sqlite3.Connection,
    known: Telling,
    item_ids: Sequence[str],
    owner_id: str | None = None,
) -> list[str]:
    """Give what is known to tell of items, and what came since then, within the caller's transaction."""
    rows = connection.execute(
        f"SELECT id FROM intents WHERE seq > :up_to"  # noqa: S608  words of our own
        f" AND (:owner IS NULL OR owner_id = :owner) AND {_TELL}",
        {"up_to": known.up_to, "owner": owner_id, "ids": json.dumps(item_ids)},
    )
    return [*known.intent_ids, *(row["id"] for row in rows)]


def note_forgotten_blocking(
    connection: sqlite3.Connection, item_ids: Sequence[str], now: datetime
) -> None:
    """Note within the caller's transaction that these are forgotten."""
    connection.executemany(
        "INSERT OR REPLACE INTO forgotten_items (item_id, forgotten_at) VALUES (?, ?)",
        [(one, rfc3339(now)) for one in item_ids],
    )


def forgotten_at_blocking(
    connection: sqlite3.Connection, key: str, payload: str, occurred_at: datetime
) -> str | None:
    """Tell when something was forgotten of which an intent tells; None: it tells of no such thing.

    What came back under its id, a note say, is told again from then on.
    """
    if not key.startswith(("memory.", _CASE_TOOLS)):
        return None
    row = connection.execute(
        "SELECT max(forgotten_at) AS at FROM forgotten_items"
        " WHERE item_id IN (SELECT value FROM json_each(?))"
        " AND (forgotten_at >= ? OR item_id NOT IN (SELECT id FROM items))",
        (json.dumps(_ID.findall(payload)), rfc3339(occurred_at)),
    ).fetchone()
    return None if row["at"] is None else str(row["at"])


async def is_any_forgotten(database: Database, item_ids: Sequence[str]) -> bool:
    """Whether one of these was forgotten and has not come back."""
    row = await database.row(
        "SELECT 1 FROM forgotten_items WHERE item_id IN (SELECT value FROM json_each(?))"
        " AND item_id NOT IN (SELECT id FROM items)",
        (json.dumps(item_ids),),
    )
    return row is not None
