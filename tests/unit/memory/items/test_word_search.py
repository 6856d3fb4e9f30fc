"""Full-text search: words of the question, bounds, weights, and labels."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory.items.item import KINDS, ItemKind
from memory.items.scope import Scope
from memory.items.store import WordHit
from memory.recall.question_words import MAX_CHARACTERS, MAX_TERMS, QuestionWords
from memory.stores.sqlite import fulltext_search, owner_index
from memory.stores.sqlite.bm25 import scores
from memory.stores.sqlite.fulltext_index import token
from memory.stores.sqlite.fulltext_search import FulltextSearch
from memory.stores.sqlite.items import put_item_blocking
from memory.stores.sqlite.owner_index import RowCounts, look_up_blocking
from tests.unit.memory.items.test_index import item, opened

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)


@pytest.fixture(scope="module")
def connection() -> Iterator[sqlite3.Connection]:
    with closing(opened()) as one:
        put_item_blocking(one, item("a", "near or not and the 部署 title : x* ^start"))
        yield one


@contextmanager
def holding(**bodies: str) -> Iterator[sqlite3.Connection]:
    """Open an index of items by their names."""
    with closing(opened()) as one:
        for name, body in bodies.items():
            put_item_blocking(one, item(name, body))
        yield one


def search(connection: sqlite3.Connection, text: str, scope: Scope | None = None) -> list[WordHit]:
    asked = FulltextSearch(QuestionWords.of(text), scope or Scope(owner_id="ann"))
    return asked.run_blocking(connection)


@given(ANY_TEXT, ANY_TEXT)
@example('ann" OR "', "x")
@example("*", "")
def test_no_name_of_an_owner_or_label_is_a_wrong_one(
    connection: sqlite3.Connection, owner: str, label: str
) -> None:
    assert search(connection, "near 部署", Scope(owner_id=owner, project_id=label)) == []


def test_no_part_of_a_scope_is_a_word_of_a_question() -> None:
    asked = [
        *(token("owner", owner) for owner in ("ann", "bob")),
        token("kind", "episode"),
        token("without", "project_id"),
    ]
    with holding(one="kafka lag") as connection:
        put_item_blocking(connection, item("two", "gateway", scope=Scope(owner_id="bob")))
        found = {
            name
            for name in asked
            for owner in ("ann", "bob")
            if search(connection, name, Scope(owner_id=owner))
        }
        assert found == set()
        assert [hit.item_id for hit in search(connection, "kafka")] == ["one"]


def test_no_more_rows_are_ranked_than_the_bound_and_the_rarest_words_are_asked_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fulltext_search, "MAX_RANKED", 10)
    common = {f"common{n}": f"服务 service {n}" for n in range(30)}
    with holding(**common, rare="熔断 kafka") as connection:
        assert [row.item_id for row in search(connection, "服务 service 熔断 kafka")] == ["rare"]
        assert len(search(connection, "service")) == 30, "one word alone is always asked for"


def test_coverage_is_the_weight_of_the_words_that_are_there() -> None:
    with holding(both="kafka lag", one="kafka delay", other="something else") as connection:
        rows = {row.item_id: row.coverage for row in search(connection, "kafka lag")}
    assert rows == {"both": pytest.approx(1), "one": pytest.approx(0.35, abs=0.15)}
    junk = {f"junk{n}": "a key on the table" for n in range(8)}
    far = {f"far{n}": "nothing of it" for n in range(30)}
    with holding(it="rotate the signing key of the gateway", **junk, **far) as connection:
        hits = search(connection, "rotate the signing key of the gateway certificate")
    assert hits[0].item_id == "it"
    assert hits[0].coverage > 3 * hits[1].coverage > 0
    assert len(hits) == 9


def test_a_word_too_common_to_be_asked_for_still_tells_rows_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fulltext_search, "MAX_RANKED", 10)
    latency = {f"latency{n}": f"latency of service number{n}" for n in range(30)}
    filler = {f"filler{n}": "of another kind" for n in range(60)}
    other = {f"other{n}": f"gateway in memory trouble{n}" for n in range(8)}
    it = "latency caused by the gateway"
    with holding(**latency, **filler, **other, it=it) as connection:
        found = [row.item_id for row in search(connection, "gateway latency")]
        assert found[0] == "it"
        assert len(found) == 9, "the common word brings no rows"


def count_of(counts: RowCounts, connection: sqlite3.Connection, word: str) -> int:
    known = counts.known(word)
    if known is not None:
        return known
    (rows,) = look_up_blocking(connection, [word])
    counts.note(word, rows.count)
    return rows.count


def test_a_common_word_is_counted_only_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner_index, "COMMON", 3)
    monkeypatch.setattr(owner_index, "_LEAST_REMEMBERED", 3)
    counts = RowCounts()
    with closing(opened()) as connection:

        def counted() -> list[int]:
            return [count_of(counts, connection, word) for word in ("gateway", "rare")]

        for n in range(3):
            put_item_blocking(connection, item(f"{n}", "gateway"))
        assert counted() == [3, 0]
        put_item_blocking(connection, item("new", "gateway rare"))
        assert counted() == [3, 1], "what is rare is counted each time"
        for _ in range(500):
            counted()
        assert counted() == [4, 1]
        assert counts.counting_blocking(connection, "gateway")() == 4


def test_a_word_alone_that_stands_nearly_everywhere_finds_the_newest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(owner_index, "COMMON", 5)
    monkeypatch.setattr(owner_index, "MAX_COUNTED", 5)
    with holding(**{f"{n}": "gateway" for n in range(20)}) as connection:
        found = {row.item_id for row in search(connection, "gateway")}
        assert found == {"15", "16", "17", "18", "19"}


def test_words_that_say_nothing_are_not_asked_for() -> None:
    asked = QuestionWords.of("What is the state of our deployment? 我们的部署是什么情况")
    assert {"deployment", "部署", "情况", "state"} <= set(asked.weights)
    assert not set(asked.weights) & {"what", "is", "the", "of", "our", "我们", "什么"}
    assert not set(asked.characters) & set("我的是")
    for text in ("", "the", "what is it", "是什么", "在哪", "的", "？！"):
        asked = QuestionWords.of(text)
        assert (asked.weights, asked.characters) == ({}, ()), text


def test_what_was_said_last_weighs_more() -> None:
    filler = " ".join(f"word{n}" for n in range(200))
    weights = QuestionWords.of(f"lighthouse {filler} cello").weights
    assert "lighthouse" not in weights
    assert weights["cello"] == max(weights.values())
    short = QuestionWords.of(
        f"灯塔，{'，'.join('甲乙丙丁戊己庚辛'[n % 8] * 2 for n in range(30))}，大提琴"
    ).weights
    assert short["提琴"] > short["灯塔"]


@given(st.text(max_size=3000))
def test_what_is_asked_for_is_bounded(text: str) -> None:
    asked = QuestionWords.of(text * 3)
    assert len(asked.weights) <= MAX_TERMS
    assert len(asked.characters) <= MAX_CHARACTERS
    assert all(weight > 0 for weight in asked.weights.values())
    assert list(asked.weights.values()) == sorted(asked.weights.values(), reverse=True)


SHOP = Scope(owner_id="ann", app_code="shop")
BANK = Scope(owner_id="ann", app_code="bank")


def found(
    rows: Sequence[tuple[str, str, Scope, ItemKind]], text: str, scope: Scope, limit: int = 3
) -> list[str]:
    with closing(opened()) as connection:
        for name, body, theirs, kind in rows:
            put_item_blocking(connection, item(name, body, scope=theirs, kind=kind))
        asked = FulltextSearch(QuestionWords.of(text), scope, KINDS, limit)
        return [row.item_id for row in asked.run_blocking(connection)]


@pytest.mark.parametrize("others", [0, 3, 7, 200])
def test_what_carries_the_label_is_found_however_many_fit_better(others: int) -> None:
    best = [(f"b{n}", "kafka lag kafka lag", BANK, KINDS[0]) for n in range(others)]
    mine = [(f"s{n}", f"kafka and number{n}", SHOP, KINDS[0]) for n in range(3)]
    assert found([*best, *mine], "kafka lag", SHOP) == ["s2", "s1", "s0"]


def test_of_what_carries_the_label_and_fits_equally_well_the_newest_is_found() -> None:
    older = [(f"s{n}", "kafka", SHOP, KINDS[0]) for n in range(9)]
    others = [(f"b{n}", "kafka", BANK, KINDS[0]) for n in range(2)]
    newest = [("s9", "kafka", SHOP, KINDS[0])]
    assert found([*older, *others, *newest], "kafka", SHOP) == ["s9", "s8", "s7"]


def test_of_a_word_in_very_many_rows_the_newest_with_the_label_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(owner_index, "MAX_COUNTED", 4)
    monkeypatch.setattr(fulltext_search, "MAX_COUNTED", 4)
    rows = [(f"s{n}", "kafka", SHOP, KINDS[0]) for n in range(6)]
    rows += [(f"b{n}", "kafka", BANK, KINDS[0]) for n in range(20)]
    assert sorted(found(rows, "kafka", SHOP, limit=9)) == ["s2", "s3", "s4", "s5"]


def test_common_words_are_looked_for_in_the_texts_and_their_other_forms_in_the_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fulltext_search, "MAX_RANKED", 10)
    monkeypatch.setattr(owner_index, "_LEAST_REMEMBERED", 5)
    monkeypatch.setattr(owner_index, "_USES_A_ROW", 1)
    common = {f"common{n}": f"服务 services résumés {n}" for n in range(20)}
    counts = RowCounts()
    with holding(
        **common, rare="kafka 服务 serviced resume", other="kafka serve 服务"
    ) as connection:
        words = QuestionWords.of("kafka 服务 service résumé")
        asked = FulltextSearch(words, Scope(owner_id="ann"), counts=counts)
        first = asked.run_blocking(connection)
        said: list[str] = []
        connection.set_trace_callback(said.append)
        assert asked.run_blocking(connection) == first
        connection.set_trace_callback(None)
    read = [sql for sql in said if "MATCH" in sql]
    assert not any("服务" in sql for sql in read), "its rows have it as it is, or not at all"
    assert {hit.item_id: hit.coverage for hit in first}["rare"] == pytest.approx(1)
    assert {hit.item_id: hit.coverage for hit in first}["other"] < 1


def test_of_several_questions_each_word_is_looked_up_once_and_each_row_read_once() -> None:
    asked = ["kafka lag", "lag of the kafka gateway"]
    wordings = [QuestionWords.of(text) for text in asked]
    with holding(one="kafka lag", two="gateway lag", three="kafka") as connection:
        said: list[str] = []
        connection.set_trace_callback(said.append)
        search_of = FulltextSearch(QuestionWords({}, ()), Scope(owner_id="ann"))
        found = search_of.run_each_blocking(connection, wordings)
        connection.set_trace_callback(None)
        assert found == [search(connection, text) for text in asked]
    for word in ("kafka", "lag", "gateway"):
        assert sum(sql.count(f'\\"{word}\\"') for sql in said) == 1  # in a list as JSON
    read = [sql.partition("seq IN (")[2] for sql in said if "JOIN item_words_content" in sql]
    assert sorted("".join(read).replace(")", ", ").split(", "))[1:] == ["1", "2", "3"]


def test_questions_that_differ_in_words_that_stand_nowhere_are_ranked_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranked = []

    def watched(*given: Any) -> tuple[dict[int, float], set[int]]:
        ranked.append(given)
        return scores(*given)

    asked = ["kafka lag", "kafka lag\n> zebra", "kafka lag\n> gateway"]
    with holding(one="kafka lag", two="gateway lag", three="kafka") as connection:
        alone = [search(connection, text) for text in asked]
        monkeypatch.setattr(fulltext_search, "scores", watched)
        search_of = FulltextSearch(QuestionWords({}, ()), Scope(owner_id="ann"))
        found = search_of.run_each_blocking(connection, [QuestionWords.of(text) for text in asked])
    assert found == alone
    assert len(ranked) == 2


def test_a_question_is_scored_by_its_own_rows_where_others_are_read_beside_them() -> None:
    asked = ["lag of kafka beside the gateway", "kafka lag"]
    long = "the gateway was out for a night of many words and of nothing else"
    with holding(one="kafka lag", two="kafka lag spikes", three="kafka", four=long) as connection:
        alone = [search(connection, text) for text in asked]
        search_of = FulltextSearch(QuestionWords({}, ()), Scope(owner_id="ann"))
        found = search_of.run_each_blocking(connection, [QuestionWords.of(text) for text in asked])
    assert [len(hits) for hits in found] == [4, 3]
    assert found == alone
