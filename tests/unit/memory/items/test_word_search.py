"""A question becomes an expression of the index's language that is always a right one, at a bounded cost."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memory.recall.wording import Wording
from memory.scope import Scope
from memory.stores.sqlite import word_search
from memory.stores.sqlite.items import put_item_blocking
from memory.stores.sqlite.word_search import FoundRow, WordSearch
from tests.unit.memory.items.test_index import item, opened

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)


@pytest.fixture(scope="module")
def connection() -> Iterator[sqlite3.Connection]:
    with closing(opened()) as one:
        put_item_blocking(one, item("a", "near or not and the 部署 title : x* ^start"))
        yield one


def search(connection: sqlite3.Connection, text: str, scope: Scope | None = None) -> list[FoundRow]:
    asked = WordSearch(Wording.of(text), scope or Scope(owner_id="ann"))
    return asked.run_blocking(connection)


@settings(deadline=None)
@given(ANY_TEXT)
@example('"')
@example("NEAR(near title, 2) 部署* OR NOT")
@example("-start ^start {title} : x")
@example("\ud800near\udfff\0near")
def test_no_text_is_a_wrong_question(connection: sqlite3.Connection, text: str) -> None:
    for row in search(connection, text):
        assert row.item_id == "a"
        assert 0 <= row.coverage <= 1


@settings(deadline=None)
@given(ANY_TEXT, ANY_TEXT)
@example('ann" OR "', "x")
@example("*", "")
def test_no_name_of_an_owner_or_label_is_a_wrong_one(
    connection: sqlite3.Connection, owner: str, label: str
) -> None:
    assert search(connection, "near 部署", Scope(owner_id=owner, project_id=label)) == []


def test_no_more_rows_are_ranked_than_the_bound_and_the_rarest_words_are_asked_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(word_search, "MAX_RANKED", 10)
    with closing(opened()) as connection:
        for n in range(30):
            put_item_blocking(connection, item(f"common{n}", f"服务 service {n}"))
        put_item_blocking(connection, item("rare", "熔断 kafka"))
        assert [one.item_id for one in search(connection, "服务 service 熔断 kafka")] == ["rare"]
        assert len(search(connection, "service")) == 30, "one word alone is always asked for"


def test_single_characters_are_left_out_where_the_words_find_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with closing(opened()) as connection:
        put_item_blocking(connection, item("word", "我们部署了网关"))
        put_item_blocking(connection, item("character", "部门属地"))
        assert [one.item_id for one in search(connection, "部署")] == ["word", "character"]
        monkeypatch.setattr(word_search, "_MANY_ROWS", 1)
        assert [one.item_id for one in search(connection, "部署")] == ["word"]
        assert sorted(one.item_id for one in search(connection, "部")) == ["character", "word"]


def test_coverage_is_the_weight_of_the_words_that_are_there() -> None:
    with closing(opened()) as connection:
        put_item_blocking(connection, item("both", "kafka lag"))
        put_item_blocking(connection, item("one", "kafka delay"))
        put_item_blocking(connection, item("other", "something else"))
        rows = {one.item_id: one for one in search(connection, "kafka lag")}
        assert rows["both"].coverage == pytest.approx(1)
        assert 0.2 < rows["one"].coverage < 0.5
        assert set(rows) == {"both", "one"}


def test_a_word_that_nothing_has_still_counts_as_asked() -> None:
    """Or a question about something unknown would be answered by its one common word."""
    with closing(opened()) as connection:
        put_item_blocking(connection, item("a", "service check"))
        (row,) = search(connection, "zeppelin harbour umbrella giraffe service")
        assert row.coverage < 0.2
        assert not row.is_about
