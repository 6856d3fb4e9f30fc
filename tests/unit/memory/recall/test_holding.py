"""The filter on what comes as text: the notes, and what waits for a conversation."""

from memory.recall.holding import without_held_back_blocks, without_held_back_lines

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


def test_a_note_that_is_stale_goes_whole_and_the_others_stay() -> None:
    lead = "Answer from these notes."
    stale = "memory/a.md:\n> # do-it\n> \n> ## Parameters\n> - topic"
    other = f"memory/b.md:\n{LASTING}\n> 参数格式 of do-it"
    text = f"{lead}\n\n{stale}\n\n{other}"
    assert without_held_back_blocks(text, TOOLS) == f"{lead}\n\n{other}"
    assert without_held_back_blocks(text, ["Task"]) == text


def test_a_notes_own_name_may_name_the_tool() -> None:
    text = "Lead.\n\nmemory/do-it.md:\n> ## Parameters\n> - topic"
    assert without_held_back_blocks(text, TOOLS) == "Lead."
