"""The ids of forgotten items, and the intents that mention an item.

A turn may run on while something that it was shown is forgotten. What it records afterwards is
recognised by these ids and recorded as forgotten, too.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from memory.clock import rfc3339
from memory.stores.database import Connection, SqlDatabase

_ID: Final = re.compile(r"(?:epi|not|cas|fac|trn)_[0-9A-Za-z]{1,100}")
_TOOLS: Final = ("tool.mcp__memory__", "tool.mcp__memory_case__")
_OF_MEMORY: Final = ("memory.", *_TOOLS)
_WORDS_OF_TURN: Final = ("turn.", "llm.")
_MENTION: Final = (
    "(key LIKE 'memory.%' AND EXISTS (SELECT 1 FROM json_each(payload, '$.ids') AS one"
    " WHERE one.value IN (SELECT value FROM json_each(:ids)))"
    " OR (glob('tool.mcp__memory__*', key) OR glob('tool.mcp__memory_case__*', key))"
    " AND EXISTS (SELECT 1 FROM json_each(:needles) AS one WHERE instr(payload, one.value) > 0))"
)
"""An intent mentions an item by its id: it went into a prompt, or a tool of memory wrote or showed
it. A tool may also have been asked for its words."""
_FORGOTTEN_MENTIONS: Final = (
    "SELECT payload FROM intents WHERE turn_id = ?"
    " AND forgotten_at IS NOT NULL AND payload IS NOT NULL"
    " AND (key LIKE 'memory.%' OR glob('tool.mcp__memory__*', key)"
    " OR glob('tool.mcp__memory_case__*', key))"
)
"""Of a turn, what was recorded after something in it was forgotten or deleted."""
_LEAST_WORDS: Final = 6
"""Characters; shorter words may stand for something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mentions:
    """The intents that mention items, up to a place in the chronicle."""

    intent_ids: tuple[str, ...]
    up_to: int
    words: tuple[str, ...] = ()
    """The words of the items, as a tool may have been asked for them."""


async def find_mentions(
    database: SqlDatabase,
    item_ids: Sequence[str],
    owner_id: str | None = None,
    words: Iterable[str] = (),
) -> Mentions:
    """Return the intents of an owner, or of all, that mention items or have some of the `words` as
    they stand.

    This reads much, so it runs outside of any transaction; `mentions_since_blocking` adds what came
    since.
    """
    if not item_ids:
        return Mentions(intent_ids=(), up_to=0)
    up_to = int(await database.scalar("SELECT coalesce(max(seq), 0) FROM intents"))
    asked = [text.strip(" .。!！") for text in words]
    known = Mentions(
        intent_ids=(),
        up_to=up_to,
        words=tuple(text for text in dict.fromkeys(asked) if len(text) >= _LEAST_WORDS),
    )
    rows = await database.rows(*_mentions("<=", known, item_ids, owner_id))
    return replace(known, intent_ids=tuple(row["id"] for row in rows))


def mentions_since_blocking(
    connection: Connection,
    known: Mentions,
    item_ids: Sequence[str],
    owner_id: str | None = None,
) -> list[str]:
    """Return the known mentions of items and those since, within the caller's transaction."""
    if not item_ids:
        return []
    rows = connection.execute(*_mentions(">", known, item_ids, owner_id))
    return [*known.intent_ids, *(row["id"] for row in rows)]


def _mentions(
    than: str, known: Mentions, item_ids: Sequence[str], owner_id: str | None
) -> tuple[str, dict[str, object]]:
    sql = (
        f"SELECT id FROM intents WHERE seq {than} :up_to"  # noqa: S608  words of our own
        f" AND (CAST(:owner AS TEXT) IS NULL OR owner_id = :owner) AND {_MENTION}"
    )
    written = [json.dumps(text, ensure_ascii=False)[1:-1] for text in known.words]
    return sql, {
        "up_to": known.up_to,
        "owner": owner_id,
        "ids": json.dumps(item_ids),
        "needles": json.dumps([*item_ids, *written]),
    }


def without_words(key: str, payload: str) -> str:
    """Return what stays of an intent's payload when it is emptied: the ids of items, if it is of
    memory. In others any word may look like an id.
    """
    return json.dumps({"ids": ids_in(payload) if key.startswith(_OF_MEMORY) else []})


def ids_in(payload: str) -> list[str]:
    """Return the ids of items that stand in the payload of an intent."""
    return _ID.findall(payload)


def note_forgotten_blocking(
    connection: Connection, item_ids: Sequence[str], now: datetime, *, was_deleted: bool = False
) -> None:
    """Store the ids of forgotten items, within the caller's transaction.

    With `was_deleted` they went with their conversation, and nobody asked to forget them.
    """
    connection.executemany(
        "INSERT INTO forgotten_items (item_id, forgotten_at, was_deleted) VALUES (?, ?, ?)"
        " ON CONFLICT (item_id) DO UPDATE SET forgotten_at = excluded.forgotten_at,"
        " was_deleted = forgotten_items.was_deleted * excluded.was_deleted",
        [(item_id, rfc3339(now), int(was_deleted)) for item_id in item_ids],
    )


def is_forgotten_blocking(connection: Connection, item_id: str) -> bool:
    """Return whether an item was forgotten, or deleted with its conversation."""
    sql = "SELECT 1 FROM forgotten_items WHERE item_id = ?"
    return connection.execute(sql, (item_id,)).fetchone() is not None


def forgotten_at_blocking(
    connection: Connection,
    key: str,
    payload: str,
    turn_id: str | None,
    occurred_at: datetime,
) -> str | None:
    """Return when what this intent says was forgotten; None if it was not.

    That is the item that it mentions, or the turn whose message or answer it holds; of an answer
    also what a person forgot of that which the turn was shown or found, as the intents before it
    say. What came back under its id, such as a note, counts again from then on.
    """
    shown: list[str] = []
    if key.startswith(_OF_MEMORY):
        ids = ids_in(payload)
    elif key.startswith(_WORDS_OF_TURN) and turn_id is not None:
        ids = [turn_id]
        if key.startswith("llm.") or key == "turn.completed":
            rows = connection.execute(_FORGOTTEN_MENTIONS, (turn_id,))
            shown = [item_id for row in rows for item_id in ids_in(row["payload"])]
    else:
        return None
    row = connection.execute(
        "SELECT max(forgotten_at) AS at FROM forgotten_items"
        " WHERE (item_id IN (SELECT value FROM json_each(?))"
        " OR was_deleted = 0 AND item_id IN (SELECT value FROM json_each(?)))"
        " AND (forgotten_at >= ? OR item_id NOT IN (SELECT id FROM items))",
        (json.dumps(ids), json.dumps(shown), rfc3339(occurred_at)),
    ).fetchone()
    return None if row["at"] is None else str(row["at"])
