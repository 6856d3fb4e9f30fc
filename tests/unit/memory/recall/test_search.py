"""Search: parts of a question, retrievers side by side, and what is left out or named."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import product
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from memory.errors import StoreUnavailable
from memory.items import KINDS, Item, ItemKind
from memory.itemstore import WordHit
from memory.recall.confidence import LEAST_CONFIDENCE
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
from memory.scope import WORKSPACE_OWNER, Scope
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
LIKELY_TEA = Candidate(item_id="not_tea", strength=0.9, confidence=0.6)
UNLIKELY = Candidate(item_id="not_owner", strength=0.1, confidence=0.1)
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


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        ("When is the demo?", ["fact_new"]),
        ("When was the demo in November?", ["fact_new", "trn_0", "trn_1"]),
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
        replace(
            made("trn_0", "turn", "trn_0", "The demo is on Monday."),
            title="The demo is on Monday.",
            occurred_at=AT - timedelta(days=1),
        ),
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


def least_of(count: int) -> dict[str, float]:
    return {f"not_{number}": -1.0 for number in range(count)}


OWNER_NEAR = Candidate(item_id="not_owner", strength=0.6)


@pytest.mark.parametrize(
    ("vectors", "likely"),
    [
        (GivingRetriever.of(weak=["not_tea", "not_owner"]).answer, {"not_tea"}),
        (
            RetrieverAnswer(candidates=[OWNER_NEAR], evidence={"not_tea": -1.0, "not_owner": 2.0}),
            {"not_owner"},
        ),
        (
            RetrieverAnswer(
                candidates=[OWNER_NEAR],
                evidence={"not_tea": 0.5, "not_owner": -2.0},
                evidence_across={"not_tea": -2.0, "not_owner": 2.0},
            ),
            {"not_tea", "not_owner"},
        ),
        (RetrieverAnswer(evidence=least_of(60)), set()),
        (RetrieverAnswer(evidence=least_of(59)), {"not_tea"}),
    ],
    ids=[
        "the surest retriever counts",
        "evidence speaks for what has no words and against what has them",
        "evidence of an item in another script than the question is its own",
        "what is beyond the nearest has the least evidence",
        "or none if all are among them",
    ],
)
async def test_how_likely_a_hit_is(vectors: RetrieverAnswer, likely: set[str]) -> None:
    words = GivingRetriever("fulltext", RetrieverAnswer(candidates=[LIKELY_TEA]))
    search = search_on(Shelf.of(TEA, OWNER), words, GivingRetriever("vector", vectors))
    hits = (await search.search("tea", scope=ANN)).hits
    assert {hit.item.id for hit in hits if hit.confidence >= LEAST_CONFIDENCE} == likely


async def test_while_vectors_are_late_words_decide_as_without_them() -> None:
    words = GivingRetriever("fulltext", RetrieverAnswer(candidates=[LIKELY_TEA, UNLIKELY]))
    with anyio.fail_after(30):
        found = await search_on(Shelf.of(TEA, OWNER), words, StuckRetriever()).search(
            "tea", scope=ANN, deadline_s=0.2
        )
    assert [(hit.item, hit.confidence) for hit in found.hits] == [(TEA, 0.6), (OWNER, 0.1)]
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
        found = await search.search("tea", scope=ANN, deadline_s=0.5)
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
            WordHit(item_id="not_good", score=2, coverage=0.8, confidence=0.7),
            WordHit(item_id="not_far", score=1, coverage=0.1, confidence=0.01),
        ]


async def test_full_text_says_how_well_and_how_likely_each_item_fits() -> None:
    store = WordStore()
    answer = await FulltextRetriever(store).find(question(), limit=7)
    assert answer.candidates == [
        Candidate(item_id="not_good", strength=0.8, nearness=1.0, confidence=0.7),
        Candidate(item_id="not_far", strength=0.1, nearness=0.5, confidence=0.01),
    ]
    assert store.asked == [("tea", 7)]
