"""The turns that an agent's session holds, with what memory showed in them.

What a completed turn was shown never changes, so its result is read once.
"""

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from gateway.conversations.model import Conversation
from gateway.conversations.store import MAX_SHOWN_TURNS, SessionTurn
from memory.stores.database import SqlDatabase

_IN_SESSION: Final = (
    # a fork's session begins with what was copied, unless a new one had to be begun since
    "WITH own AS (SELECT id, copy_of, seq FROM turns WHERE conversation_id = :id"
    " AND state = 'completed' AND (session_id = :session_id OR copy_of IS NOT NULL"
    " AND NOT EXISTS (SELECT 1 FROM turns lost WHERE lost.conversation_id = :id"
    " AND lost.state = 'completed' AND lost.copy_of IS NULL AND lost.session_id != :session_id)))"
    " SELECT own.seq AS seq, coalesce(own.copy_of, own.id) AS turn_id,"
    " CASE WHEN own.copy_of IS NOT NULL THEN own.id END AS copy_id,"
    " CASE WHEN own.seq > :known THEN json_extract(result, '$.notices') END AS notices,"
    " CASE WHEN own.seq > :known THEN json_extract(result, '$.memory.injected') END AS shown"
    " FROM own JOIN turns ON turns.id = own.id ORDER BY own.seq DESC LIMIT :most"
)
"""The last turns of a session, the latest first; without what is known of them."""
_SUMMARISED: Final = "conversation_summarised"
"""The notice of a turn after which the model does not have it, and what was before it, word for
word.
"""
_MAX_SESSIONS: Final = 200


@dataclass(frozen=True, slots=True)
class _Held:
    turn: SessionTurn
    is_summarised: bool


class SessionTurns:
    """Reads the turns of sessions; remembers those of the sessions that were read last."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database
        self._known: OrderedDict[tuple[str, str], Mapping[int, _Held]] = OrderedDict()

    async def of(self, conversation: Conversation) -> Sequence[SessionTurn]:
        """See `TurnStore.in_session`."""
        if conversation.session_id is None:
            return []
        session = conversation.id, conversation.session_id
        known = self._known.get(session, {})
        last = max(known, default=0)
        rows = await self._rows(conversation, last)
        if any(row["seq"] <= last and row["seq"] not in known for row in rows):
            rows, known = await self._rows(conversation, 0), {}
        held = {row["seq"]: known.get(row["seq"]) or _held(row) for row in rows}
        self._known[session] = held
        self._known.move_to_end(session)
        if len(self._known) > _MAX_SESSIONS:
            self._known.popitem(last=False)
        turns: list[SessionTurn] = []
        for turn in held.values():
            if turn.is_summarised:
                break
            turns.append(turn.turn)
        return turns[::-1]

    async def _rows(self, conversation: Conversation, known: int) -> Sequence[Any]:
        return await self._database.rows(
            _IN_SESSION, asdict(conversation) | {"most": MAX_SHOWN_TURNS, "known": known}
        )


def _held(row: Any) -> _Held:
    notices = json.loads(row["notices"] or "[]")
    injected = json.loads(row["shown"] or "[]")
    return _Held(
        SessionTurn(
            turn_id=row["turn_id"],
            shown={item["id"]: item.get("revision", 1) for item in injected},
            copy_id=row["copy_id"],
        ),
        is_summarised=any(notice["code"] == _SUMMARISED for notice in notices),
    )
