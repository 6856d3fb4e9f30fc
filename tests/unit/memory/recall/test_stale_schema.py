"""The filter: items whole, what waits for a conversation line by line, and names."""

from dataclasses import replace

import pytest

from memory.recall.stale_schema import StaleSchemaFilter, split_stale_blocking, without_stale_lines
from tests.support.recall import make_item

TOOLS = ("mcp__ata__do-it",)
STALE = "> do-it 参数格式：topic"
LASTING = "> do-it 参数格式的已知问题：UTC"


def test_lines_that_are_stale_go_and_the_others_stay() -> None:
    text = f"Since:\n{STALE}\n{LASTING}\n> a turn ended"
    assert without_stale_lines(text, TOOLS) == f"Since:\n{LASTING}\n> a turn ended"
    assert without_stale_lines(text, ["Task"]) == text


@pytest.mark.parametrize("text", ["the parameter schema: topic", "参数格式：topic"])
def test_an_item_is_judged_by_its_title_its_tags_and_its_text_together(text: str) -> None:
    titled, other = make_item("not_1", text, title="do-it"), make_item("not_2", text, title="Tea")
    assert split_stale_blocking([titled, other], TOOLS)[0] == [other]
    held_back = StaleSchemaFilter.of(TOOLS).judge(titled)
    assert held_back is not None
    assert (held_back.id, held_back.reason) == ("not_1", "stale_tool_schema")


def test_the_text_is_judged_and_not_the_summary_that_runs_heading_and_text_together() -> None:
    item = replace(
        make_item("not_1", "# do-it\n\nParameters of the oven are on its door.", title="do-it"),
        summary="do-it parameters: of the oven are on its door.",
    )
    assert StaleSchemaFilter.of(TOOLS).judge(item) is None


def test_with_no_tools_in_use_nothing_is_held_back() -> None:
    nothing = StaleSchemaFilter.of([])
    assert nothing.judge(make_item("not_1", STALE, title="do-it")) is None
    assert not nothing.is_stale_line(STALE)
    assert not nothing.is_stale_name("do-it 参数格式.md")


@pytest.mark.parametrize("name", ["do-it 参数格式.md", "do-it parameter schema.md"])
def test_a_name_may_say_how_a_tool_is_called(name: str) -> None:
    assert StaleSchemaFilter.of(TOOLS).is_stale_name(name)
    assert not StaleSchemaFilter.of(TOOLS).is_stale_name("do-it.md")
