"""The pack: within its bounds, and a quotation that nothing ends."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from memory.items.item import Item
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
    QuotedItem,
    QuotedNotes,
)
from tests.support.recall import make_hit, make_item

LEAD = "Memory, found for this message."


def packed(
    items: Sequence[Item],
    *,
    budget: int = 6000,
    degraded: Sequence[Degradation] = (),
    held_back: Sequence[HeldBack] = (),
    notes: QuotedNotes | None = None,
) -> ContextPack:
    hits = [make_hit(one, 1 - place / 1000) for place, one in enumerate(items)]
    return pack(
        Pieces(
            found=Found(hits=hits, degraded=degraded, held_back=held_back),
            budget_chars=budget,
            queries=["what about tea"],
            notes=notes or QuotedNotes(),
        )
    )


def test_an_item_is_one_quoted_line_with_id_kind_date_and_source_and_what_is_degraded_is_said() -> (
    None
):
    tea = make_item("not_tea", "Ann likes\ngreen tea", title="Tea")
    made = packed([tea], degraded=["vector_error", "notes_timeout"])
    line = "> - [not_tea, note, 2026-11-20, memory/not_tea.md] Tea: Ann likes green tea"
    (item,) = made.items
    assert (item.id, item.title, item.relevance, item.line) == ("not_tea", "Tea", 1, line)
    assert line in made.text.splitlines()
    assert "Memory backend degraded: vector_error, notes_timeout." in made.text


def test_a_title_that_the_text_begins_with_is_not_said_twice() -> None:
    (item,) = packed(
        [make_item("trn_a", "写完了。发给她。\n→ 好。", title="写完了。发给她。")]
    ).items
    assert item.line.endswith("] 写完了。 发给她。 → 好。")


TITLES = [
    "The payment gateway times out",
    "Why the payment gateway lost ERR_CONN_RESET",
    "ERR_CONN_RESET in the payment run of 2025",
    "数据库连接池太小",
    "升级之后数据库连接失败",
    "Lunch",
]


def test_categories_are_tags_and_topics_of_titles_that_several_items_share() -> None:
    items = [
        make_item(f"not_{n}", "x", title=title, tags=("deploy",) if n > 3 else (f"tag{n}",))
        for n, title in enumerate(TITLES)
    ]
    named = {category.name: category.item_ids for category in packed(items).categories}
    assert named == {
        "notes": tuple(f"not_{n}" for n in range(6)),
        "deploy": ("not_4", "not_5"),
        "payment": ("not_0", "not_1", "not_2"),
        "payment gateway": ("not_0", "not_1"),
        "err conn reset": ("not_1", "not_2"),
        "数据库连接": ("not_3", "not_4"),
    }


def test_each_text_stands_there_once_by_what_the_question_asks_for() -> None:
    filler = [f"Sentence {n} says nothing of it." for n in range(60)]
    body = "\n".join([*filler[:30], "The tea is in the red tin.", *filler[30:]])
    made = packed([make_item("not_long", body), make_item("not_short", "only this")])
    assert made.text.count("The tea is in the red tin.") == 1
    assert made.text.count("only this") == 1
    assert len(made.text) < 1_100
    (line,) = [line for line in made.text.splitlines() if "red tin" in line]
    assert line.startswith("> - [not_long, note, 2026-11-20, memory/not_long.md] not_long: … ")
    assert line.endswith(" …")


def test_what_the_line_of_an_item_says_is_not_said_again() -> None:
    items = [
        replace(make_item(f"epi_{n}", "x"), kind="episode", title=title, source=f"episode epi_{n}")
        for n, title in enumerate(("tea", "rain"))
    ]
    text = packed(items).text
    assert "> - [epi_0, episode, 2026-11-20] tea: x" in text.splitlines()
    assert "In common: " not in text


def test_what_the_items_have_in_common_is_one_bounded_line() -> None:
    items = [
        make_item(f"not_{n}", "x", tags=tuple(f"tag {t} " * 9 for t in range(9))) for n in range(3)
    ]
    (line,) = [line for line in packed(items).text.splitlines() if line.startswith("In common: ")]
    assert "notes (3)" in line
    assert len(line) < 150


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
    assert "More was found (30)" in made.text


def told(*items: Item, partly: Sequence[Item] = (), held: Sequence[str] = ()) -> QuotedNotes:
    """Notes that quote items: whole ones, then some of which only the beginning stands there."""
    quoted = [
        QuotedItem(item=item, line=f"> {item.body[:9]}", is_whole=item not in partly)
        for item in (*items, *partly)
    ]
    return QuotedNotes(
        text="\n".join(["Answer from these:", *(line.line for line in quoted)]),
        items=quoted,
        held_back=[HeldBack(id=held_back, reason="stale_tool_schema") for held_back in held],
    )


def packed_with(notes: QuotedNotes, *found: Item, held: Sequence[str] = ()) -> ContextPack:
    held_back = [HeldBack(id=held_back, reason="stale_tool_schema") for held_back in held]
    return packed(found, held_back=held_back, notes=notes)


TEA, SHOP, ZH = (
    make_item("not_tea", "Ann likes green tea"),
    make_item("not_shop", "the shop\n" * 60),
    make_item("not_zh", "部署从九点开始，十点结束"),
)


def test_notes_that_were_asked_for_are_items_with_their_ids_and_say_why() -> None:
    made = packed_with(told(TEA, ZH), SHOP)
    assert [(item.id, item.kind, item.source, item.why) for item in made.items] == [
        ("not_tea", "note", "memory/not_tea.md", "asked about memory"),
        ("not_zh", "note", "memory/not_zh.md", "asked about memory"),
        ("not_shop", "note", "memory/not_shop.md", "found by a test"),
    ]
    assert {category.name: category.item_ids for category in made.categories} == {
        "notes": ("not_tea", "not_zh", "not_shop")
    }
    assert made.text.startswith(
        "Answer from these:\n> Ann likes\n> 部署从九点开始，十\n\nMemory, found"
    )
    assert all(item.line in made.text.splitlines() for item in made.items)


def test_what_the_notes_tell_whole_and_search_found_too_stands_there_once() -> None:
    made = packed_with(told(TEA, SHOP), SHOP, TEA)
    assert [item.id for item in made.items] == ["not_tea", "not_shop"]
    assert made.text == told(TEA, SHOP).text
    assert (made.resources, made.next_step_query) == ([], None)


def test_what_the_notes_tell_in_part_keeps_the_line_that_search_gives() -> None:
    made = packed_with(told(partly=[SHOP]), SHOP, TEA)
    assert [(item.id, item.why) for item in made.items] == [
        ("not_shop", "asked about memory; found by a test"),
        ("not_tea", "found by a test"),
    ]
    assert "> - [not_shop, note, 2026-11-20, memory/not_shop.md] " in made.text


def test_what_is_held_back_of_notes_is_told_once_and_never_shown() -> None:
    made = packed_with(told(TEA, held=["not_old", "not_shop"]), SHOP, held=["not_old", "epi_old"])
    assert [held.id for held in made.held_back] == ["not_old", "epi_old", "not_shop"]
    assert [item.id for item in made.items] == ["not_tea"]
    assert "the shop" not in made.text
    assert made.next_step_query is None


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


@given(
    _hits(),
    st.integers(0, 2500),
    st.lists(st.sampled_from(["vector_error", "selector_timeout", "notes_error"]), max_size=3),
    st.sampled_from(["", "Since:\n> something", "Since:\n> " + "x" * 500]),
    st.lists(st.sampled_from([None, True, False]), min_size=6, max_size=6),
)
def test_no_items_exceed_the_budget_or_leave_the_quotation(
    hits: list[Hit],
    budget: int,
    degraded: list[Degradation],
    before: str,
    are_told: list[bool | None],
) -> None:
    quoted = [
        QuotedItem(item=hit.item, line=f"> {hit.item.id}", is_whole=is_whole)
        for hit, is_whole in zip(hits, are_told, strict=False)
        if is_whole is not None
    ]
    text = "\n".join(["Answer from these:", *(line.line for line in quoted)])
    made = pack(
        Pieces(
            found=Found(hits=hits, degraded=degraded),
            budget_chars=budget,
            queries=["q"],
            before=before,
            notes=QuotedNotes(text=text, items=quoted) if quoted else QuotedNotes(),
        )
    )

    assert len(made.text) <= budget
    assert len({item.id for item in made.items}) == len(made.items)
    ours = (
        LEAD,
        "Answer from these:",
        "Memory backend degraded: ",
        "More was found",
        "In common: ",
        "Since:",
    )
    for line in made.text.splitlines():
        assert not line or line.startswith(("> ", *ours)), line
    for item in made.items:
        assert item.line in made.text.splitlines()
    assert all(resource.extract in made.text for resource in made.resources)
