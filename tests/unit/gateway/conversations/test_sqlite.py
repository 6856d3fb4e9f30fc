"""Conversations in SQLite: plans, deleted words, older databases, and rows that are damaged."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversations.model import Conversation, title_of
from gateway.conversations.sql import search
from gateway.conversations.sql.conversations import ConversationStore
from gateway.conversations.store import KeyedTurn
from gateway.ids import ConversationId, TurnId
from memory.stores.sqlite.database import open_database
from memory.stores.sqlite.grams import gram_query, grams
from tests.conformance.suites.beside_turns import RESULT, said, taken
from tests.conformance.suites.conversation_values import (
    ANN,
    AT,
    Stores,
    conversation,
    ended,
    event,
    turn,
)
from tests.support.stores import FILE, MIGRATIONS, open_file, stores_on


async def test_no_query_of_a_busy_server_reads_a_whole_table_or_sorts(tmp_path: Path) -> None:
    queries: list[str] = []
    async with open_file(tmp_path) as database:
        stores = stores_on(database)
        one = await stores.turns.accept(turn(), create=conversation(title="hello"))
        await stores.turns.finish([ended(one)], [event(1, one, 1)])
        reader = database._reader  # noqa: SLF001  what it runs shows nowhere else
        await reader.set_trace_callback(queries.append)
        await database.read(lambda connection: connection.set_trace_callback(queries.append))
        await stores.conversations.get(one.conversation_id, ANN)
        await stores.conversations.page(ANN, limit=9)
        await stores.conversations.page(ANN, limit=9, query="hello")
        await stores.turns.get(one.id)
        await stores.turns.find_key(ANN, "k")
        await stores.turns.history(one.conversation_id, limit=9)
        await stores.turns.fork_point(one.conversation_id, 1)
        await stores.events.find(one.id, 1)
        await stores.events.last_n(one.id)
        await stores.events.last_seq(one.conversation_id)
        await stores.events.after(one.conversation_id, 0, limit=9)
        await stores.events.after(one.conversation_id, 0, limit=9, turn_id=one.id)
        await reader.set_trace_callback(lambda _: None)
        selects = [
            each_query
            for each_query in queries
            if each_query.startswith("SELECT") and "'main'." not in each_query
        ]
        assert len(selects) >= 12
        for query in selects:
            plan = [row["detail"] for row in await database.rows(f"EXPLAIN QUERY PLAN {query}")]
            whole = [step for step in plan if step.startswith("SCAN") and "VIRTUAL" not in step]
            assert not whole, (query, plan)
            if "search" not in query and "json_each" not in query:
                assert "USE TEMP B-TREE FOR ORDER BY" not in plan, (query, plan)


QUERIES = {
    "部署": 1,
    "署": 2,
    "go": 2,
    "GO": 2,
    "o": 3,
    "Übel": 1,
    "straße": 1,
    "STRASSE": 1,
    "50%": 1,
    "lo wor": 1,
    "world HELLO": 1,
    "失败 部署": 1,
    "署 x": 1,
    "o world": 1,
    "go world": 0,
    "nowhere": 0,
    "": 8,
}


async def test_a_common_text_is_found_as_a_rare_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond some candidates the messages are read instead of the index: the same answers."""
    messages = ["部署失败了", "Hello World", "go on", "GO 50%", "übel", "Straße", "部", "x部 署"]

    async def answers(stores: Stores) -> dict[str, list[Conversation]]:
        return {
            query: (await stores.conversations.page(ANN, limit=50, query=query)).conversations
            for query in QUERIES
        }

    async with open_file(tmp_path) as database:
        stores = stores_on(database)
        for n, message in enumerate(messages):
            one = await stores.turns.accept(
                turn(str(n), str(n), message=message), create=conversation(str(n), title="t")
            )
            await stores.turns.finish([ended(one, result={"reply": "-"})], [])
        rare = await answers(stores)
        assert {query: len(found) for query, found in rare.items()} == QUERIES
        monkeypatch.setattr(search, "_MAX_CANDIDATES", -1)
        assert await answers(stores) == rare


@given(st.text(), st.text(), st.integers(0, 50), st.integers(1, 50))
def test_a_part_of_a_text_is_among_its_grams(text: str, more: str, at: int, size: int) -> None:
    whole = f"{text}{more}"
    part = whole.casefold()[at : at + size]
    wanted = gram_query(part, "ann")
    if wanted is None:
        assert len(part) <= 1
        return
    tokens = grams(whole, "ann").split(" ")
    for term in wanted.split(" AND "):
        gram = term.removesuffix(" *").strip('"')
        assert any(
            token.startswith(gram) if term.endswith("*") else token == gram for token in tokens
        )


async def test_a_lone_surrogate_in_a_message_writes_nothing(tmp_path: Path) -> None:
    """The edge refuses it; should it come so far, nothing is half written."""
    async with open_file(tmp_path) as database:
        stores = stores_on(database)
        with pytest.raises(UnicodeEncodeError):
            await stores.turns.accept(turn(message="a\ud800"), create=conversation())
        await stores.turns.accept(turn(), create=conversation())


@given(st.text())
def test_a_title_is_one_short_line(message: str) -> None:
    title = title_of(message)
    assert len(title) <= 80
    assert title == " ".join(title.split())
    assert title.rstrip("…") in " ".join(message.split())


def test_a_command_is_a_title_unless_it_begins_nothing() -> None:
    assert [title_of(word) for word in ("/gre", " /memory-summarize\n")] == [
        "/gre",
        "/memory-summarize",
    ]
    assert [title_of(word) for word in ("/clear", "/Clear ", "／clear")] == ["", "", ""]


SECRET = "Nachtfalke 甲乙丙"


async def on_disk(directory: Path) -> bytes:
    files = [path async for path in anyio.Path(directory).iterdir()]
    return b"".join([await file.read_bytes() for file in files])


async def test_nothing_of_a_deleted_conversation_is_on_the_disk_while_the_server_runs(
    tmp_path: Path,
) -> None:
    """The index marks what was deleted; merging its segments takes the words out."""
    async with open_file(tmp_path) as database:
        stores = stores_on(database)
        one = await stores.turns.accept(
            turn(message=SECRET), create=conversation(title=SECRET), key=None
        )
        await stores.events.append([event(1, one, 1)])
        assert SECRET.encode() in await on_disk(tmp_path), "else there is nothing to show here"
        await stores.conversations.delete(one.conversation_id, one.created_at)
        assert SECRET.encode() not in await on_disk(tmp_path)
        gone = await stores.turns.accept(turn("c1", "c", message=SECRET), create=conversation("c"))
        kept = await stores.turns.accept(turn("b1", "b", message="kept"), create=conversation("b"))
        await stores.turns.finish([ended(gone), ended(kept)], [])
        await stores.conversations.delete(gone.conversation_id, gone.created_at)
        assert "甲乙".encode() in await on_disk(tmp_path), "else there is nothing to show here"
        assert await ConversationStore(database).vacuum.vacuum()
        assert "甲乙".encode() not in await on_disk(tmp_path)
        found = await stores.conversations.page(ANN, limit=9, query="kept")
        assert [one.id for one in found.conversations] == [kept.conversation_id]
        check = "INSERT INTO search_words (search_words) VALUES ('integrity-check')"
        await database.write(lambda writer: writer.execute(check))


_AT = "'2026-11-20T12:00:00.000Z'"
OLDER = (
    f"INSERT INTO conversations (id, user_id, created_at, last_activity_at) VALUES ('cnv_a', 'ann', {_AT}, {_AT})",
    f"INSERT INTO turns (id, conversation_id, user_id, seq, state, message, created_at) VALUES ('trn_1', 'cnv_a', 'ann', 1, 'queued', 'm', {_AT})",
    "INSERT INTO idempotency VALUES ('ann', 'k', 'h', 'trn_1')",
)
"""What a server left that let keys go with their turns."""


async def leave(directory: Path, version: int, *statements: str) -> None:
    """Leave a database as a server with so many migrations did."""
    older = await open_database(directory / FILE, MIGRATIONS[:version])
    await older.write(lambda writer: [writer.execute(statement) for statement in statements])
    await older.close()


def older_event(seq: int, conversation: str, n: int, data: str = "'{}'") -> str:
    return (
        "INSERT INTO events (seq, conversation_id, turn_id, n, type, data)"
        f" VALUES ({seq}, 'cnv_{conversation}', 'trn_{conversation}', {n}, 'notice', {data})"
    )


async def test_the_events_of_an_older_database_stay_in_order_and_new_ones_follow(
    tmp_path: Path,
) -> None:
    """Its numbers were those of all conversations together."""
    damaged = "CAST(x'ff' AS TEXT)"
    await leave(
        tmp_path,
        13,
        *OLDER[:2],
        *(text.replace("cnv_a", "cnv_b").replace("trn_1", "trn_b") for text in OLDER[:2]),
        *(older_event(seq, "ab"[seq % 2], seq) for seq in (11, 12, 13, 14, 90)),
        older_event(-15, "a", 15),
        older_event(17, "b", 17, damaged),
        older_event(2**62, "b", 18),
    )
    async with open_file(tmp_path) as database:
        stores = stores_on(database)
        a, b = ConversationId("cnv_a"), ConversationId("cnv_b")
        assert [event.seq for event in await stores.events.after(a, 0, limit=9)] == [12, 14, 90]
        assert [event.seq for event in await stores.events.after(b, 11, limit=9)] == [13]
        assert await stores.events.find(TurnId("trn_a"), 12) == 12
        assert [await stores.events.last_seq(where) for where in (a, b)] == [90, 17]
        assert await database.scalar("SELECT count(*) FROM events") == 8


async def test_the_keys_of_an_older_database_are_known_and_outlive_their_turns(
    tmp_path: Path,
) -> None:
    await leave(tmp_path, 2, *OLDER)
    known = KeyedTurn(turn_id=TurnId("trn_1"), request_hash="h")
    async with open_file(tmp_path) as database:
        stores = stores_on(database)
        assert await stores.turns.find_key(ANN, "k") == known
        await stores.conversations.delete(ConversationId("cnv_a"), AT)
        assert await stores.turns.find_key(ANN, "k") == known


async def test_the_turns_and_texts_of_an_older_database_are_counted_and_found(
    tmp_path: Path,
) -> None:
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
    await leave(tmp_path, 3, *texts)
    async with open_file(tmp_path) as database:
        stores = stores_on(database)
        found = await stores.conversations.get(ConversationId("cnv_a"), ANN)
        assert found is not None
        assert found.turns == 2
        for query, is_there in {"部署": 1, "old t": 1, "going": 1, "taken": 0}.items():
            page = await stores.conversations.page(ANN, limit=9, query=query)
            assert len(page.conversations) == is_there, query


async def test_the_gateways_own_words_and_damaged_rows_are_not_taken(tmp_path: Path) -> None:
    untaken: dict[str, dict[str, Any]] = {
        "damaged": {"result": {"reply": "no memory"}},
        "failed": {"result": {**RESULT, "outcome": "engine_failed"}},
        "never_ran": {"started_at": None},
    }
    async with open_file(tmp_path) as database:
        stores = stores_on(database)
        await stores.conversations.create(conversation())
        for name, fields in untaken.items():
            await said(stores, name, **fields)
        await said(stores, "a2")
        found = await taken(stores)
        assert found.pop("trn_a2") is not None
        assert {name for name, one in found.items() if one is None or one.reply == ""} == {
            f"trn_{name}" for name in untaken
        }


_COLUMNS = "(id, user_id, created_at, last_activity_at, root_id)"
_TURN = "(id, conversation_id, user_id, seq, state, message, created_at, started_at)"


async def test_the_copies_that_an_older_server_made_are_known_as_copies(tmp_path: Path) -> None:
    for_each = (("a", "NULL"), ("fork", "'cnv_a'"), ("other", "'cnv_x'"))
    statements = [
        statement
        for name, root in for_each
        for statement in (
            f"INSERT INTO conversations {_COLUMNS} VALUES ('cnv_{name}', 'ann', {_AT}, {_AT}, {root})",
            f"INSERT INTO turns {_TURN} VALUES ('trn_{name}', 'cnv_{name}', 'ann', 1, 'completed', 'm', {_AT}, {_AT})",
        )
    ]
    await leave(tmp_path, 4, *statements)
    async with open_file(tmp_path) as database:
        await stores_on(database).turns.copy_history(
            ConversationId("cnv_fork"), 1, conversation("again")
        )
        rows = await database.rows("SELECT conversation_id, copy_of FROM turns")
        assert {row["conversation_id"]: row["copy_of"] for row in rows} == {
            "cnv_a": None,
            "cnv_fork": "trn_a",
            "cnv_other": None,
            "cnv_again": "trn_a",
        }


async def test_what_a_turn_of_a_session_was_shown_is_read_once(tmp_path: Path) -> None:
    held = conversation(session_id="s1")
    result = {"memory": {"injected": [{"id": "fac_1", "revision": 2}]}}
    async with open_file(tmp_path) as database:
        stores = stores_on(database)
        await stores.conversations.create(held)
        for n in range(2):
            accepted = await stores.turns.accept(turn(str(n)))
            await stores.turns.finish([ended(accepted, n + 1, result=result)], [])
            found = await stores.turns.in_session(held)
            assert [entry.shown for entry in found] == [{"fac_1": 2}] * (n + 1)
            await database.execute("UPDATE turns SET result = '{}'")
