"""The reader: from a query pack to a context pack, by every path through the filter."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import anyio
import pytest

from memory.errors import StoreUnavailable
from memory.items.item import KINDS, Item, ItemKind
from memory.items.scope import Scope
from memory.items.store import NewestItems
from memory.items.timespan import ALL_TIME, TimeSpan
from memory.recall.query import Found, HeldBack, QueryPack, QuotedItem, QuotedNotes
from memory.recall.reader import RecallReader
from memory.recall.retrievers import Candidate, Retriever, RetrieverAnswer
from memory.recall.search import MemorySearch
from memory.recall.select import Selector
from memory.remote.small_model import ModelUnavailable
from tests.support.recall import (
    ANN,
    AT,
    BrokenRetriever,
    GivingRetriever,
    Model,
    Notes,
    Shelf,
    StuckRetriever,
    Waiting,
    make_hit,
    make_item,
)

STALE = make_item("not_stale", "article-list-query 的调用格式：{topic: SENTINEL-4417}")
STALE_EN = make_item("not_stale_en", "article-list-query parameter schema: SENTINEL-4417")
PATH = make_item("not_path", "article-list-query 升级路径：调用失败时找 ATA 值班 TOKEN-7731")
TEA = make_item("not_tea", "Ann likes green tea")
SHELF = Shelf.of(STALE, STALE_EN, PATH, TEA)
IN_USE = ("Read", "mcp__ata__article-list-query")
QUERY = QueryPack(
    queries=["how do I call article-list-query"],
    scope=ANN,
    active_tools=IN_USE,
    conversation_id="cnv_1",
)


def reader_on(
    *retrievers: Retriever,
    model: Model | None = None,
    pending: Waiting | None = None,
    notes: Notes | None = None,
    items: NewestItems | None = None,
) -> RecallReader:
    return RecallReader(
        MemorySearch(SHELF, retrievers, now=lambda: AT + timedelta(days=1)),
        selector=None if model is None else Selector(model, timeout_s=1.0),
        pending=pending,
        about_memory=notes,
        items=items,
    )


EVERYTHING = GivingRetriever.of("not_stale", "not_stale_en", "not_path", "not_tea")
VECTORS = GivingRetriever.of("not_stale", "not_path", name="vector")
ALL_IDS = '["not_stale", "not_stale_en", "not_path", "epi_unknown"]'
LEAD = "Answer from these."
QUOTED = QuotedNotes(
    text=f"{LEAD}\n\nmemory/not_path.md:\n> {PATH.summary}",
    items=[QuotedItem(item=PATH, line=f"> {PATH.summary}", is_whole=True)],
    held_back=[HeldBack(id="not_stale", reason="stale_tool_schema")],
)

CHOOSING = replace(QUERY, mode="llm")
LITTLE = GivingRetriever.of("not_path", weak=["not_stale", "not_stale_en"])
ABOUT = replace(QUERY, queries=["memory 记忆"])
PATHS: dict[str, tuple[RecallReader, QueryPack]] = {
    "rag with both retrievers": (reader_on(EVERYTHING, VECTORS), QUERY),
    "vectors alone": (reader_on(BrokenRetriever("fulltext"), VECTORS), QUERY),
    "vectors slow": (reader_on(EVERYTHING, StuckRetriever()), replace(QUERY, deadline_s=1.5)),
    "vectors degraded": (reader_on(EVERYTHING, VECTORS.degraded("vector_rebuilding")), QUERY),
    "model": (reader_on(EVERYTHING, model=Model(ALL_IDS)), CHOOSING),
    "little found, the rest weak": (reader_on(LITTLE, model=Model(ALL_IDS)), CHOOSING),
    "notes that were asked for": (reader_on(notes=Notes(QUOTED)), ABOUT),
    "notes found, too": (reader_on(EVERYTHING, VECTORS, notes=Notes(QUOTED)), ABOUT),
}


@pytest.mark.parametrize("path", PATHS)
async def test_no_path_shows_what_is_stale_and_each_shows_what_is_durable(path: str) -> None:
    reader, query = PATHS[path]
    with anyio.fail_after(30):
        pack = await reader.recall(query)
    shown = repr(replace(pack, held_back=[]))
    assert not [word for word in ("SENTINEL-4417", "'not_stale") if word in shown]
    assert "TOKEN-7731" in pack.text


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (None, "selector_disabled"),
        (Model(breaks_with=ModelUnavailable("no")), "selector_error"),
        (Model(breaks_with=OSError("no")), "selector_error"),
        (Model("SENTINEL-4417!"), "selector_error"),
        (Model('["not_stale", "not_stale_en"]'), "selector_error"),
        (Model(is_stuck=True), "selector_timeout"),
    ],
    ids=["absent", "failing", "broken", "talking", "choosing what is held back", "slow"],
)
async def test_where_the_model_is_no_help_what_was_found_first_stands(
    model: Model | None, reason: str
) -> None:
    with anyio.fail_after(30):
        pack = await reader_on(EVERYTHING, model=model).recall(CHOOSING)
    assert [item.id for item in pack.items] == ["not_path", "not_tea"]
    assert [(held.id, held.reason) for held in pack.held_back] == [
        ("not_stale", "stale_tool_schema"),
        ("not_stale_en", "stale_tool_schema"),
    ]
    assert pack.degraded == (reason,)
    assert "SENTINEL" not in pack.text


async def test_the_gateways_own_records_are_never_filtered() -> None:
    told = "Since:\n> Bash (article-list-query parameter schema): the call failed, cut off"
    pack = await reader_on(pending=Waiting(told, ("int_1",))).recall(QUERY)
    assert pack.text == told
    assert pack.pending_intent_ids == ("int_1",)


async def test_pending_context_goes_in_first_or_stays_pending_where_it_does_not_fit() -> None:
    pending = Waiting("Since:\n> a turn was interrupted " + "x" * 300, ("int_1",))
    reader = reader_on(EVERYTHING, pending=pending)
    pack = await reader.recall(QUERY)
    assert pack.text.startswith(f"{pending.text}\n\nMemory")
    assert pack.pending_intent_ids == ("int_1",)
    pack = await reader.recall(replace(QUERY, budget_chars=250))
    assert pack.pending_intent_ids == ()
    assert len(pack.text) <= 250


class LeakingSelector(Selector):
    """Gives back what it was never given."""

    async def select(
        self,
        queries: Sequence[str],
        found: Found,
        active_tools: Sequence[str],
        *,
        deadline_s: float | None = None,
    ) -> Found:
        return replace(found, hits=[make_hit(STALE), *found.hits])


async def test_the_filter_runs_once_more_after_the_choice() -> None:
    search = MemorySearch(SHELF, [GivingRetriever.of("not_path", "not_tea")], now=lambda: AT)
    reader = RecallReader(search, selector=LeakingSelector(Model()))
    pack = await reader.recall(CHOOSING)
    assert [item.id for item in pack.items] == ["not_path", "not_tea"]
    assert [held.id for held in pack.held_back] == ["not_stale"]


async def test_the_model_chooses_and_orders() -> None:
    model = Model('Here: ["not_tea", "not_path", "not_tea"]')
    pack = await reader_on(EVERYTHING, model=model).recall(CHOOSING)
    assert [item.id for item in pack.items] == ["not_tea", "not_path"]
    assert "chosen by the model" in pack.items[0].why
    assert pack.degraded == ()


async def test_a_model_that_chooses_nothing_is_believed() -> None:
    pack = await reader_on(EVERYTHING, model=Model("[]")).recall(CHOOSING)
    assert (list(pack.items), pack.text, pack.degraded) == ([], "", ())


async def test_the_model_has_its_own_time_after_the_deadline() -> None:
    given: list[float] = []

    class Timed(Model):
        async def __call__(self, *, system: str, prompt: str, timeout_s: float) -> str:
            given.append(timeout_s)
            return await super().__call__(system=system, prompt=prompt, timeout_s=timeout_s)

    reader = RecallReader(
        MemorySearch(SHELF, [EVERYTHING], now=lambda: AT), selector=Selector(Timed())
    )
    await reader.recall(replace(CHOOSING, deadline_s=10, selecting_s=30))
    assert given == [5.0], "the selector's own bound"


async def test_notes_go_in_where_memory_is_asked_about_and_search_would_look_for_them() -> None:
    reader = reader_on(GivingRetriever.of(), notes=Notes(QUOTED))
    for question in ("what is in your memory", "你的记忆里有什么"):
        asked = replace(QUERY, queries=[question])
        pack = await reader.recall(asked)
        assert pack.text == QUOTED.text
        assert [(item.id, item.why) for item in pack.items] == [("not_path", "asked about memory")]
        assert [held.id for held in pack.held_back] == ["not_stale"]
        for other in (
            QUERY,
            replace(asked, kinds=["episode", "case"]),
            replace(asked, scope=replace(ANN, project_id="ledger")),
        ):
            pack = await reader.recall(other)
            assert (pack.text, pack.items, pack.held_back) == ("", [], [])


async def test_notes_are_asked_for_within_the_querys_bounds_and_with_its_tools() -> None:
    notes = Notes()
    query = replace(QUERY, queries=["tea", "memory"], budget_chars=1000, max_items=7)
    await reader_on(notes=notes).recall(query)
    await reader_on(notes=notes).recall(replace(query, max_items=-1))
    assert notes.asked == [("memory", 500, 7, IN_USE), ("memory", 500, 0, IN_USE)]


@pytest.mark.parametrize(
    ("notes", "pending", "reason"),
    [
        (Notes(breaks_with=OSError("gone")), None, "notes_error"),
        (None, Waiting(breaks_with=StoreUnavailable("gone")), "memory_failed"),
        (None, Waiting(breaks_with=ValueError("bad row")), "memory_failed"),
    ],
    ids=["notes", "pending unavailable", "pending"],
)
async def test_what_is_broken_is_named_and_the_rest_stands(
    notes: Notes | None, pending: Waiting | None, reason: str
) -> None:
    query = replace(QUERY, queries=["memory"], deadline_s=30)
    with anyio.fail_after(30):
        pack = await reader_on(GivingRetriever.of("not_tea"), notes=notes, pending=pending).recall(
            query
        )
    assert [item.id for item in pack.items] == ["not_tea"]
    assert pack.degraded == (reason,)
    assert reason in pack.text


@dataclass
class Episodes:
    """Has one episode."""

    kinds: list[Sequence[ItemKind]] = field(default_factory=list)

    async def newest(
        self,
        scope: Scope,
        *,
        kinds: Sequence[ItemKind] = KINDS,
        limit: int,
        span: TimeSpan = ALL_TIME,
    ) -> Sequence[Item]:
        self.kinds.append(kinds)
        return [replace(TEA, kind="episode")]


WORDS_BROKEN = BrokenRetriever("fulltext")


@pytest.mark.parametrize(
    ("retrievers", "kinds", "shown"),
    [
        ([WORDS_BROKEN], KINDS, ["not_tea"]),
        ([WORDS_BROKEN], ("fact",), []),
        ([WORDS_BROKEN, VECTORS], KINDS, ["not_path"]),
        ([BrokenRetriever("vector")], KINDS, []),
    ],
    ids=["nothing answered", "no episodes wanted", "vectors answered", "words answered"],
)
async def test_the_newest_episodes_stand_in_where_no_search_answered(
    retrievers: list[Retriever], kinds: Sequence[ItemKind], shown: list[str]
) -> None:
    episodes = Episodes()
    pack = await reader_on(*retrievers, items=episodes).recall(replace(QUERY, kinds=kinds))
    assert [item.id for item in pack.items] == shown
    assert "Memory backend degraded" in pack.text or not shown
    assert episodes.kinds == ([["episode"]] if shown == ["not_tea"] else [])


async def test_the_newest_follow_what_was_found_and_tell_nothing_twice() -> None:
    """The newest is the episode of a turn that the search found."""
    turn = replace(make_item("trn_1", "the tea of memory"), kind="turn", turn_id="trn_1")
    search = MemorySearch(Shelf.of(turn), [GivingRetriever.of("trn_1")], now=lambda: AT)

    class Newest(Episodes):
        async def newest(self, scope: Scope, **asked: object) -> Sequence[Item]:
            made = [
                make_item(f"epi_{n}", "tea", kind="episode", turn_id=f"trn_{n}") for n in (1, 2)
            ]
            return [] if asked["kinds"] == ["fact"] else made

    reader = RecallReader(search, about_memory=Notes(), items=Newest())
    pack = await reader.recall(replace(ABOUT, active_tools=()))
    assert [item.id for item in pack.items] == ["trn_1", "epi_2"]


async def test_what_was_found_comes_though_everything_else_is_stuck() -> None:
    reader = reader_on(
        GivingRetriever.of("not_tea"),
        StuckRetriever(),
        model=Model(is_stuck=True),
        notes=Notes(is_stuck=True),
        pending=Waiting(is_stuck=True),
    )
    with anyio.fail_after(30):
        pack = await reader.recall(replace(ABOUT, mode="llm", deadline_s=1.5))
    assert [item.id for item in pack.items] == ["not_tea"]
    late = ("vector", "selector", "notes", "memory")
    assert set(pack.degraded) == {f"{name}_timeout" for name in late}


async def test_whoever_stops_waiting_stops_the_work() -> None:
    stuck = StuckRetriever()
    with anyio.move_on_after(0.01) as scope:
        await reader_on(stuck).recall(QUERY)
    assert scope.cancelled_caught
    assert stuck.is_stopped


async def test_likely_items_behind_many_unlikely_ones_are_shown_and_the_rest_is_counted() -> None:
    items = [make_item(f"not_{n}", f"Note {n} on tea.") for n in range(30)]
    candidates = [
        Candidate(item_id=item.id, strength=0.9, is_weak=n < 15) for n, item in enumerate(items)
    ]
    words = GivingRetriever(answer=RetrieverAnswer(candidates=candidates))
    reader = RecallReader(MemorySearch(Shelf.of(*items), [words], now=lambda: AT))

    pack = await reader.recall(QueryPack(queries=["tea"], scope=ANN))

    assert [item.id for item in pack.items] == [f"not_{n}" for n in range(15, 20)]
    assert "More was found (10)" in pack.text
