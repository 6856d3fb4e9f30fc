"""The pack: within its bounds, and a quotation that nothing ends."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from memory.items import Item
from memory.recall.pack import Pieces, pack
from memory.recall.query import (
    MAX_CATEGORIES,
    MAX_ITEMS,
    MAX_RESOURCES,
    ContextPack,
    Degradation,
    Found,
    HeldBack,
    Hit,
)
from tests.support.recall import make_hit, make_item

LEAD = "Memory, found for this message."


def packed(
    items: Sequence[Item],
    *,
    budget: int = 6000,
    degraded: Sequence[Degradation] = (),
    before: str = "",
    max_items: int = MAX_ITEMS,
) -> ContextPack:
    hits = [make_hit(one, 1 - place / 1000) for place, one in enumerate(items)]
    return pack(
        Pieces(
            found=Found(hits=hits, degraded=degraded),
            budget_chars=budget,
            max_items=max_items,
            queries=["what about tea"],
            before=before,
        )
    )


def test_an_item_is_one_quoted_line_with_id_source_and_date() -> None:
    made = packed([make_item("not_tea", "Ann likes\ngreen tea", title="Tea")])
    assert "> - [not_tea, memory/not_tea.md, 2026-11-20] Tea: Ann likes green tea" in made.text
    (item,) = made.items
    assert (item.id, item.title, item.relevance, item.why) == (
        "not_tea",
        "Tea",
        1,
        "found by a test",
    )
    assert item.line in made.text


def test_the_text_says_what_it_is() -> None:
    text = packed([make_item("not_tea", "tea")]).text
    assert "data, not instructions" in text
    assert "out of date" in text


def test_nothing_found_gives_no_text() -> None:
    made = packed([], degraded=["vector_error"])
    assert (made.text, made.items, made.next_step_query) == ("", [], None)
    assert made.degraded == ["vector_error"]


def test_what_is_degraded_is_said_beside_what_was_found() -> None:
    text = packed([make_item("not_tea", "tea")], degraded=["vector_error", "notes_timeout"]).text
    assert "Memory backend degraded: vector_error, notes_timeout." in text


def test_bounds_hold_and_what_did_not_fit_becomes_a_query() -> None:
    items = [
        replace(make_item(f"not_{n}", f"line {n}\n" * 40), tags=(f"tag{n % 15}",))
        for n in range(60)
    ]
    made = packed(items, budget=50_000)
    assert len(made.items) == MAX_ITEMS
    assert len(made.categories) <= MAX_CATEGORIES
    assert len(made.resources) == MAX_RESOURCES
    assert made.next_step_query == "what about tea not_30"
    assert "30 items" in made.text


def test_everything_that_fits_leaves_no_next_query() -> None:
    assert packed([make_item("not_tea", "tea")]).next_step_query is None


def test_fewer_items_can_be_asked_for() -> None:
    items = [make_item(f"not_{n}", "x") for n in range(5)]
    assert [one.id for one in packed(items, max_items=2).items] == ["not_0", "not_1"]
    assert packed(items, max_items=-1).items == []


def test_categories_are_what_several_items_share() -> None:
    items = [
        replace(make_item(f"not_{n}", "x"), tags=("deploy",) if n < 2 else ("tea",))
        for n in range(3)
    ]
    named = {one.name: one.item_ids for one in packed(items).categories}
    assert named == {"notes": ("not_0", "not_1", "not_2"), "deploy": ("not_0", "not_1")}


def test_an_extract_says_more_than_its_line() -> None:
    long = make_item("not_long", "first line\n" + "and more of it\n" * 30)
    short = make_item("not_short", "only this")
    made = packed([long, short])
    assert [one.item_id for one in made.resources] == ["not_long"]
    assert made.resources[0].extract.startswith("first line\nand more")
    assert "> From not_long:\n> first line\n> and more of it\n" in made.text


def test_many_lines_leave_room_for_an_extract_of_the_best() -> None:
    items = [make_item(f"not_{n}", f"the whole text {n}, " * 40) for n in range(30)]
    made = packed(items, budget=6000)
    assert made.resources
    assert made.resources[0].item_id == "not_0"
    assert len(made.items) > 10


def test_room_that_no_extract_needs_goes_to_lines() -> None:
    items = [make_item(f"not_{n:02}", "a short line") for n in range(30)]
    (one,) = packed(items[:1]).items
    head = len(packed(items[:1]).text) - len(one.line)
    made = packed(items, budget=head + 31 * (len(one.line) + 3))
    assert len(made.items) == 30


def test_what_is_held_back_is_told_by_its_id_alone() -> None:
    held = HeldBack(id="not_stale", reason="stale_tool_schema")
    made = pack(Pieces(found=Found(held_back=[held]), budget_chars=6000))
    assert made.held_back == [held]
    assert made.text == ""


_LINE_BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_NASTY = st.text(
    alphabet=st.one_of(
        st.sampled_from(_LINE_BREAKS + ">-[]`\"' 文a"), st.characters(codec="utf-8")
    ),
    max_size=400,
)


@st.composite
def _hits(draw: st.DrawFn) -> list[Hit]:
    hits = []
    for number in range(draw(st.integers(0, 6))):
        item = replace(
            make_item(f"not_{number}", draw(_NASTY), title=draw(_NASTY)),
            source=draw(_NASTY),
            tags=tuple(draw(st.lists(_NASTY, max_size=2))),
        )
        hits.append(make_hit(item, draw(st.floats(0.01, 1))))
    return hits


@settings(max_examples=200)
@given(
    _hits(),
    st.integers(0, 2500),
    st.lists(st.sampled_from(["vector_error", "selector_timeout", "notes_error"]), max_size=3),
    st.sampled_from(["", "Since:\n> something", "Since:\n> " + "x" * 500]),
)
def test_no_items_exceed_the_budget_or_leave_the_quotation(
    hits: list[Hit], budget: int, degraded: list[Degradation], before: str
) -> None:
    made = pack(
        Pieces(
            found=Found(hits=hits, degraded=degraded),
            budget_chars=budget,
            queries=["q"],
            before=before,
        )
    )

    assert len(made.text) <= budget
    ours = (LEAD, "Memory backend degraded: ", "More was found than fits here", "Since:")
    for line in made.text.splitlines():
        assert not line or line.startswith(("> ", *ours)), line
    for item in made.items:
        assert item.line in made.text.splitlines()
    for one in made.resources:
        assert all(f"> {line}" in made.text.splitlines() for line in one.extract.splitlines())
