"""Pages of messages."""

from collections.abc import Sequence
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from gateway.conversations.model import Turn
from gateway.http.views import MessagePage
from gateway.ids import ConversationId, TurnId, UserId

AT = datetime(2026, 11, 20, tzinfo=UTC)


def _turns(seqs: Sequence[int]) -> list[Turn]:
    return [
        Turn(
            id=TurnId(f"trn_{seq}"),
            conversation_id=ConversationId("cnv_1"),
            user_id=UserId("ada"),
            seq=seq,
            state="completed",
            message=str(seq),
            created_at=AT,
        )
        for seq in seqs
    ]


@given(seqs=st.sets(st.integers(1, 40)), limit=st.integers(1, 9))
def test_pages_put_together_are_all_messages_each_once(seqs: set[int], limit: int) -> None:
    stored = _turns(sorted(seqs))
    found: list[tuple[str, str]] = []
    before: int | None = None
    while True:
        page = MessagePage(limit, before)
        end = page.before_seq
        known = [turn for turn in stored if end is None or turn.seq < end]
        messages, cursor = page.cut(known[-page.max_turns :])
        assert len(messages) <= limit
        found = [(message["turn_id"], message["role"]) for message in messages] + found
        if cursor is None:
            break
        assert messages
        before = int(cursor)
    assert found == [(turn.id, role) for turn in stored for role in ("user", "assistant")]


def test_a_conversation_without_turns_has_no_messages() -> None:
    assert MessagePage(50, None).cut([]) == ([], None)
