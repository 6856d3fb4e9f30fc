"""Find the conversations that contain words, on PostgreSQL: by an index of grams, then the texts.

The table `search_texts` holds each text with its case folded, and its grams. Queued and running
turns are few and are not in it.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from gateway.conversations.model import TextMatch, Turn
from gateway.conversations.sql.excerpts import Copy, excerpt
from gateway.ids import ConversationId, TurnId, UserId
from gateway.jsonsafe import clean_text
from memory.stores.database import Connection
from memory.stores.sqlite.grams import grams, grams_within
from memory.stores.sqlite.query_words import LOOKED_UP, holds, words_of
from memory.stores.sqlite.statements import IN_IDS, id_list

_TITLE: Final = (
    "SELECT c.title, c.user_id, s.folded FROM conversations c LEFT JOIN search_texts s"
    " ON s.conversation_id = c.id AND s.turn_id IS NULL WHERE c.id = ?"
)
_PUT_TITLE: Final = (
    "INSERT INTO search_texts (conversation_id, folded, grams) VALUES (?, ?, ?)"
    " ON CONFLICT (conversation_id) WHERE turn_id IS NULL"
    " DO UPDATE SET folded = excluded.folded, grams = excluded.grams"
)
_PUT_TURN: Final = (
    "INSERT INTO search_texts (conversation_id, turn_id, folded, grams)"
    " SELECT conversation_id, id, :folded, :grams FROM turns WHERE id = :id"
    " ON CONFLICT (turn_id) DO UPDATE SET folded = excluded.folded, grams = excluded.grams"
)
_COPY: Final = (
    "INSERT INTO search_texts (conversation_id, turn_id, folded, grams)"
    " SELECT :target, :id, folded, array_prepend(:owner, grams[2:])"
    " FROM search_texts WHERE turn_id = :copied"
)


class StoredTextIndex:
    """See `TextIndex`. The first gram of each text is that of its owner."""

    def title_changed_blocking(self, writer: Connection, conversation_id: ConversationId) -> None:
        row = writer.execute(_TITLE, (conversation_id,)).fetchone()
        if row is None or (row["folded"] or "") == row["title"].casefold():
            return
        writer.execute(_PUT_TITLE, (conversation_id, *_indexed(row["title"], row["user_id"])))

    def turns_ended_blocking(self, writer: Connection, turns: Sequence[Turn]) -> None:
        ended = [turn for turn in turns if turn.state == "completed"]
        said = [(turn.id, turn.user_id, turn.message, turn.result) for turn in ended]
        self.put_turns_blocking(writer, said)

    def put_turns_blocking(
        self, writer: Connection, turns: Iterable[tuple[str, str, str, Any]]
    ) -> None:
        """Index completed turns: each an id, its user, its message and its result."""
        rows: list[dict[str, Any]] = []
        for turn_id, user_id, message, result in turns:
            folded, own = _indexed(_said(message, result), user_id)
            rows.append({"id": turn_id, "folded": folded, "grams": own})
        writer.executemany(_PUT_TURN, rows)

    def turns_copied_blocking(self, writer: Connection, copies: Sequence[Copy]) -> None:
        writer.executemany(_COPY, [{**copy, "owner": grams("", copy["user"])} for copy in copies])

    def matching_blocking(
        self, reader: Connection, user_id: UserId, query: str
    ) -> tuple[str, list[Any]]:
        words = words_of(query)
        rows = reader.execute(
            "SELECT conversation_id, message FROM turns"
            " WHERE user_id = ? AND state IN ('queued', 'running')",
            (user_id,),
        )
        unended = [row["conversation_id"] for row in rows if holds(row["message"], words)]
        condition = f"s.conversation_id = c.id AND {_holding(words)}"
        values: list[Any] = [*words]
        within = sorted(set().union(*map(grams_within, words[:LOOKED_UP])))
        if within:
            condition += " AND s.grams @> ?"
            values.append([grams("", user_id), *within])
        return (
            f"(EXISTS (SELECT 1 FROM search_texts s WHERE {condition}) OR c.id = ANY (?))",  # noqa: S608
            [*values, unended],
        )

    def find_blocking(
        self, reader: Connection, conversation_id: ConversationId, query: str, *, limit: int
    ) -> Sequence[TextMatch]:
        words = words_of(query)
        rows = reader.execute(
            "SELECT t.id, CASE WHEN s.id IS NULL THEN t.message END AS message FROM turns t"  # noqa: S608
            " LEFT JOIN search_texts s ON s.turn_id = t.id"
            " WHERE t.conversation_id = ? AND t.state != 'withdrawn'"
            f" AND (s.id IS NULL OR {_holding(words)}) ORDER BY t.seq DESC",
            (conversation_id, *words),
        )
        holding = [
            row["id"] for row in rows if row["message"] is None or holds(row["message"], words)
        ]
        ids = holding[:limit]
        found = reader.execute(
            f"SELECT id, message, result FROM turns WHERE id IN {IN_IDS}",  # noqa: S608
            {"ids": id_list(ids)},
        )
        texts = {row["id"]: (row["message"], row["result"]) for row in found}
        return [
            excerpt(TurnId(turn_id), message, _reply(result and json.loads(result)), query)
            for turn_id in ids
            for message, result in [texts[turn_id]]
        ]


def _holding(words: Sequence[str]) -> str:
    """Return the condition that a text holds all of these words, which are its values."""
    return " AND ".join(["strpos(s.folded, ?) > 0"] * len(words))


def _said(message: str, result: Any) -> str:
    """Return the text of a turn, as the other engine's index has it."""
    return clean_text(f"{message}\n{_reply(result)}")


def _reply(result: Any) -> str:
    reply = result.get("reply") if isinstance(result, dict) else None
    return reply if isinstance(reply, str) else ""


def _indexed(text: str, owner: str) -> tuple[str, list[str]]:
    return text.casefold(), grams(text, owner).split(" ")
