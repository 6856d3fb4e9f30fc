"""Find the conversations that contain a text: candidates from the full-text index, then the texts.

The index finds rare texts without reading others. A text that many messages contain fills a page
from the newest conversations, so the messages are read in that order instead.
"""

import json
import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from gateway.conversations.model import TextMatch
from gateway.ids import ConversationId, TurnId, UserId
from memory.stores.sqlite.grams import gram_query

_MAX_CANDIDATES: Final = 1000
_AROUND_CHARS: Final = 60
"""How much of a message is shown on either side of what was found."""

_REPLY: Final = (
    "CASE WHEN json_valid(t.result) THEN coalesce(t.result ->> '$.reply', '') ELSE '' END"
)
_SAID: Final = f"t.message || char(10) || {_REPLY}"
"""The text of a turn, as the index has it if the turn is completed."""

# `instr`, because LIKE has wildcards, ends at a NUL and refuses long patterns.
_IN_ANY: Final = (
    "(instr(casefold(c.title), ?) OR EXISTS (SELECT 1 FROM turns t WHERE t.conversation_id = c.id"  # noqa: S608
    f" AND t.state != 'withdrawn' AND instr(casefold({_SAID}), ?)))"
)
_IN_CANDIDATES: Final = (
    "c.id IN (SELECT t.id FROM json_each(?) one CROSS JOIN conversations t"  # noqa: S608
    " ON t.id = one.value AND instr(casefold(t.title), ?)"
    " UNION SELECT t.conversation_id FROM json_each(?) one CROSS JOIN turns t"
    f" ON t.id = one.value AND instr(casefold({_SAID}), ?)"
    " UNION SELECT conversation_id FROM turns"
    " WHERE state IN ('queued', 'running') AND instr(casefold(message), ?))"
)


def index_copies_blocking(writer: sqlite3.Connection, conversation_id: ConversationId) -> None:
    """Index the turns of a conversation that were inserted as completed; triggers
    index the others.
    """
    writer.execute(
        "INSERT INTO search_texts (conversation_id, turn_id)"
        " SELECT conversation_id, id FROM turns WHERE conversation_id = ?",
        (conversation_id,),
    )
    writer.execute(
        f"INSERT INTO search_words (rowid, grams) SELECT s.id, grams({_SAID}, t.user_id)"  # noqa: S608
        " FROM turns t CROSS JOIN search_texts s ON s.turn_id = t.id WHERE t.conversation_id = ?",
        (conversation_id,),
    )


def matching_blocking(
    reader: sqlite3.Connection, user_id: UserId, query: str
) -> tuple[str, list[str]]:
    """Return when a user's conversation holds `query`, letter case ignored: a condition on
    `conversations c`, its values.
    """
    folded = query.casefold()
    found = _candidates_blocking(reader, user_id, query)
    if found is None:
        return _IN_ANY, [folded] * 2
    titles = json.dumps([row["conversation_id"] for row in found if row["turn_id"] is None])
    turns = json.dumps([row["turn_id"] for row in found if row["turn_id"] is not None])
    return _IN_CANDIDATES, [titles, folded, turns, folded, folded]


def _candidates_blocking(
    reader: sqlite3.Connection, user_id: UserId, query: str
) -> list[sqlite3.Row] | None:
    """Return the texts that may hold `query`; None if there are too many."""
    wanted = gram_query(query, user_id)
    if wanted is None:
        return None
    found = reader.execute(
        "SELECT s.conversation_id, s.turn_id FROM search_words w"
        " CROSS JOIN search_texts s ON s.id = w.rowid WHERE search_words MATCH ? LIMIT ?",
        (wanted, _MAX_CANDIDATES + 1),
    ).fetchall()
    return found if len(found) <= _MAX_CANDIDATES else None


def matches_blocking(
    reader: sqlite3.Connection, conversation_ids: Sequence[ConversationId], query: str
) -> dict[ConversationId, TextMatch]:
    """See `ConversationStore.matches`."""
    return {
        conversation_id: found[0]
        for conversation_id in conversation_ids
        if (found := find_blocking(reader, conversation_id, query, limit=1))
    }


def find_blocking(
    reader: sqlite3.Connection, conversation_id: ConversationId, query: str, *, limit: int
) -> Sequence[TextMatch]:
    """See `ConversationStore.find`."""
    folded = query.casefold()
    rows = reader.execute(
        f"SELECT id, message, {_REPLY} AS reply FROM turns t WHERE conversation_id = ?"  # noqa: S608
        f" AND state != 'withdrawn' AND instr(casefold({_SAID}), ?) ORDER BY seq DESC LIMIT ?",
        (conversation_id, folded, limit),
    )
    return [excerpt(TurnId(row["id"]), row["message"], row["reply"], folded) for row in rows]


def excerpt(turn_id: TurnId, message: str, reply: str, folded: str) -> TextMatch:
    """Return the first place where a turn holds `folded`, which it does if letter
    case is ignored.
    """
    texts = (message, reply, f"{message}\n{reply}")
    text = next(text for text in texts if folded in text.casefold())
    at = text.casefold().index(folded)
    lengths = list(accumulate(map(len, map(str.casefold, text)), initial=0))
    start, end = bisect_right(lengths, at) - 1, bisect_left(lengths, at + len(folded))
    before, after = text[:start], text[end:]
    return TextMatch(
        turn_id=turn_id,
        before=("…" if len(before) > _AROUND_CHARS else "") + before[-_AROUND_CHARS:],
        text=text[start:end],
        after=after[:_AROUND_CHARS] + ("…" if len(after) > _AROUND_CHARS else ""),
    )
