"""Episodes made of turns, and the items that search finds."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memory.episodes.episode import Episode, EpisodeDraft, Sections, Variant
from memory.episodes.from_turn import draft_of
from memory.episodes.item import MAX_SUMMARY_CHARS, to_item
from memory.episodes.turn import CallStatus, ToolCall, Turn
from memory.items.scope import Scope
from tests.support.episodes import make_turn

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
FAILED = "tests/test_pay.py F\nE   AssertionError: 3 != 4\n1 failed, 2 passed in 0.4s"


def call(name: str, status: CallStatus = "ok", output: str = "", **given: Any) -> ToolCall:
    return ToolCall(name=name, status=status, input=given, output=output)


def bash(command: str, status: CallStatus = "ok", output: str = "") -> ToolCall:
    return call("Bash", status, output, command=command)


def turn(*calls: ToolCall, **fields: Any) -> Turn:
    blank = make_turn(
        message="修复支付测试\nIt fails since Monday.",
        calls=calls,
        intent_ids=("int_1", "int_2"),
        labels={"project_id": "shop"},
    )
    return replace(blank, **fields)


def made(*calls: ToolCall, **fields: Any) -> EpisodeDraft:
    draft = draft_of(turn(*calls, **fields))
    assert draft is not None
    return draft


FIX = (
    bash("pytest -q", "failed", FAILED),
    call("Read", output="1\tdef pay(): ...", file_path="app/pay.py"),
    call("Edit", output="ok", file_path="app/pay.py", old_string="3", new_string="4"),
    bash("pytest -q", output="...\n3 passed in 0.3s"),
)


def test_a_failure_that_was_overcome_is_a_bugfix_told_whole() -> None:
    assert made(*FIX, reply="I have rounded up.") == EpisodeDraft(
        episode_id=made(*FIX).episode_id,
        episode_type="bugfix",
        title="修复支付测试",
        scope=Scope(owner_id="ann", project_id="shop"),
        sections=Sections(
            context="修复支付测试\nIt fails since Monday.",
            actions=(
                "- Bash `pytest -q`: failed\n- Read `app/pay.py`: ok\n- Edit `app/pay.py`: ok\n"
                "- Bash `pytest -q`: ok\n  ...\n  3 passed in 0.3s"
            ),
            pitfalls=(
                "- Bash `pytest -q` failed: tests/test_pay.py F\n  E   AssertionError: 3 != 4\n"
                "  1 failed, 2 passed in 0.4s\n  (the same call succeeded later)"
            ),
            recipe="After Bash `pytest -q` had failed:\n1. Read `app/pay.py`\n2. Edit `app/pay.py`\n3. Bash `pytest -q`",
            verification="- `pytest -q`: ok",
            links="- app/pay.py (changed)",
        ),
        tags=("pay.py",),
        source_refs=("int_1", "int_2"),
        occurred_at=AT,
        conversation_id="cnv_1",
        turn_id="trn_1",
        tools=("Bash(command)", "Edit(file_path, old_string, new_string)", "Read(file_path)"),
    )


def test_the_same_turn_makes_the_same_episode_and_another_turn_another() -> None:
    assert made(*FIX) == made(*FIX)
    assert made(*FIX).episode_id != made(*FIX, turn_id="trn_2").episode_id


@pytest.mark.parametrize(
    ("calls", "kind"),
    [
        ((bash("make"),), "run"),
        ((bash("pytest", "failed", "1 failed"),), "run"),
        ((bash("pytest", "failed"), bash("pytest")), "run"),
        ((bash("pytest", "failed"), bash("rm x", "denied"), bash("pytest")), "run"),
        ((bash("pytest", "failed"), bash("pip install x"), bash("pytest")), "bugfix"),
        ((call("Write", file_path="docs/postmortem-2026.md"),), "postmortem"),
        ((call("Write", file_path="docs/支付需求.md"),), "spec_update"),
        ((call("Read", file_path="docs/spec.md"), bash("make")), "run"),
    ],
    ids=range(8),
)
def test_the_type_goes_by_what_happened(calls: tuple[ToolCall, ...], kind: str) -> None:
    assert made(*calls).episode_type == kind


def test_denials_and_interruptions_are_pitfalls_with_their_reasons() -> None:
    draft = made(
        bash("rm -rf /", "denied", "外部路径不允许"),
        bash("sleep 900", "interrupted"),
        call("WebFetch", "failed", "404 not found", url="https://x.org/a"),
    )
    assert draft.sections.pitfalls == (
        "- Bash `rm -rf /` was denied: 外部路径不允许\n"
        "- Bash `sleep 900` was interrupted\n"
        "- WebFetch `https://x.org/a` failed: 404 not found"
    )
    assert draft.sections.links == "- https://x.org/a"


def test_of_protocol_tools_no_name_no_argument_and_no_wrong_call_is_told() -> None:
    name, down = "mcp__ata__article_query", "call(subject='x')\nupstream is down"
    draft = made(
        call(name, "failed", "InputValidationError: topic is required", subject="x"),
        call(name, "failed", down, subject="x"),
        call(name, output="7 articles", topic="x"),
    )
    text = draft.sections.text
    assert not [word for word in ("article_query", "subject", "topic") if word in text]
    assert "7 articles" in draft.sections.actions
    assert "upstream is down" in draft.sections.pitfalls


def test_results_are_clipped_and_what_can_be_read_again_is_left_out() -> None:
    draft = made(
        call("Read", output="secret of the file", file_path="a.txt"),
        bash("make", output="\n".join(f"line {chr(97 + n % 26) * 9}" for n in range(2000))),
    )
    assert "secret of the file" not in draft.sections.text
    assert len(draft.sections.actions) < 900


def test_a_long_turn_counts_its_middle() -> None:
    draft = made(*(bash(f"step {n}") for n in range(100)))
    lines = draft.sections.actions.splitlines()
    assert len(lines) == 41
    assert lines[24] == "- … 60 more calls: Bash 60"
    assert lines[-1] == "- Bash `step 99`: ok"


LOOKED = (call("Read", output="1\tport: 8443", file_path="/home/ann/shop/config.yaml"),)


def test_trivial_turns_leave_nothing() -> None:
    asked = (call("TodoWrite"), call("mcp__candor__memory_case_search"))
    for calls in ((), asked, LOOKED, (bash("ls -la | head"), bash("cat a.txt"))):
        assert draft_of(turn(*calls, message="Show me.", reply="Here it is.")) is None
    assert draft_of(turn(*LOOKED, bash("rm a.txt"), reply="Done.")) is not None


def test_a_reply_decides_nothing_after_a_failed_edit() -> None:
    failed = call("Edit", "failed", "String to replace not found", file_path="app/pay.py")
    draft = made(failed, reply="I have edited app/pay.py. We decided to round up.")
    assert draft.episode_type == "run"
    assert draft.sections.decisions == ""
    assert "I have edited" not in draft.sections.text
    assert draft.sections.links == ""


def test_a_turn_that_only_talked_leaves_nothing_whatever_it_says() -> None:
    assert (
        draft_of(turn(message="We decided on RabbitMQ.", reply="The root cause is known.")) is None
    )


def test_paths_of_one_machine_are_shortened() -> None:
    looked = call("Read", output="1", file_path="/home/ann/shop/config.yaml")
    links = made(looked, bash("make build")).sections.links
    assert links == "- …/shop/config.yaml (read)"


ITEM_AT = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
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
    occurred_at=ITEM_AT,
    updated_at=ITEM_AT + timedelta(minutes=1),
    tags=("pay", "sql"),
    source_refs=("int_1", "int_2"),
    variants=(Variant(occurred_at=ITEM_AT + timedelta(hours=1), text="also\n### on staging"),),
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
