"""The filter: items whole, what waits for a conversation line by line, and names."""

import pytest

from memory.recall.holding import Holding, hold_back_blocking, without_held_back_lines
from tests.support.recall import make_item

TOOLS = ("mcp__ata__do-it",)
STALE = "> do-it 参数格式：topic"
LASTING = "> do-it 参数格式的已知问题：UTC"


def test_lines_that_are_stale_go_and_the_others_stay() -> None:
    text = f"Since:\n{STALE}\n{LASTING}\n> a turn ended"
    assert without_held_back_lines(text, TOOLS) == f"Since:\n{LASTING}\n> a turn ended"
    assert without_held_back_lines(text, ["Task"]) == text


def test_nothing_is_left_of_a_quotation_without_lines() -> None:
    assert without_held_back_lines(f"Since:\n{STALE}\n{STALE}", TOOLS) == ""
    assert without_held_back_lines("", TOOLS) == ""


@pytest.mark.parametrize("text", ["the parameter schema: topic", "参数格式：topic"])
def test_an_item_is_judged_by_its_title_its_tags_and_its_text_together(text: str) -> None:
    titled, other = make_item("not_1", text, title="do-it"), make_item("not_2", text, title="Tea")
    assert hold_back_blocking([titled, other], TOOLS)[0] == [other]
    held_back = Holding.of(TOOLS).judge(titled)
    assert held_back is not None
    assert (held_back.id, held_back.reason) == ("not_1", "stale_tool_schema")


def test_with_no_tools_in_use_nothing_is_held_back() -> None:
    nothing = Holding.of([])
    assert nothing.judge(make_item("not_1", STALE, title="do-it")) is None
    assert not nothing.holds_back_line(STALE)
    assert not nothing.holds_back_name("do-it 参数格式.md")


@pytest.mark.parametrize("name", ["do-it 参数格式.md", "do-it parameter schema.md"])
def test_a_name_may_say_how_a_tool_is_called(name: str) -> None:
    assert Holding.of(TOOLS).holds_back_name(name)
    assert not Holding.of(TOOLS).holds_back_name("do-it.md")
