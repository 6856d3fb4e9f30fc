"""Search: the retrievers side by side, the filter before the order."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from memory.errors import StoreUnavailable
from memory.items import Item, ItemKind
from memory.recall.confidence import LEAST_CONFIDENCE
from memory.recall.query import HeldBack
from memory.recall.retrievers import Retriever
from memory.recall.search import MemorySearch
from memory.scope import WORKSPACE_OWNER, Scope
from tests.support.recall import (
    ANN,
    AT,
    BrokenRetriever,
    GivingRetriever,
    Shelf,
    StuckRetriever,
    make_item,
)

STALE = make_item("not_stale", "article-list-query 参数格式：topic 字符串")
TEA = make_item("not_tea", "Ann likes green tea")
OWNER = make_item("not_owner", "article-list-query 负责人：平台组，参数格式见门户")
IN_USE = ("mcp__ata__article-list-query",)


def search_on(shelf: Shelf, *retrievers: Retriever) -> MemorySearch:
    return MemorySearch(shelf, retrievers, now=lambda: AT + timedelta(days=1))


async def test_what_the_arms_found_comes_fused_with_the_reasons() -> None:
    search = search_on(
        Shelf.of(STALE, TEA),
        GivingRetriever.of("not_tea"),
        GivingRetriever.of("not_tea", name="vector"),
    )

    found = await search.search("tea", scope=ANN)

    assert [hit.item for hit in found.hits] == [TEA]
    assert "its words (place 1" in found.hits[0].why
    assert "its meaning (place 1" in found.hits[0].why
    assert (found.held_back, found.degraded) == ([], ())


async def test_a_slow_arm_is_left_out_named_and_stopped() -> None:
    stuck = StuckRetriever()
    search = search_on(Shelf.of(TEA), GivingRetriever.of("not_tea"), stuck)

    with anyio.fail_after(30):
        found = await search.search("tea", scope=ANN, deadline_s=0.5)

    assert [hit.item for hit in found.hits] == [TEA]
    assert found.degraded == ("vector_timeout",)
    assert stuck.is_stopped


async def test_a_broken_arm_is_left_out_and_named() -> None:
    search = search_on(
        Shelf.of(TEA), BrokenRetriever("fulltext"), GivingRetriever.of("not_tea", name="vector")
    )
    found = await search.search(["tea", "green"], scope=ANN)
    assert [hit.item for hit in found.hits] == [TEA]
    assert found.degraded == ("fulltext_error",)


async def test_a_stale_item_is_held_back_before_scoring_and_takes_nobodys_place() -> None:
    search = search_on(
        Shelf.of(STALE, TEA, OWNER), GivingRetriever.of("not_stale", "not_tea", "not_owner")
    )

    found = await search.search("article", scope=ANN, active_tools=IN_USE)

    assert [hit.item.id for hit in found.hits] == ["not_tea", "not_owner"]
    assert found.held_back == [HeldBack(id="not_stale", reason="stale_tool_schema")]
    assert "place 1" in found.hits[0].why
    assert found.hits[0].score == 1


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        ("When is the demo?", ["fact_new"]),
        ("When was the demo in November?", ["fact_new", "trn_1"]),
    ],
)
async def test_a_turn_that_told_a_superseded_fact_is_held_back_unless_a_time_is_asked_for(
    question: str, shown: list[str]
) -> None:
    def made(item_id: str, kind: ItemKind, turn: str, text: str, until: Any = None) -> Item:
        return replace(make_item(item_id, text), kind=kind, turn_id=turn, valid_until=until)

    items = [
        made("fact_old", "fact", "trn_1", "The demo is on Thursday.", AT),
        made("fact_new", "fact", "trn_2", "The demo is on Friday."),
        made("trn_1", "turn", "trn_1", "Well, the demo is on Thursday. Book the red room."),
        made("trn_2", "turn", "trn_2", "No. The demo is on Friday. Tell the guests."),
    ]
    retriever = GivingRetriever.of(*(item.id for item in items))
    found = await search_on(Shelf.of(*items), retriever).search(question, scope=ANN)
    assert sorted(hit.item.id for hit in found.hits) == shown


async def test_unlikely_items_go_through_the_same_filter_and_are_not_told_as_held_back() -> None:
    search = search_on(
        Shelf.of(STALE, TEA, OWNER), GivingRetriever.of("not_tea", weak=["not_stale", "not_owner"])
    )
    found = await search.search("tea", scope=ANN, active_tools=IN_USE)
    assert [hit.item for hit in found.hits] == [TEA, OWNER]
    assert found.held_back == []


async def test_a_hit_has_the_confidence_of_the_retriever_that_is_surest_of_it() -> None:
    vectors = GivingRetriever.of(weak=["not_tea", "not_owner"], name="vector")
    found = await search_on(Shelf.of(TEA, OWNER), GivingRetriever.of("not_tea"), vectors).search(
        "tea", scope=ANN
    )
    assert [(hit.item, hit.confidence >= LEAST_CONFIDENCE) for hit in found.hits] == [
        (TEA, True),
        (OWNER, False),
    ]


async def test_items_of_others_and_of_other_kinds_and_labels_are_not_found() -> None:
    bobs = make_item("not_bobs", "tea", scope=Scope(owner_id="bob"))
    ours = make_item("not_ours", "tea", scope=Scope(owner_id=WORKSPACE_OWNER))
    labelled = make_item("not_lab", "tea", scope=Scope(owner_id="ann", project_id="p"))
    retriever = GivingRetriever.of("not_bobs", "not_ours", "not_lab", "not_tea")
    search = search_on(Shelf.of(bobs, ours, labelled, TEA), retriever)

    everything = await search.search("tea", scope=ANN)
    narrow = await search.search("tea", scope=Scope(owner_id="ann", project_id="p"))
    cases = await search.search("tea", scope=ANN, kinds=["case"])

    assert {hit.item.id for hit in everything.hits} == {"not_ours", "not_lab", "not_tea"}
    assert {hit.item.id for hit in narrow.hits} == {"not_lab"}
    assert cases.hits == []


@pytest.mark.parametrize("q", ["", "  \n", [], ["", " "]])
async def test_an_empty_question_asks_nobody(q: str | list[str]) -> None:
    retriever = GivingRetriever.of("not_tea")
    found = await search_on(Shelf.of(TEA), retriever).search(q, scope=ANN)
    assert (found.hits, retriever.asked) == ([], [])


async def test_of_a_long_question_the_beginning_and_the_end_are_asked_apart() -> None:
    retriever = GivingRetriever.of()
    await search_on(Shelf.of(), retriever).search("first " + "x" * 200_000 + " last", scope=ANN)
    first, last = (question.text for question in retriever.asked)
    assert (first[:6], last[-5:]) == ("first ", " last")
    assert len(first) + len(last) < 1000


async def test_a_store_that_cannot_be_read_is_named_and_nothing_is_shown() -> None:
    async def breaks() -> None:
        await anyio.lowlevel.checkpoint()
        raise StoreUnavailable("gone")

    shelf = Shelf({TEA.id: TEA}, breaks)
    found = await search_on(shelf, GivingRetriever.of("not_tea")).search("tea", scope=ANN)
    assert (found.hits, found.degraded) == ((), ("fulltext_error",))


async def test_items_that_are_read_too_slowly_are_given_up_at_the_deadline() -> None:
    shelf = Shelf({TEA.id: TEA}, anyio.sleep_forever)
    with anyio.fail_after(30):
        found = await search_on(shelf, GivingRetriever.of("not_tea")).search(
            "tea", scope=ANN, deadline_s=0.5
        )
    assert (found.hits, found.degraded) == ((), ("fulltext_timeout",))
