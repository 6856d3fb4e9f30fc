"""Find where the conversations of one line part.

A fork copies turns with their numbers and remembers of each the turn that was copied first. Two
conversations share the turns that have the same number and the same first one.
"""

from collections.abc import Iterator

from gateway.conversations.model import Branch, Conversation
from gateway.ids import ConversationId, TurnId
from memory.clock import from_rfc3339
from memory.stores.database import Connection, Row

_Turns = dict[int, tuple[str, str]]
"""A conversation's turns by number: the id, and the id of the turn that was copied first."""

_OTHERS = (
    "SELECT id, created_at FROM conversations WHERE coalesce(root_id, id) = ? AND user_id = ?"
    " AND id != ? ORDER BY last_activity_at DESC, id DESC"
)
_TURNS = (  # read off an index
    "SELECT seq, id, coalesce(copy_of, id) AS origin FROM turns INDEXED BY turns_in_session"
    " WHERE conversation_id = ? AND state IN ('completed', 'running', 'queued')"
)


def branches_blocking(reader: Connection, conversation: Conversation) -> list[Branch]:
    """See `ConversationStore.branches`."""
    others = reader.execute(
        _OTHERS, (conversation.line_id, conversation.user_id, conversation.id)
    ).fetchall()
    own = _turns_blocking(reader, conversation.id) if others else {}
    ways: dict[tuple[str | None, str | None], Branch] = {}
    for other in others:
        turns = _turns_blocking(reader, other["id"])
        shared = max(_shared(own, turns), default=0)
        after = own[shared][0] if shared else None
        following = turns.get(min((seq for seq in turns if seq > shared), default=0))
        way = (after, following[1] if following else None)
        if way not in ways:
            ways[way] = _branch_blocking(reader, other, after, following and following[0])
    return sorted(ways.values(), key=lambda branch: branch.created_at)


def _turns_blocking(reader: Connection, conversation_id: str) -> _Turns:
    rows = reader.execute(_TURNS, (conversation_id,))
    return {row["seq"]: (row["id"], row["origin"]) for row in rows}


def _shared(own: _Turns, others: _Turns) -> Iterator[int]:
    return (seq for seq, (_, origin) in own.items() if seq in others and others[seq][1] == origin)


def _branch_blocking(
    reader: Connection, row: Row, after: str | None, turn_id: str | None
) -> Branch:
    turn = reader.execute(
        "SELECT message, created_at FROM turns WHERE id = ?", (turn_id,)
    ).fetchone()
    return Branch(
        after_turn_id=TurnId(after) if after else None,
        conversation_id=ConversationId(row["id"]),
        turn_id=TurnId(turn_id) if turn_id else None,
        message=turn["message"] if turn else None,
        created_at=from_rfc3339((turn or row)["created_at"]),
    )
