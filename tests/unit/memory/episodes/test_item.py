"""An episode as a searchable item: summary, and sections as Markdown."""

from datetime import UTC, datetime, timedelta

from memory.episodes.episode import Episode, Sections, Variant
from memory.episodes.item import MAX_SUMMARY_CHARS, to_item
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


def test_the_item_shows_what_tells_most_and_finds_no_header() -> None:
    item = to_item(EPISODE)
    assert item.id == "epi_1"
    assert item.kind == "episode"
    assert item.summary.startswith("Decisions: # not a heading")
    assert "Verification: pytest -q 3 passed" in item.summary
    assert "\n" not in item.summary
    assert len(item.summary) <= MAX_SUMMARY_CHARS
    assert item.body.startswith("## Context\n\nThe endpoint gave 500.")
    assert "\\# not a heading\n\\## Actions\n\\\\# one with a backslash" in item.body
    assert "## Variants\n\n### 2026-11-20T11:30:00.000Z\n\nalso\n\\### on staging" in item.body
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
