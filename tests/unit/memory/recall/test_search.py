"""Search: parts of a question, retrievers side by side, and what is left out or named."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import product

import anyio
import anyio.lowlevel
import pytest

from memory.errors import StoreUnavailable
from memory.items.item import KINDS
from memory.items.scope import WORKSPACE_OWNER, Scope
from memory.items.store import WordHit
from memory.items.timespan import TimeSpan
from memory.recall.query import HeldBack
from memory.recall.question_parts import question_parts
from memory.recall.retrievers import (
    Candidate,
    FulltextRetriever,
    Question,
    Retriever,
    RetrieverAnswer,
    RetrieverName,
    gather,
)
from memory.recall.search import MemorySearch
from tests.support.recall import (
    ANN,
    AT,
    GivingRetriever,
    Shelf,
    StuckRetriever,
    make_item,
)

STALE = make_item("not_stale", "article-list-query 参数格式：topic 字符串")
TEA = make_item("not_tea", "Ann likes green tea")
OWNER = make_item("not_owner", "article-list-query 负责人：平台组，参数格式见门户")
LIKELY_TEA = Candidate(item_id="not_tea", strength=0.9)
UNLIKELY = Candidate(item_id="not_owner", strength=0.1, is_weak=True)
IN_USE = ("mcp__ata__article-list-query",)


def search_on(shelf: Shelf, *retrievers: Retriever) -> MemorySearch:
    return MemorySearch(shelf, retrievers, now=lambda: AT + timedelta(days=1))


async def test_a_stale_item_is_held_back_before_scoring_and_takes_nobodys_place() -> None:
    search = search_on(
        Shelf.of(STALE, TEA, OWNER), GivingRetriever.of("not_stale", "not_tea", "not_owner")
    )

    found = await search.search("article", scope=ANN, active_tools=IN_USE)

    assert [hit.item.id for hit in found.hits] == ["not_tea", "not_owner"]
    assert found.held_back == [HeldBack(id="not_stale", reason="stale_tool_schema")]
    assert "place 1" in found.hits[0].why
    assert found.hits[0].score == 1


async def test_what_was_replaced_is_held_back() -> None:
    old = replace(make_item("fact_old", "The demo is on Thursday."), kind="fact", valid_until=AT)
    new = replace(make_item("fact_new", "The demo is on Friday."), kind="fact")
    search = search_on(Shelf.of(old, new), GivingRetriever.of("fact_old", "fact_new"))
    found = await search.search("When is the demo?", scope=ANN)
    assert [hit.item for hit in found.hits] == [new]
    assert found.held_back == [HeldBack(id="fact_old", reason="superseded")]


async def test_unlikely_items_go_through_the_same_filter_and_are_not_told_as_held_back() -> None:
    search = search_on(
        Shelf.of(STALE, TEA, OWNER), GivingRetriever.of("not_tea", weak=["not_stale", "not_owner"])
    )
    found = await search.search("tea", scope=ANN, active_tools=IN_USE)
    assert [hit.item for hit in found.hits] == [TEA, OWNER]
    assert found.held_back == []


async def test_a_hit_is_weak_unless_one_of_the_retrievers_holds_it_worth_showing() -> None:
    words = GivingRetriever("fulltext", RetrieverAnswer(candidates=[LIKELY_TEA, UNLIKELY]))
    meaning = GivingRetriever.of("not_owner", name="vector")
    for more, weak in (([], [OWNER]), ([meaning], [])):
        hits = (await search_on(Shelf.of(TEA, OWNER), words, *more).search("tea", scope=ANN)).hits
        assert [hit.item for hit in hits if hit.is_weak] == weak


async def test_what_is_held_back_does_not_make_others_look_far_off() -> None:
    best = Candidate(item_id="not_stale", strength=0.9, nearness=1.0)
    other = Candidate(item_id="not_tea", strength=0.3, nearness=0.3)
    words = GivingRetriever("fulltext", RetrieverAnswer(candidates=[best, other]))
    search = search_on(Shelf.of(STALE, TEA), words)
    found = await search.search("tea", scope=ANN, active_tools=IN_USE)
    assert [(hit.item, hit.nearness) for hit in found.hits] == [(TEA, 1.0)]


async def test_nothing_outside_the_span_is_found_by_any_retriever() -> None:
    old = replace(TEA, id="not_old", occurred_at=AT - timedelta(days=9))
    retriever = GivingRetriever.of("not_old", "not_tea")
    span = TimeSpan(since=AT - timedelta(days=1))
    found = await search_on(Shelf.of(old, TEA), retriever).search("tea", scope=ANN, span=span)
    assert [hit.item for hit in found.hits] == [TEA]
    assert retriever.asked[0].span == span


async def test_while_vectors_are_late_words_decide_as_without_them() -> None:
    words = GivingRetriever("fulltext", RetrieverAnswer(candidates=[LIKELY_TEA, UNLIKELY]))
    with anyio.fail_after(30):
        found = await search_on(Shelf.of(TEA, OWNER), words, StuckRetriever()).search(
            "tea", scope=ANN, deadline_s=1.0
        )
    assert [(hit.item, hit.is_weak) for hit in found.hits] == [(TEA, False), (OWNER, True)]
    assert found.degraded == ("vector_timeout",)


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
    await search_on(Shelf.of(), retriever).search("first " + "x" * 20_000 + " last", scope=ANN)
    first, last = (question.text for question in retriever.asked)
    assert (first[:6], last[-5:]) == ("first ", " last")
    assert len(first) + len(last) < 1000


async def _breaks() -> None:
    await anyio.lowlevel.checkpoint()
    raise StoreUnavailable("gone")


@pytest.mark.parametrize(
    ("before", "reason"), [(_breaks, "fulltext_error"), (anyio.sleep_forever, "fulltext_timeout")]
)
async def test_a_store_that_is_broken_or_slow_is_named_and_nothing_is_shown(
    before: Callable[[], Awaitable[None]], reason: str
) -> None:
    search = search_on(Shelf({TEA.id: TEA}, before), GivingRetriever.of("not_tea"))
    with anyio.fail_after(30):
        found = await search.search("tea", scope=ANN, deadline_s=1.0)
    assert (found.hits, found.degraded) == ((), (reason,))


GREEN_TEA, MILK, BREAD = (make_item(f"not_{name}", name) for name in ("tea", "milk", "bread"))


@pytest.mark.parametrize(
    ("words", "alone"),
    [(["not_tea", "not_milk"], [["not_milk"]]), (["not_tea", BREAD.id], [])],
    ids=["found by words alone", "found by both, or not the caller's"],
)
async def test_what_meaning_did_not_find_is_told(words: list[str], alone: list[list[str]]) -> None:
    told: list[Sequence[str]] = []
    search = MemorySearch(
        Shelf.of(GREEN_TEA, MILK),
        [GivingRetriever.of(*words), GivingRetriever.of("not_tea", name="vector")],
        now=lambda: AT + timedelta(days=1),
        on_words_alone=told.append,
    )
    await search.search("tea and milk and bread", scope=ANN)
    assert told == alone


ASKED = "which server is the primary"


def test_a_question_before_amid_or_after_what_was_pasted_is_asked_by_itself() -> None:
    spaced = LOG.replace("\n", "\n\n")
    for gap, pasted in product(("\n", "\n\n"), (LOG, spaced, "长文。" * 2000)):
        for message in (f"{ASKED}{gap}{pasted}", f"{pasted}{gap}{ASKED}"):
            parts = question_parts(message)
            assert ASKED in parts
            assert sum(map(len, parts)) < 2000
    for question in ("Why is the primary slow?", "主库为什么慢？"):
        assert question in question_parts(f"{LOG}\n{question}\n{LOG}")


def test_a_short_message_is_asked_whole_and_without_what_it_quotes() -> None:
    assert question_parts(ASKED) == [ASKED]
    for quoted in ("```\nKeyError: 'x'\n```", "> KeyError: 'x'"):
        message = f"{ASKED}\n\n{quoted}"
        assert question_parts(message) == [ASKED, message]
        assert question_parts(quoted) == [quoted], "it has nothing of its own"


LOG = "\n".join(f"12:00:{n:02} INFO pool: connection {n} acquired" for n in range(60)) * 6


@dataclass
class LateRetriever:
    """Answers once another one has been asked, too."""

    name: RetrieverName
    other: GivingRetriever

    async def find(self, question: Question, *, limit: int) -> RetrieverAnswer:
        while question not in self.other.asked:
            await anyio.lowlevel.checkpoint()
        return RetrieverAnswer(candidates=[LIKELY_TEA])


def question(text: str = "tea") -> Question:
    return Question(text=text, scope=ANN, kinds=KINDS)


async def test_no_retriever_waits_for_another_and_the_order_is_theirs_and_the_questions() -> None:
    soon = GivingRetriever.of("not_soon", name="vector")
    with anyio.fail_after(30):
        gathered = await gather(
            [LateRetriever("fulltext", soon), soon], [question("a"), question("b")], bound_s=30
        )
    assert [hit.retriever for hit in gathered.found] == ["fulltext", "vector"] * 2
    assert gathered.degraded == ()


@dataclass
class WordStore:
    """Gives one good hit and one that is not about the question."""

    asked: list[tuple[str, int]] = field(default_factory=list)

    async def search(self, text: str, *_: object, limit: int, **__: object) -> list[WordHit]:
        self.asked.append((text, limit))
        return [
            WordHit(item_id="not_good", score=2, coverage=0.8),
            WordHit(item_id="not_far", score=1, coverage=0.1, is_weak=True),
        ]

    async def search_each(
        self, texts: Sequence[str], *more: object, limit: int, **others: object
    ) -> list[list[WordHit]]:
        return [await self.search(text, *more, limit=limit, **others) for text in texts]


async def test_full_text_says_how_well_each_item_fits() -> None:
    store = WordStore()
    answer = await FulltextRetriever(store).find(question(), limit=7)
    assert answer.candidates == [
        Candidate(item_id="not_good", strength=0.8, nearness=1.0),
        Candidate(item_id="not_far", strength=0.1, nearness=0.5, is_weak=True),
    ]
    assert store.asked == [("tea", 7)]
