"""Rows of the searching owner that are remembered: as exact as what the index tells, whoever writes beside."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory.items.item import KINDS, Item, ItemKind
from memory.items.scope import Scope, SearchScope
from memory.items.store import WordHit
from memory.recall.query import RECALLED_KINDS
from memory.recall.question_words import QuestionWords
from memory.stores.sqlite import fulltext_search, owner_index
from memory.stores.sqlite.fts5_index import Fts5Index
from memory.stores.sqlite.fulltext_search import FulltextSearch
from memory.stores.sqlite.items import delete_item_blocking, put_item_blocking
from memory.stores.sqlite.owner_index import OwnerIndex, RowCounts
from tests.conformance.suites.item_search import ItemStoreSuite
from tests.conformance.suites.item_values import Opening
from tests.conformance.test_item_stores import opening
from tests.unit.memory.items.test_index import item, opened

ANN, BOB = Scope(owner_id="ann"), Scope(owner_id="bob")
WORDS = ("lighthouse", "ferry", "灯塔", "渡船", "gateway")


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(opened()) as one:
        yield one


@pytest.fixture
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner_index, "LEAST_ROWS", 0)
    monkeypatch.setattr(owner_index, "_LEAST_SHARE", 10**6)


def rows_of(
    owning: OwnerIndex, connection: sqlite3.Connection, scope: Scope, kinds: tuple[ItemKind, ...]
) -> list[int] | None:
    every = [row["seq"] for row in connection.execute("SELECT seq FROM items ORDER BY seq")]
    total = len(every)
    known = owning.rows_blocking(connection, scope.readable_owners, kinds, lambda: total)
    return None if known is None else known.among([*every, 10_000])


@pytest.mark.usefixtures("_always")
class TestItemsOfMany(ItemStoreSuite):
    """The suite again, with what is done for many rows done for few."""

    @pytest.fixture
    def opens(self, tmp_path: Path) -> Opening:
        return opening(tmp_path)


@pytest.mark.usefixtures("_always")
def test_what_was_written_since_is_known_and_each_kind_apart(
    connection: sqlite3.Connection,
) -> None:
    owning = OwnerIndex()
    put_item_blocking(connection, item("a", "x"))
    put_item_blocking(connection, item("b", "x", scope=BOB))
    assert rows_of(owning, connection, ANN, KINDS) == [1]
    assert rows_of(owning, connection, BOB, KINDS) == [2]
    put_item_blocking(connection, item("c", "x", kind="case"))
    put_item_blocking(connection, item("w", "x", scope=Scope(owner_id="*workspace")))
    assert rows_of(owning, connection, ANN, KINDS) == [1, 3, 4]
    assert rows_of(owning, connection, ANN, ("case",)) == [3]
    assert rows_of(owning, connection, ANN, ("case", "episode")) == [1, 3, 4]
    assert rows_of(owning, connection, BOB, KINDS) == [2, 4]


@pytest.mark.usefixtures("_always")
def test_a_number_that_was_given_is_nobody_elses_later(connection: sqlite3.Connection) -> None:
    owning = OwnerIndex()
    put_item_blocking(connection, item("a", "ferry"))
    assert rows_of(owning, connection, ANN, KINDS) == [1]
    delete_item_blocking(connection, "a")
    put_item_blocking(connection, item("b", "ferry", scope=BOB))
    assert rows_of(owning, connection, ANN, KINDS) == []
    assert search(connection, "ferry", ANN, owning=owning) == []


def test_few_rows_and_few_among_many_are_asked_of_the_index(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    owning = OwnerIndex()
    for n in range(9):
        put_item_blocking(connection, item(f"{n}", "x", scope=BOB if n else ANN))
    bob, ann = BOB.readable_owners, ANN.readable_owners
    assert owning.rows_blocking(connection, bob, KINDS, lambda: 8) is None
    monkeypatch.setattr(owner_index, "LEAST_ROWS", 1)
    assert owning.rows_blocking(connection, bob, KINDS, lambda: 8) is not None
    assert owning.rows_blocking(connection, ann, KINDS, lambda: 1) is None


def search(
    connection: sqlite3.Connection,
    text: str,
    scope: Scope,
    kinds: tuple[ItemKind, ...] = KINDS,
    owning: OwnerIndex | None = None,
) -> list[WordHit]:
    asked = FulltextSearch(
        QuestionWords.of(text), scope, kinds, 5, RowCounts(), owning or OwnerIndex()
    )
    return asked.run_blocking(connection)


OWNED = st.tuples(
    st.sampled_from(["ann", "bob", "*workspace"]),
    st.sampled_from(KINDS),
    st.sampled_from([None, "shop", "bank"]),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
)
SCOPES = (
    ANN,
    Scope(owner_id="ann", app_code="shop"),
    SearchScope(owner_id="ann", app_code="shop", or_without=("app_code",)),
    Scope(owner_id="bob", app_code="bank"),
)


@given(
    st.lists(OWNED, max_size=25),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
    st.sampled_from(SCOPES),
    st.sampled_from([KINDS, RECALLED_KINDS, ("case",), ("note", "case")]),
    st.sampled_from([4, 10_001]),
)
@example([("ann", "note", None, WORDS[:1])] * 5, WORDS[:1], ANN, KINDS, 10_001)
def test_what_is_found_is_the_same_as_by_the_index_alone(
    rows: list[tuple[str, ItemKind, str | None, list[str]]],
    question: list[str],
    scope: Scope,
    kinds: tuple[ItemKind, ...],
    counted: int,
) -> None:
    with closing(opened()) as connection, pytest.MonkeyPatch.context() as patch:
        for n, (owner, kind, app, words) in enumerate(rows):
            put_item_blocking(connection, made(n, owner, kind, app, words))
        patch.setattr(owner_index, "MAX_COUNTED", counted)
        patch.setattr(fulltext_search, "MAX_COUNTED", counted)
        patch.setattr(owner_index, "_LEAST_SHARE", 10**6)
        patch.setattr(fulltext_search, "_LOOKED_AT", 1)
        answers = []
        for least, few in product((10**6, 0), (200, 1)):
            patch.setattr(owner_index, "LEAST_ROWS", least)
            patch.setattr(Fts5Index, "few", few)  # rows of a word that are read at first
            answers.append(search(connection, " ".join(question), scope, kinds))
        assert all(answer == answers[0] for answer in answers)


def made(n: int, owner: str, kind: ItemKind, app: str | None, words: list[str]) -> Item:
    scope = Scope(owner_id=owner, app_code=app)
    return item(f"{n}", " ".join(words), scope=scope, kind=kind)
