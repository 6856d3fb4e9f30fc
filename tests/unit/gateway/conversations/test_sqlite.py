"""What the SQLite stores promise beyond the contracts that every store has."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.conversations.model import Conversation, title_of
from gateway.conversations.sqlite import search
from memory.stores.sqlite.grams import gram_query, grams
from tests.conformance.suites.conversation_values import (
    ANN,
    Stores,
    conversation,
    ended,
    event,
    turn,
)
from tests.support.stores import open_file, stores_on


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


QUERIES = [
    "部署",
    "署",
    "go",
    "GO",
    "o",
    "Übel",
    "straße",
    "STRASSE",
    "50%",
    "lo wor",
    "nowhere",
    "",
]


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
        assert [len(rare[query]) for query in QUERIES] == [1, 2, 2, 2, 3, 1, 1, 1, 1, 1, 0, 8]
        monkeypatch.setattr(search, "_MAX_CANDIDATES", -1)
        assert await answers(stores) == rare


@settings(max_examples=40, deadline=None)
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
