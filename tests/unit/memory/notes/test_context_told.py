"""Which items of the notes go in, and which are held back: the same ones as in search."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.items import Item
from memory.notes.folder import list_notes_blocking, read_note_blocking
from memory.notes.notes_context import NotesBounds, quoted_notes
from memory.notes.sections import items_of
from memory.recall.query import MAX_ITEMS, QuotedNotes
from memory.recall.stale_schema import split_stale_blocking
from policies.secrets import mask_secrets
from tests.unit.memory.notes.folders import workspace_with

ASK = "what do you remember?"
ASK_ZH = "你的记忆里有什么？"
IN_USE = ("Read", "mcp__ata__do-it")
LONG = "A sentence that fills the room. 一句填满房间的话。\n" * 60
STALE = {
    "en": "do-it parameter schema: topic, SENTINEL",
    "zh": "do-it 的参数格式：topic，SENTINEL",
}
LASTING = {
    "en": "Known issue: do-it takes UTC only. KEPT",
    "zh": "do-it 的已知问题：只接受 UTC。KEPT",
}


def told(
    workspace: Path,
    message: str = ASK,
    *,
    budget: int = 3000,
    most_items: int = MAX_ITEMS,
    tools: Sequence[str] = IN_USE,
) -> QuotedNotes:
    bounds = NotesBounds(budget_chars=budget, most_items=most_items, active_tools=tools)
    return quoted_notes(workspace, message, bounds)


def items_in(workspace: Path) -> dict[str, Item]:
    """Return the indexed items of all notes by title."""
    notes = [
        read_note_blocking(workspace, file, mask_secrets) for file in list_notes_blocking(workspace)
    ]
    return {item.title: item for note in notes if note is not None for item in items_of(note)}


def noted(root: Path, files: Mapping[str, str | bytes]) -> Path:
    return workspace_with(root, files)


def test_what_goes_in_is_told_with_the_ids_that_search_gives(tmp_path: Path) -> None:
    workspace = noted(
        tmp_path, {"ops.md": f"# 部署\n九点\n# Who\nBob\n{LONG}", "tea.yaml": "tea: green"}
    )
    notes = told(workspace, budget=20_000)
    items = items_in(workspace)
    assert [item.item for item in notes.items] == [items["tea"], items["部署"], items["Who"]]
    assert [item.line for item in notes.items] == ["> tea: green", "> # 部署", "> # Who"]
    assert all(item.is_whole and item.line in notes.text.splitlines() for item in notes.items)
    assert notes.held_back == []


def test_of_a_note_that_is_cut_only_what_stands_there_is_told(tmp_path: Path) -> None:
    workspace = noted(tmp_path, {"ops.md": f"# One\n九点\n# Two\n{LONG * 2}# Three\nKEPT OUT\n"})
    notes = told(workspace)
    assert [(item.item.title, item.is_whole) for item in notes.items] == [
        ("One", True),
        ("Two", False),
    ]
    assert "KEPT OUT" not in notes.text
    assert notes.text.endswith("\n> …")


@pytest.mark.parametrize("message", [ASK, ASK_ZH])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_note_that_is_held_back_in_search_is_held_back_and_told_so(
    tmp_path: Path, language: str, message: str
) -> None:
    files = {"tea.md": "Tea 茶", "old.md": STALE[language], "new.md": LASTING[language]}
    workspace = noted(tmp_path, files)
    notes = told(workspace, message)
    items = items_in(workspace)
    assert [(held.id, held.reason) for held in notes.held_back] == [
        (items["old"].id, "stale_tool_schema")
    ]
    assert "SENTINEL" not in notes.text
    assert "old.md" not in notes.text, "its name is its title"
    assert {item.item.title for item in notes.items} == {"tea", "new"}
    assert "KEPT" in notes.text
    assert "SENTINEL" in told(workspace, message, tools=()).text


@pytest.mark.parametrize(
    "text",
    [
        "# do-it\n\nTOLD the topic.\n\nAnd TOLD more.\n\n#### Parameters\n- topic",
        f"# do-it\n\nTOLD 先来。\n\n{LONG}\n\n参数格式：topic",
        f"# do-it\n\nTOLD first.\n\n{LONG * 7}\n\nIts parameter schema: topic",
    ],
    ids=["headings", "beyond the room", "beyond what is read at first"],
)
def test_an_item_is_judged_whole_although_only_its_beginning_would_go_in(
    tmp_path: Path, text: str
) -> None:
    workspace = noted(tmp_path, {"a.md": text, "tea.md": "Tea"})
    item = next(one for title, one in items_in(workspace).items() if title != "tea")
    assert "TOLD" in told(workspace, tools=()).text
    notes = told(workspace)
    assert "TOLD" not in notes.text
    assert [held.id for held in notes.held_back] == [item.id]
    assert [item.item.title for item in notes.items] == ["tea"]


def test_a_long_files_last_section_is_told_although_it_was_read_in_two_goes(tmp_path: Path) -> None:
    text = f"# One\n{STALE['zh']}\n# Two\nTOLD 二\n{LONG * 9}\n# Three\nTOLD 三\n{LONG}"
    workspace = noted(tmp_path, {"a.md": text})
    notes = told(workspace, budget=60_000)
    assert [item.item for item in notes.items] == [
        items_in(workspace)[title] for title in ("Two", "Three")
    ]
    assert all(item.is_whole for item in notes.items)
    assert notes.text.count("TOLD") == 2


def test_a_name_that_tells_how_a_tool_is_called_is_not_named(tmp_path: Path) -> None:
    files = {"do-it 参数格式.md": "", "do-it parameter schema.md": "", "b.md": "", "tea.md": "Tea"}
    workspace = noted(tmp_path, files)
    assert told(workspace).text.endswith("Also there, 1 more: b.md")
    assert "Also there, 3 more" in told(workspace, tools=()).text


SECTIONS = st.sampled_from(
    [
        STALE["en"],
        STALE["zh"],
        LASTING["en"],
        LASTING["zh"],
        "Ann likes tea. 绿茶。",
        "## Parameters\n- topic",
        "The parameter schema: topic\n\n参数：话题",
        "do-it works well.\n\n\nMost days.",
    ]
)
FILES = st.dictionaries(
    st.sampled_from(["a.md", "do-it.md", "zh/部署.md", "b.yaml"]),
    st.tuples(
        st.lists(
            st.tuples(st.sampled_from(["do-it", "Tea", "茶"]), SECTIONS), min_size=1, max_size=5
        ),
        st.booleans(),
    ),
    min_size=1,
)


@settings(max_examples=20, deadline=None)
@given(files=FILES, message=st.sampled_from([ASK, ASK_ZH]))
def test_what_goes_in_is_what_the_filter_of_items_lets_through(
    files: dict[str, tuple[list[tuple[str, str]], bool]], message: str
) -> None:
    texts = {
        name: "\n".join(
            f"# {title}\nMARK{name}{place}END\n{text}\n{LONG if is_long else ''}"
            for place, (title, text) in enumerate(sections)
        )
        for name, (sections, is_long) in files.items()
    }
    with tempfile.TemporaryDirectory() as directory:
        workspace = noted(Path(directory), texts)
        notes = told(workspace, message, budget=200_000)
        found = [
            item
            for file in list_notes_blocking(workspace)
            if (note := read_note_blocking(workspace, file, mask_secrets))
            for item in items_of(note)
        ]
    shown, held = split_stale_blocking(found, IN_USE)
    assert {item.item.id for item in notes.items} == {item.id for item in shown}
    assert {held.id for held in notes.held_back} == {held_back.id for held_back in held}
    for item in found:
        for line in item.body.splitlines():
            if line.startswith("MARK"):
                assert (line in notes.text) is (item in shown)
