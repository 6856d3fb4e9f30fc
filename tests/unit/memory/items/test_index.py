"""The index of words says what the rows say, whatever was done to them."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.items.item import Item
from memory.items.scope import Scope
from memory.stores.sqlite.items import COLUMNS, delete_item_blocking, item_of, put_item_blocking
from tests.support.episodes import MIGRATIONS
from tests.support.recall import make_item

BODIES = ("lighthouse ferry", "灯塔与渡船", "ferry 渡船 ferry", "", "ERR_CONN_RESET 重置")


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(opened()) as one:
        yield one


def opened() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.row_factory = sqlite3.Row
    connection.executescript("\n".join(MIGRATIONS))
    return connection


def item(
    name: str, body: str, thread: str | None = None, position: int | None = None, **more: Any
) -> Item:
    """Make an episode without a title and a summary."""
    untitled = replace(make_item(name, body, kind="episode"), title="", summary="")
    return replace(untitled, thread=thread, position=position, **more)


def words(connection: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    rows = connection.execute(
        "SELECT i.id, w.title, w.body, w.before, w.after, w.characters, w.scope"
        " FROM item_words AS w LEFT JOIN items AS i ON i.seq = w.rowid"
    ).fetchall()
    found = {row[0]: tuple(row)[1:] for row in rows}
    assert len(found) == len(rows)
    return found


def written_anew(connection: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    with closing(opened()) as other:
        for row in connection.execute(f"SELECT {COLUMNS} FROM items ORDER BY seq DESC"):
            put_item_blocking(other, item_of(row))
        return words(other)


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.sampled_from(["put", "put", "delete"]),
        st.sampled_from(BODIES),
        st.sampled_from(["t", "t", "u", None]),
        st.integers(0, 2),
    ),
    min_size=5,
    max_size=25,
)


@given(OPERATIONS)
def test_the_index_is_what_the_rows_are_after_any_operations(
    operations: list[tuple[str, str, str, str | None, int]],
) -> None:
    with closing(opened()) as connection:
        for name, what, body, thread, position in operations:
            if what == "delete":
                delete_item_blocking(connection, name)
                continue
            connection.execute("SAVEPOINT one")
            try:
                put_item_blocking(
                    connection,
                    item(name, body, thread, position if thread is not None else None),
                )
            except sqlite3.IntegrityError:  # the place is taken: nothing of it may stay
                connection.execute("ROLLBACK TO one")
            connection.execute("RELEASE one")
        assert words(connection) == written_anew(connection)
        connection.execute("INSERT INTO item_words (item_words) VALUES ('integrity-check')")


def test_a_title_that_repeats_the_beginning_counts_once(connection: sqlite3.Connection) -> None:
    long = "Mira: I adopted a grey cat\nlast week, and it sleeps all day"
    put_item_blocking(connection, item("cut", long, title="Mira: I adopted a grey cat last…"))
    put_item_blocking(connection, item("whole", "渡船 is late", title="渡船 is late"))
    put_item_blocking(connection, item("own", "渡船 is late", title="渡船 delays"))
    found = words(connection)
    assert found["cut"][0] == ""
    assert found["whole"][0] == ""
    assert found["own"][0] == "渡船 delays"


def test_names_of_scopes_stand_in_the_index_as_digests_alone(
    connection: sqlite3.Connection,
) -> None:
    """So that no name, whatever it holds, is a word of somebody's text or of the index's language."""
    scope = Scope(owner_id='ann" OR bob', project_id="lighthouse")
    put_item_blocking(connection, item("a", "x", scope=scope))
    tokens = words(connection)["a"][5].split()
    assert len(tokens) == 3
    assert all(token.isalnum() and len(token) == 21 for token in tokens)
