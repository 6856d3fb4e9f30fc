"""Both engines find the same: equal items in equal order, with equal scores."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from memory.items.item import KINDS, Item, ItemKind
from memory.items.scope import WORKSPACE_OWNER, Scope, SearchScope
from memory.items.seen import Seen
from memory.items.store import WordHit
from memory.items.timespan import ALL_TIME, TimeSpan
from memory.recall.query import RECALLED_KINDS
from memory.stores.sqlite import fulltext_search, owner_index
from memory.stores.sqlite.fulltext_index import scope_tokens
from tests.conformance.suites.item_values import ANN, AT, BOB, OpenItems, found, item
from tests.conformance.test_item_stores import opened_on, opening, postgres_opening
from tests.support.episodes import POSTGRES_MIGRATIONS
from tests.support.postgres import empty_schema_blocking, open_schema

ENGLISH = (
    "gateway payment deployment restarted restarting running services résumé naïve ERR_CONN_RESET "
    "v2.3.1 getUserName kafka lag ledger invoice harbour lighthouse timeout happily servile table "
    "the of and is in what memory index query ratio ärger Straße"
).split()
CHINESE = (
    "部署 支付 服务 回滚 会计 科目 熔断 延迟 网关 属于 财务 检查 税 的 东京 控制 测试 内存".split()
)
VIETNAMESE = "Ếch ấm áp đường phố Ấp ủ".split()
WORDS = (*ENGLISH, *CHINESE, *VIETNAMESE)
WEIGHTS = [1 / (1 + place % 11) for place in range(len(WORDS))]
OWNERS = (ANN, ANN, BOB, Scope(owner_id=WORKSPACE_OWNER))
LABELS = (None, "shop", "bank")
SHOP = Scope(owner_id="ann", app_code="shop")
SHOP_OR_NONE = SearchScope(owner_id="ann", app_code="shop", or_without=("app_code",))
SCOPES = (ANN, BOB, SHOP, SHOP_OR_NONE)


def text(draw: random.Random, most: int) -> str:
    words = draw.choices(WORDS, WEIGHTS, k=draw.randint(1, most))
    return draw.choice((" ", " ", "，", "")).join(words) if draw.random() < 0.5 else " ".join(words)


def corpus(draw: random.Random, count: int) -> list[Item]:
    items = []
    for n in range(count):
        kind = draw.choice(KINDS)
        turn = f"trn_{n // 3}"
        items.append(
            item(
                f"{n}",
                text(draw, 25),
                title=text(draw, 4),
                kind=kind,
                scope=replace(draw.choice(OWNERS), app_code=draw.choice(LABELS)),
                tags=(draw.choice(WORDS),),
                occurred_at=AT + timedelta(hours=draw.randint(0, 200)),
                turn_id=turn,
                revision=draw.randint(1, 2),
                thread="cnv" if kind == "turn" else None,
                position=n if kind == "turn" else None,
            )
        )
    return items


async def answers(opened: OpenItems, draw: random.Random) -> Sequence[list[WordHit]]:
    found = []
    for _ in range(80):
        kinds: Sequence[ItemKind] = draw.choice(
            (KINDS, RECALLED_KINDS, ("case",), ("note", "turn"))
        )
        seen = Seen(
            turns=frozenset({f"trn_{draw.randint(0, 60)}"}),
            shown={f"epi_{draw.randint(0, 200)}": draw.randint(1, 2) for _ in range(20)},
        )
        span = TimeSpan(since=AT + timedelta(hours=50)) if draw.random() < 0.2 else ALL_TIME
        found += await opened.store.search_each(
            [text(draw, 8), text(draw, 30)],
            draw.choice(SCOPES),
            kinds=kinds,
            limit=draw.choice((3, 20)),
            seen=seen,
            span=span,
        )
    return found


def _long_words(count: int) -> list[list[int]]:
    """Return words of 64 Gothic letters, four bytes each, the greatest first."""
    draw = random.Random(3)
    letters = range(0x10330, 0x10340)
    return sorted((draw.choices(letters, k=64) for _ in range(count)), reverse=True)


@pytest.mark.parametrize("bounds", ["of the program", "low"])
async def test_searches_find_the_same_on_both_engines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bounds: str
) -> None:
    if bounds == "low":  # where words are common, and some too common to be read
        for module in (fulltext_search, owner_index):
            monkeypatch.setattr(module, "MAX_COUNTED", 50)
        monkeypatch.setattr(fulltext_search, "MAX_RANKED", 60)
        monkeypatch.setattr(fulltext_search, "_LOOKED_AT", 1)
    items = corpus(random.Random(25), 300)
    with empty_schema_blocking("memory") as schema:
        both = []
        for opens in (opening(tmp_path), postgres_opening(schema)):
            async with opens() as opened:
                await opened.put(items)
                await opened.put(
                    [replace(entry, body=f"{entry.body} 熔断") for entry in items[:30]]
                )
                for entry in items[30:40]:
                    await opened.delete(entry.id)
                both.append(await answers(opened, random.Random(7)))
    assert sum(map(bool, both[0])) > 100
    assert both[1] == both[0]


async def test_a_text_that_names_what_stands_for_an_owner_is_not_theirs() -> None:
    tokens = [*scope_tokens("ann", "case", {}), *scope_tokens("ann", "note", {})]
    body = f"payroll {' '.join(tokens)} :{' :'.join(tokens)}"
    with empty_schema_blocking("memory") as schema:
        async with postgres_opening(schema)() as opened:
            await opened.put([item("theirs", body, scope=BOB)])
            assert await found(opened, "payroll") == []
            assert await found(opened, "payroll", BOB) == ["theirs"]


async def test_a_text_with_more_different_words_than_a_row_holds_is_found_by_the_first() -> None:
    first, *words = ("".join(map(chr, draw)) for draw in _long_words(4000))
    han = "".join(map(chr, range(0x4E00, 0xA000)))
    body = " ".join((first, *words[:2999], han, *words[2999:]))
    with empty_schema_blocking("memory") as schema:
        async with postgres_opening(schema)() as opened:
            await opened.put([item("1", body)])
            assert await found(opened, first) == ["1"]


async def test_a_search_visits_narrow_rows_also_of_short_items() -> None:
    with empty_schema_blocking("memory") as schema:
        async with open_schema(schema, POSTGRES_MIGRATIONS) as database:
            await opened_on(database).put([item("1", " ".join(ENGLISH))])
            aside = await database.row(
                "SELECT pg_column_toast_chunk_id(words), pg_column_toast_chunk_id(terms),"
                " pg_column_size(width) FROM item_words"
            )
    words, terms, width = aside
    assert words is not None
    assert terms is not None
    assert width < 40
