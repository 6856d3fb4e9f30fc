"""Databases of before come along."""

from pathlib import Path

from gateway.conversations.store import KeyedTurn
from gateway.ids import ConversationId, TurnId
from memory.stores.sqlite.database import open_database
from tests.conformance.suites.conversation_values import ANN, AT
from tests.support.stores import FILE, MIGRATIONS, open_file, stores_on

_AT = "'2026-11-20T12:00:00.000Z'"
OLDER = (
    f"INSERT INTO conversations (id, user_id, created_at, last_activity_at) VALUES ('cnv_a', 'ann', {_AT}, {_AT})",
    f"INSERT INTO turns (id, conversation_id, user_id, seq, state, message, created_at) VALUES ('trn_1', 'cnv_a', 'ann', 1, 'queued', 'm', {_AT})",
    "INSERT INTO idempotency VALUES ('ann', 'k', 'h', 'trn_1')",
)
"""What a server left that let keys go with their turns."""


async def test_the_keys_of_an_older_database_are_known_and_outlive_their_turns(
    tmp_path: Path,
) -> None:
    older = await open_database(tmp_path / FILE, MIGRATIONS[:2])
    await older.write(lambda writer: [writer.execute(statement) for statement in OLDER])
    await older.close()
    known = KeyedTurn(turn_id=TurnId("trn_1"), request_hash="h")
    async with open_file(tmp_path) as database:
        stores = stores_on(database)
        assert await stores.turns.find_key(ANN, "k") == known
        await stores.conversations.delete(ConversationId("cnv_a"), AT)
        assert await stores.turns.find_key(ANN, "k") == known


async def test_the_turns_and_texts_of_an_older_database_are_counted_and_found(
    tmp_path: Path,
) -> None:
    older = await open_database(tmp_path / FILE, MIGRATIONS[:3])
    turns = ("completed", "部署 done"), ("withdrawn", "taken back"), ("running", "still going")
    texts = (
        OLDER[0],
        "UPDATE conversations SET title = 'An Old Title'",
        *(
            "INSERT INTO turns (id, conversation_id, user_id, seq, state, message, created_at)"
            f" VALUES ('trn_{n}', 'cnv_a', 'ann', {n}, '{state}', '{message}', {_AT})"
            for n, (state, message) in enumerate(turns, start=1)
        ),
    )
    await older.write(lambda writer: [writer.execute(text) for text in texts])
    await older.close()
    async with open_file(tmp_path) as database:
        stores = stores_on(database)
        found = await stores.conversations.get(ConversationId("cnv_a"), ANN)
        assert found is not None
        assert found.turns == 2
        for query, is_there in {"部署": 1, "old t": 1, "going": 1, "taken": 0}.items():
            page = await stores.conversations.page(ANN, limit=9, query=query)
            assert len(page.conversations) == is_there, query
