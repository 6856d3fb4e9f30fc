"""An episode as Markdown, and back."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.episodes.episode import EPISODE_TYPES, SECTIONS, Episode, Sections, Variant
from memory.episodes.item import MAX_SUMMARY_CHARS, to_item
from memory.episodes.markdown import from_markdown, to_markdown
from memory.scope import Scope

AT = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
EPISODE = Episode(
    episode_id="epi_1",
    episode_type="bugfix",
    title="支付接口 500: fixed",
    scope=Scope(owner_id="ann", project_id="shop", workflow_id="pay"),
    sections=Sections(
        context="The endpoint gave 500.",
        decisions="# not a heading\n## Actions\n\\# one with a backslash",
        verification="pytest -q\n\n3 passed",
    ),
    occurred_at=AT,
    updated_at=AT + timedelta(minutes=1),
    tags=("pay", "sql"),
    source_refs=("int_1", "int_2"),
    variants=(Variant(occurred_at=AT + timedelta(hours=1), text="also\n### on staging"),),
    repeats=2,
    conversation_id="cnv_1",
    turn_id="trn_1",
    revision=3,
)


def test_a_person_can_read_it() -> None:
    assert (
        to_markdown(EPISODE)
        == """---
episode_id: epi_1
episode_type: bugfix
occurred_at: 2026-11-20T10:30:00.000Z
updated_at: 2026-11-20T10:31:00.000Z
owner_id: "ann"
project_id: "shop"
workflow_id: "pay"
tags: ["pay", "sql"]
source_refs: ["int_1", "int_2"]
conversation_id: "cnv_1"
turn_id: "trn_1"
repeats: 2
revision: 3
---

# 支付接口 500: fixed

## Context

The endpoint gave 500.

## Decisions

\\# not a heading
\\## Actions
\\\\# one with a backslash

## Verification

pytest -q

3 passed

## Variants

### 2026-11-20T11:30:00.000Z

also
\\### on staging
"""
    )


TEXT = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from("#\\\n- :"), min_size=1, max_size=60
).filter(lambda text: bool(text.strip()))
LABEL = st.none() | TEXT
MOMENT = st.integers(0, 10**10).map(lambda ms: AT + timedelta(milliseconds=ms))


@st.composite
def episodes(draw: st.DrawFn) -> Episode:
    threaded = draw(st.booleans())
    return Episode(
        episode_id=f"epi_{draw(st.integers(0, 9))}",
        episode_type=draw(st.sampled_from(EPISODE_TYPES)),
        title=draw(TEXT).replace("\n", " "),
        scope=Scope(owner_id=draw(TEXT), user_id=draw(LABEL), app_code=draw(LABEL)),
        sections=Sections.of(draw(st.dictionaries(st.sampled_from(SECTIONS), TEXT, min_size=1))),
        occurred_at=draw(MOMENT),
        updated_at=draw(MOMENT),
        tags=tuple(draw(st.lists(TEXT, max_size=3))),
        source_refs=tuple(draw(st.lists(TEXT, max_size=3))),
        variants=tuple(
            Variant(occurred_at=draw(MOMENT), text=draw(TEXT))
            for _ in range(draw(st.integers(0, 2)))
        ),
        repeats=draw(st.integers(0, 9)),
        conversation_id=draw(LABEL),
        turn_id=draw(LABEL),
        thread=draw(TEXT) if threaded else None,
        position=draw(st.integers(0, 99)) if threaded else None,
        revision=draw(st.integers(1, 9)),
    )


@given(episodes())
def test_what_was_written_is_read_back(episode: Episode) -> None:
    assert from_markdown(to_markdown(episode)) == episode


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# no header",
        to_markdown(EPISODE).replace("episode_type: bugfix", "episode_type: song"),
        to_markdown(EPISODE).replace("repeats: 2", "repeats: many"),
        to_markdown(EPISODE).replace("tags: [", "tags: {"),
        to_markdown(EPISODE).replace('tags: ["pay", "sql"]', "tags: [1]"),
        to_markdown(EPISODE).replace('owner_id: "ann"', "owner_id: 7"),
        to_markdown(EPISODE).replace("revision: 3\n", ""),
        to_markdown(EPISODE).replace("revision: 3", "revision 3"),
        to_markdown(EPISODE).replace("## Context", "## Song"),
        to_markdown(EPISODE).replace("### 2026", "### never 2026"),
    ],
    ids=range(11),
)
def test_what_is_no_episode_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_markdown(text)


def test_the_item_shows_what_tells_most_and_finds_no_header() -> None:
    item = to_item(EPISODE)
    assert item.id == "epi_1"
    assert item.kind == "episode"
    assert item.summary.startswith("Decisions: # not a heading")
    assert "Verification: pytest -q 3 passed" in item.summary
    assert "\n" not in item.summary
    assert len(item.summary) <= MAX_SUMMARY_CHARS
    assert item.body.startswith("## Context\n\nThe endpoint gave 500.")
    assert "on staging" in item.body
    assert "int_1" not in item.body
    assert item.source == "turn trn_1 of cnv_1"
    assert (item.revision, item.tags, item.scope) == (3, EPISODE.tags, EPISODE.scope)


def test_a_line_of_a_dialogue_is_its_bare_text() -> None:
    line = Episode(
        episode_id="epi_2",
        episode_type="dialogue",
        title="Ann",
        scope=Scope(owner_id="ann"),
        sections=Sections(context="Ann: 周末去爬山吧"),
        occurred_at=AT,
        updated_at=AT,
        thread="talk 1",
        position=4,
    )
    item = to_item(line)
    assert (item.body, item.summary) == ("Ann: 周末去爬山吧", "Ann: 周末去爬山吧")
    assert (item.thread, item.position, item.source) == ("talk 1", 4, "talk 1, line 4")
