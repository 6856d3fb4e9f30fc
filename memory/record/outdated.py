"""What a turn may say of facts although it holds no longer: they were replaced, or a person has
changed their words since.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from memory.clock import rfc3339
from memory.intents.builders import id_of_memory_saved
from memory.record.turn_item import Outdated
from memory.stores.database import Connection, Row

_FACTS: Final = (
    "SELECT fact_id, facts.owner_id, told.conversation_id, told.revision, told.body,"
    " coalesce(saved_turn_id, told.turn_id) AS told_turn_id, later.body AS later"
    " FROM facts JOIN items AS told ON told.id = fact_id"
    " LEFT JOIN items AS later ON later.id = superseded_by"
    " WHERE fact_id IN (SELECT value FROM json_each(?))"
)
_SAVED: Final = (
    "SELECT id, payload, occurred_at FROM intents WHERE text IS NOT NULL"
    " AND id IN (SELECT value FROM json_each(?))"
)
_MOST_REVISIONS: Final = 50
"""Of one fact, the newest ones."""


def outdated_blocking(
    connection: Connection, item_ids: Sequence[str], since: datetime | None = None
) -> Outdated:
    """Return the facts among some items that were replaced, with what replaced them; with `since`
    also the words that facts lost after that moment, with what they say now.
    """
    outdated: list[tuple[str, str]] = []
    for row in connection.execute(_FACTS, (json.dumps(list(item_ids)),)).fetchall():
        text = _statement(row["body"])
        current = text if row["later"] is None else _statement(row["later"])
        before = [] if since is None else _edited_blocking(connection, row, since)
        olds = dict.fromkeys([*before, text])
        outdated += [(old, current) for old in olds if old != current]
    return outdated


def _edited_blocking(connection: Connection, row: Row, since: datetime) -> list[str]:
    """Return what a fact said until an edit after `since`, as the chronicle has it."""
    if row["revision"] <= 1:  # never edited
        return []
    ids = dict(_intents_of(row))
    rows = connection.execute(_SAVED, (json.dumps(list(ids)),)).fetchall()
    saved = sorted(rows, key=lambda intent: ids[intent["id"]], reverse=True)
    before: list[str] = []
    is_over = False
    for intent in saved:
        if is_over:
            before.append(str(json.loads(intent["payload"])["text"]))
        is_over = is_over or intent["occurred_at"] > rfc3339(since)
    return before


def _intents_of(row: Row) -> Iterator[tuple[str, int]]:
    """Yield the ids that the intents of a fact's revisions have; that of an imported one names no
    turn.
    """
    newest, owner_id, fact_id = row["revision"], row["owner_id"], row["fact_id"]
    conversation_id, turn_id = row["conversation_id"], row["told_turn_id"]
    for revision in range(max(1, newest - _MOST_REVISIONS), newest + 1):
        yield (
            id_of_memory_saved(owner_id, conversation_id, turn_id, fact_id, revision),
            revision,
        )
        yield id_of_memory_saved(owner_id, None, None, fact_id, revision), revision


def _statement(body: str) -> str:
    """Return the statement in the body of a fact's item, without the words that told it."""
    return body.partition("\n")[0]
