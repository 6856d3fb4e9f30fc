"""What the SQLite stores promise beyond the contracts that every store has."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversations.model import TurnEvent
from gateway.conversations.sqlite.turns import title_of
from gateway.conversations.testing.values import conversation, turn
from gateway.ids import ConversationId, TurnId
from tests.support.stores import open_file, stores_on


async def test_no_query_of_a_busy_server_reads_a_whole_table(tmp_path: Path) -> None:
    queries = {
        "SELECT * FROM conversations WHERE user_id = 'u' ORDER BY last_activity_at DESC, id DESC": 1,
        "SELECT * FROM turns WHERE state IN ('queued', 'running')": 1,
        "SELECT * FROM turns WHERE conversation_id = 'c' ORDER BY seq DESC": 1,
        "SELECT * FROM turns WHERE session_id = 's'": 1,
        "SELECT * FROM events WHERE conversation_id = 'c' AND seq > 5 ORDER BY seq LIMIT 9": 1,
        "SELECT * FROM events WHERE turn_id = 't' AND n = 1": 1,
        "SELECT * FROM idempotency WHERE user_id = 'u' AND key = 'k'": 1,
    }
    async with open_file(tmp_path) as database:
        for query in queries:
            plan = [row["detail"] for row in await database.rows(f"EXPLAIN QUERY PLAN {query}")]
            assert any(step.startswith("SEARCH") for step in plan), (query, plan)
            assert not any(step.startswith("SCAN") for step in plan), (query, plan)
            assert "USE TEMP B-TREE FOR ORDER BY" not in plan, (query, plan)


async def test_a_lone_surrogate_in_a_message_writes_nothing(tmp_path: Path) -> None:
    """The edge refuses it; should it come so far, nothing is half written."""
    async with open_file(tmp_path) as database:
        stores = stores_on(database)
        with pytest.raises(UnicodeEncodeError):
            await stores.turns.accept(turn(message="a\ud800"), create=conversation())
        await stores.turns.accept(turn(), create=conversation())


def test_an_event_is_named_by_its_turn_and_number() -> None:
    one = TurnEvent(
        seq=7,
        conversation_id=ConversationId("cnv_a"),
        turn_id=TurnId("trn_a"),
        n=3,
        type="notice",
        data="{}",
    )
    assert one.id == "trn_a:3"


@given(st.text())
def test_a_title_is_one_short_line(message: str) -> None:
    title = title_of(message)
    assert len(title) <= 80
    assert title == " ".join(title.split())
    assert title.rstrip("…") in " ".join(message.split())
