"""Stems are those of the full-text index."""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory.items.scope import Scope
from memory.recall.question_words import QuestionWords
from memory.stores.sqlite import stems
from memory.stores.sqlite.bm25 import Texts
from memory.stores.sqlite.fulltext_search import FulltextSearch
from memory.stores.sqlite.items import put_item_blocking
from memory.stores.sqlite.stems import Stems
from memory.text.terms import terms
from tests.unit.memory.items.test_index import item, opened

WORDS = st.lists(
    st.text(st.characters(categories=["L", "N"], max_codepoint=0x24FF), min_size=1, max_size=9)
    | st.sampled_from(["résumé", "resumes", "services", "serviced", "Ärger", "arger", "服务"]),
    min_size=1,
    max_size=12,
)


@given(WORDS, st.sampled_from(["service", "resume", "argers", "服务"]))
@example(["résumé"], "resume")
@example(["happy", "happily"], "happiness")
@example(["servile", "services"], "service")
@example(["ärger"], "argers")
def test_words_are_forms_of_each_other_where_the_index_says_so(
    written: list[str], asked: str
) -> None:
    known = Stems()
    words = terms(" ".join(written))
    word = known.asked_blocking([asked])[asked]
    with closing(sqlite3.connect(":memory:")) as table:
        table.execute(f"CREATE VIRTUAL TABLE words USING fts5 (word, tokenize='{stems.TOKENIZER}')")
        table.executemany("INSERT INTO words VALUES (?)", [(word,) for word in words])
        found = table.execute("SELECT word FROM words WHERE words MATCH ?", (f'"{asked}"',))
        each = Texts(((place, [written]) for place, written in enumerate(words)), known).counts(
            word
        )
        counts = [sum(each.get(place, ())) for place in range(len(words))]
        assert [row[0] for row in found] == [
            written_word for written_word, count in zip(words, counts, strict=True) if count
        ]
        (whole,) = Texts([(1, [" ".join(words)])], known).counts(word).values() or [[0]]
        assert sum(whole) == sum(counts)


def test_the_tokenizer_is_that_of_the_index() -> None:
    with closing(opened()) as connection:
        sql = "SELECT sql FROM sqlite_master WHERE name = 'item_words'"
        assert f"tokenize = '{stems.TOKENIZER}'" in connection.execute(sql).fetchone()[0]


def test_all_forms_of_a_word_count() -> None:
    with closing(opened()) as connection:
        put_item_blocking(connection, item("one", "the gateway restarts, other words beside it"))
        put_item_blocking(connection, item("two", "restart, restarting and restarted the gateway"))
        asked = FulltextSearch(QuestionWords.of("restarted gateway"), Scope(owner_id="ann"))
        assert [row.item_id for row in asked.run_blocking(connection)] == ["two", "one"]


def test_few_stems_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stems, "_MAX_REMEMBERED", 3)
    known = Stems()
    first = known.of_blocking(["walks", "talks"])
    assert known.of_blocking(["walks", "jumps", "falls"]) == {
        "walks": "walk",
        "jumps": "jump",
        "falls": "fall",
    }
    assert known.of_blocking(["walks", "talks"]) == first
