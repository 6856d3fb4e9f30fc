"""Labels narrow exactly, whether the rows that fit best carry them or hardly any row does."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

import pytest

from memory.items import KINDS, ItemKind
from memory.recall.question_words import QuestionWords
from memory.scope import Scope, SearchScope
from memory.stores.sqlite import fulltext_search, owner_index
from memory.stores.sqlite.fulltext_search import FulltextSearch
from memory.stores.sqlite.items import put_item_blocking
from tests.unit.memory.items.test_index import item, opened

SHOP = Scope(owner_id="ann", app_code="shop")
BANK = Scope(owner_id="ann", app_code="bank")
SHOP_OR_NONE = SearchScope(owner_id="ann", app_code="shop", or_without=("app_code",))


def found(
    rows: Sequence[tuple[str, str, Scope, ItemKind]], text: str, scope: Scope, limit: int = 3
) -> list[str]:
    with closing(opened()) as connection:
        for name, body, theirs, kind in rows:
            put_item_blocking(connection, replace(item(name, body, scope=theirs), kind=kind))
        asked = FulltextSearch(QuestionWords.of(text), scope, KINDS, limit)
        return [row.item_id for row in asked.run_blocking(connection)]


@pytest.mark.parametrize("others", [0, 3, 7, 200])
def test_what_carries_the_label_is_found_however_many_fit_better(others: int) -> None:
    best = [(f"b{n}", "kafka lag kafka lag", BANK, KINDS[0]) for n in range(others)]
    mine = [(f"s{n}", f"kafka and number{n}", SHOP, KINDS[0]) for n in range(3)]
    assert found([*best, *mine], "kafka lag", SHOP) == ["s0", "s1", "s2"]


def test_a_case_may_lack_it_and_nothing_else() -> None:
    ann = Scope(owner_id="ann")
    rows: list[tuple[str, str, Scope, ItemKind]] = [
        *((f"{kind}", "kafka lag", ann, kind) for kind in KINDS),
        *((f"shop_{kind}", "kafka lag", SHOP, kind) for kind in KINDS),
        *((f"bank_{kind}", "kafka lag", BANK, kind) for kind in KINDS),
    ]
    shops = [f"shop_{kind}" for kind in KINDS]
    assert sorted(found(rows, "kafka", SHOP_OR_NONE, limit=9)) == sorted(["case", *shops])
    assert sorted(found(rows, "kafka", SHOP, limit=9)) == sorted(shops)


def test_of_a_word_in_very_many_rows_the_newest_with_the_label_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(owner_index, "MAX_COUNTED", 4)
    monkeypatch.setattr(fulltext_search, "MAX_COUNTED", 4)
    rows = [(f"s{n}", "kafka", SHOP, KINDS[0]) for n in range(6)]
    rows += [(f"b{n}", "kafka", BANK, KINDS[0]) for n in range(20)]
    assert sorted(found(rows, "kafka", SHOP, limit=9)) == ["s2", "s3", "s4", "s5"]
