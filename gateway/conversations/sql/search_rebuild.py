"""Makes the search index of conversations again from their texts."""

import json
from typing import Any, Final

from gateway.conversations.sql.search import SAID
from gateway.conversations.sql.stored_texts import StoredTextIndex
from memory.stores.database import Connection, engine_of

_AT_ONCE: Final = 500
_FILL: Final = f"""
INSERT INTO search_texts (conversation_id) SELECT id FROM conversations WHERE title != '';
INSERT INTO search_texts (conversation_id, turn_id)
  SELECT conversation_id, id FROM turns WHERE state = 'completed';
INSERT INTO search_words (rowid, grams) SELECT s.id, grams(c.title, c.user_id)
  FROM search_texts s JOIN conversations c ON c.id = s.conversation_id WHERE s.turn_id IS NULL;
INSERT INTO search_words (rowid, grams) SELECT s.id, grams({SAID}, t.user_id)
  FROM search_texts s JOIN turns t ON t.id = s.turn_id
"""  # noqa: S608  names of our own


def rebuild_search_blocking(writer: Connection) -> None:
    """Fill the empty index of titles and completed turns, in the transaction that is open."""
    if engine_of(writer) == "sqlite":
        for statement in _FILL.split(";"):
            writer.execute(statement)
        return
    index = StoredTextIndex()
    for row in writer.execute("SELECT id FROM conversations WHERE title != ''").fetchall():
        index.title_changed_blocking(writer, row["id"])
    after = 0
    while rows := _completed_blocking(writer, after):
        index.put_turns_blocking(
            writer,
            [(row["id"], row["user_id"], row["message"], _result(row["result"])) for row in rows],
        )
        after = rows[-1]["place"]


def _completed_blocking(writer: Connection, after: int) -> list[Any]:
    return writer.execute(
        "SELECT rowid AS place, id, user_id, message, result FROM turns"
        " WHERE state = 'completed' AND rowid > ? ORDER BY rowid LIMIT ?",
        (after, _AT_ONCE),
    ).fetchall()


def _result(stored: str | None) -> Any:
    """Return a result; None for a damaged one, which has no reply."""
    try:
        return stored and json.loads(stored)
    except ValueError:
        return None
