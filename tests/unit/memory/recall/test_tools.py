"""The parameters with which an agent asks memory itself."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway.turns.memory_tools import read_memory
from memory.clock import utc_now
from memory.recall.retrievers import FulltextRetriever
from memory.recall.search import MemorySearch
from memory.recall.tools import GET, SEARCH, Lookup, MemoryTools
from memory.stores.sqlite.items import SqlItemStore, put_item_blocking
from tests.support.episodes import open_memory
from tests.support.recall import ANN, make_item


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncIterator[MemoryTools]:
    async with open_memory(tmp_path) as database:
        items = SqlItemStore(database)
        for month in (1, 2, 3):
            at = datetime(2026, month, 10, tzinfo=UTC)
            item = make_item(f"not_{month}", f"The ferry left in month {month}.", occurred_at=at)
            await database.write(partial(put_item_blocking, item=item))
        yield MemoryTools(MemorySearch(items, [FulltextRetriever(items)], now=utc_now), items)


@pytest.mark.parametrize("query", ["ferry", None])
@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, {"not_1", "not_2", "not_3"}),
        ({"since": "2026-02-01"}, {"not_2", "not_3"}),
        ({"since": "2026-02-01", "until": "2026-02-10"}, {"not_2"}),
        ({"kinds": ["fact"]}, set()),
        ({"kinds": ["note"], "until": "2026-01-31"}, {"not_1"}),
    ],
)
async def test_a_search_keeps_to_its_time_and_kinds(
    tools: MemoryTools, query: str | None, given: dict[str, Any], found: set[str]
) -> None:
    answer = json.loads(await tools.search(Lookup(scope=ANN), {"query": query, **given}))
    assert {item["id"] for item in answer["items"]} == found


async def test_a_date_that_is_none_is_told_to_the_agent(tools: MemoryTools) -> None:
    answer = json.loads(await tools.search(Lookup(scope=ANN), {"since": "last week"}))
    assert answer == {"note": "`since` must be an ISO date, such as 2026-01-31.", "items": []}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"query": 5}, "`query` must be text"),
        ({"query": ["ferry"]}, "`query` must be text"),
        ({"kinds": "bogus"}, "`kinds` must be a list of note, fact, episode, turn."),
        ({"kinds": ["note", "bogus"]}, "`kinds` must be a list"),
        ({"kinds": [["note"]]}, "`kinds` must be a list"),
        ({"limit": "abc"}, "`limit` must be a whole number from 1 to 20."),
        ({"limit": 0}, "`limit` must be"),
        ({"limit": True}, "`limit` must be"),
        ({"since": "last week"}, "`since` must be an ISO date"),
        ({"asked": "ferry"}, "`asked` is not an argument of this tool. It takes: query, kinds, "),
        ({"渡轮": None}, "`渡轮` is not an argument of this tool."),
        ({"x" * 99: 1}, f"`{'x' * 60}...` is not an argument"),
    ],
)
async def test_a_wrong_argument_of_a_search_is_an_error_that_names_it(
    tools: MemoryTools, given: dict[str, Any], told: str
) -> None:
    answer = await read_memory(tools, SEARCH, {"query": "ferry", **given}, Lookup(scope=ANN))
    assert answer.is_error
    assert told in answer.text
    assert "not_1" not in answer.text


async def test_a_misspelt_argument_is_not_passed_over(tools: MemoryTools) -> None:
    """Without its query a search would list the newest items as if they were the answer."""
    answer = await read_memory(tools, SEARCH, {"asked": "zebra"}, Lookup(scope=ANN))
    assert (answer.is_error, json.loads(answer.text)["items"]) == (True, [])
    answer = await read_memory(tools, GET, {"item_id": "not_1"}, Lookup(scope=ANN))
    assert answer.is_error
    assert answer.text == "`item_id` is not an argument of this tool. It takes: id."


async def test_a_number_in_digits_and_a_single_kind_are_understood(tools: MemoryTools) -> None:
    given = {"query": "ferry", "limit": "2", "kinds": "note"}
    answer = await read_memory(tools, SEARCH, given, Lookup(scope=ANN))
    assert (answer.is_error, len(json.loads(answer.text)["items"])) == (False, 2)
