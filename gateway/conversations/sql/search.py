"""Find the conversations that contain words, on SQLite: candidates from FTS5, then the texts.

The index finds rare texts without reading others. A text that many messages contain fills a page
from the newest conversations, so the messages are read in that order instead.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

from gateway.conversations.model import TextMatch, Turn
from gateway.conversations.sql.excerpts import Copy, excerpt
from gateway.ids import ConversationId, TurnId, UserId
from memory.stores.database import Connection, Row
from memory.stores.sqlite.grams import gram_query
from memory.stores.sqlite.query_words import LOOKED_UP, words_of

_MAX_CANDIDATES: Final = 1000

_REPLY: Final = (
    "CASE WHEN json_valid(t.result) THEN coalesce(t.result ->> '$.reply', '') ELSE '' END"
)
SAID: Final = f"t.message || char(10) || {_REPLY}"
"""The text of a turn, as the index has it if the turn is completed."""

# No LIKE: it has wildcards, ends at a NUL and refuses long patterns.
_IN_ANY: Final = (
    "(holds_words(c.title, ?) OR EXISTS (SELECT 1 FROM turns t WHERE t.conversation_id = c.id"  # noqa: S608
    f" AND t.state != 'withdrawn' AND holds_words({SAID}, ?)))"
)
_IN_CANDIDATES: Final = (
    "c.id IN (SELECT t.id FROM json_each(?) one CROSS JOIN conversations t"  # noqa: S608
    " ON t.id = one.value AND holds_words(t.title, ?)"
    " UNION SELECT t.conversation_id FROM json_each(?) one CROSS JOIN turns t"
    f" ON t.id = one.value AND holds_words({SAID}, ?)"
    " UNION SELECT conversation_id FROM turns"
    " WHERE state IN ('queued', 'running') AND holds_words(message, ?))"
)


class TriggeredTextIndex:
    """See `TextIndex`. Triggers write it, but for turns that are inserted as completed."""

    def title_changed_blocking(self, writer: Connection, conversation_id: ConversationId) -> None:
        """Do nothing."""

    def turns_ended_blocking(self, writer: Connection, turns: Sequence[Turn]) -> None:
        """Do nothing."""

    def turns_copied_blocking(self, writer: Connection, copies: Sequence[Copy]) -> None:
        if not copies:
            return
        target = copies[0]["target"]
        writer.execute(
            "INSERT INTO search_texts (conversation_id, turn_id)"
            " SELECT conversation_id, id FROM turns WHERE conversation_id = ?",
            (target,),
        )
        writer.execute(
            f"INSERT INTO search_words (rowid, grams) SELECT s.id, grams({SAID}, t.user_id)"  # noqa: S608
            " FROM turns t CROSS JOIN search_texts s ON s.turn_id = t.id"
            " WHERE t.conversation_id = ?",
            (target,),
        )

    def matching_blocking(
        self, reader: Connection, user_id: UserId, query: str
    ) -> tuple[str, list[Any]]:
        words = words_of(query)
        wanted = " ".join(words)
        found = _candidates_blocking(reader, user_id, words[:LOOKED_UP])
        if found is None:
            return _IN_ANY, [wanted] * 2
        titles = json.dumps([row["conversation_id"] for row in found if row["turn_id"] is None])
        turns = json.dumps([row["turn_id"] for row in found if row["turn_id"] is not None])
        return _IN_CANDIDATES, [titles, wanted, turns, wanted, wanted]

    def find_blocking(
        self, reader: Connection, conversation_id: ConversationId, query: str, *, limit: int
    ) -> Sequence[TextMatch]:
        wanted = " ".join(words_of(query))
        rows = reader.execute(
            f"SELECT id, message, {_REPLY} AS reply FROM turns t WHERE conversation_id = ?"  # noqa: S608
            f" AND state != 'withdrawn' AND holds_words({SAID}, ?) ORDER BY seq DESC LIMIT ?",
            (conversation_id, wanted, limit),
        )
        return [excerpt(TurnId(row["id"]), row["message"], row["reply"], query) for row in rows]


def _candidates_blocking(
    reader: Connection, user_id: UserId, words: Sequence[str]
) -> list[Row] | None:
    """Return the texts that may hold these words; None if there are too many."""
    terms = [term for word in words if (term := gram_query(word, user_id)) is not None]
    if not terms:
        return None
    found = reader.execute(
        "SELECT s.conversation_id, s.turn_id FROM search_words w"
        " CROSS JOIN search_texts s ON s.id = w.rowid WHERE search_words MATCH ? LIMIT ?",
        (" AND ".join(terms), _MAX_CANDIDATES + 1),
    ).fetchall()
    return found if len(found) <= _MAX_CANDIDATES else None
