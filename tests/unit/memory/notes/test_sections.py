"""What items a note's text makes: their ids, titles, summaries and bodies."""

from datetime import UTC, datetime

import pytest

from memory.items.item import Item
from memory.items.scope import WORKSPACE_OWNER
from memory.notes.folder import NoteFile, NoteText
from memory.notes.sections import items_of

LONG = ("A sentence that fills the room. " * 60).strip()
AT_NS = 1_700_000_000_123_456_789


def made(text: str, name: str = "memory/ops.md") -> list[Item]:
    return items_of(NoteText(file=NoteFile(name, AT_NS, 1), text=text, digest="d"))


def titles(text: str, name: str = "memory/ops.md") -> list[str]:
    return [item.title for item in made(text, name)]


def ids(text: str) -> dict[str, str]:
    return {item.title: item.id for item in made(text)}


def test_a_section_is_an_item_under_the_headings_above_it() -> None:
    text = "# Deploys\n\n## When\n\nAt nine.\n\n## Who\n\nBob.\n"
    when, who = made(text)
    assert (when.title, when.body) == ("Deploys › When", "# Deploys\n\n## When\n\nAt nine.")
    assert (who.title, who.body) == ("Deploys › Who", "## Who\n\nBob.")
    assert who.summary == "Who Bob."
    assert (who.kind, who.source, who.tags) == ("note", "memory/ops.md", ("ops",))
    assert who.scope.owner_id == WORKSPACE_OWNER
    assert who.scope.labels == {}
    assert who.occurred_at == who.updated_at == datetime.fromtimestamp(1_700_000_000, UTC)


def test_no_word_is_lost() -> None:
    text = f"Before.\n\n# 部署\n\n{LONG}\n\n## Who #\n\nBob.\n\n#### Deeper\n\nStill Bob.\n"
    items = made(text)
    assert [item.title for item in items] == ["ops", "部署", "部署 › Who"]
    assert [item.body.split("\n")[0] for item in items] == ["Before.", "# 部署", "## Who #"]
    assert "Still Bob." in items[2].body
    assert "\n\n".join(item.body for item in items) == text.strip()


def test_ids_stay_when_other_sections_change_and_when_a_note_grows() -> None:
    short = made("# Deploys\n\nAt nine.\n")
    before = ids(f"# Deploys\n\n{LONG}\n\n# Who\n\nBob.\n\n# Where\n\nBerlin.\n")
    after = ids(f"Intro.\n\n# Deploys\n\nNo: at ten.\n\n# Neu\n\n{LONG}\n\n# Where\n\nBerlin.\n")
    assert short[0].id == before["Deploys"] == after["Deploys"]
    assert before["Where"] == after["Where"]
    assert len({*before.values(), *after.values()}) == 5


def test_headings_that_are_the_same_make_items_of_their_own() -> None:
    items = made(f"# Day\n\n{LONG}\n\n# Day\n\nsecond\n\n# Day\n\nthird\n")
    assert [item.title for item in items] == ["Day"] * 3
    assert len({item.id for item in items}) == 3
    grown = made(f"# Day\n\n{LONG}\n\n# Day\n\nsecond\n\n# Day\n\nthird\n\n# Day\n\nfourth\n")
    assert [item.id for item in grown[:3]] == [item.id for item in items]


FRONT = "---\ntitle: Plan\n# no heading\ntags: [a]\n---\n"


def test_front_matter_is_searched_but_not_summed_up() -> None:
    (one,) = made(f"{FRONT}# Plan\n\nFirst.\n")
    assert one.summary == "Plan First."
    assert one.title == "Plan"
    assert one.body.startswith("---\ntitle: Plan")
    assert titles(f"{FRONT}{LONG}\n\n# Plan\n\nx\n") == ["ops", "Plan"]


TITLES = {
    **{
        f"# Real\n\n{LONG}\n\n{mark}sh\n# a comment\n{mark}\n\n# Next\n\nx\n": ["Real", "Next"]
        for mark in ("```", "~~~", "   ```")
    },
    "# A": ["A"],
    "  ## A ##  ": ["A"],
    "###\tA  B": ["A B"],
    "# C#": ["C"],
    "# ##": ["##"],
    "# " + "长" * 300: ["长" * 199 + "…"],
    "# Contents\n- [Deploys](deploys.md)\n- [Who](#who), the people\n\n# Deploys\n\nx": ["Deploys"],
    "# Links\n- [CI](https://ci.example)\n- [Wiki](https://wiki.example)\n": ["Links"],
    "# To do\n- [ ] call Bob\n- see [Who](who.md)\n": ["To do"],
}


def test_a_headings_words_are_the_title_except_in_code_and_in_tables_of_contents() -> None:
    assert {text: titles(text) for text in TITLES} == TITLES


def test_yaml_is_one_item_a_top_level_key_with_the_comments_above_it() -> None:
    text = '# ours\nport: 22\n# theirs\n"web hosts":\n  - name: a\n  - name: b\nurl: http://x\n'
    for name in ("memory/ports.yaml", "memory/ports.yml", "memory/ports.YML"):
        port, hosts, url = made(text, name)
        assert (port.title, port.body) == ("ports › port", "# ours\nport: 22")
        assert hosts.title == "ports › web hosts"
        assert hosts.body == '# theirs\n"web hosts":\n  - name: a\n  - name: b'
        assert (url.title, url.body) == ("ports › url", "url: http://x")


def test_yaml_without_several_top_level_keys_is_one_item() -> None:
    for text in ("port: 22", "- a: 1\n- b: 2", f"# a comment\n{LONG}", "{a: 1, b: 2}"):
        (one,) = made(text, "memory/ports.yaml")
        assert (one.title, one.body) == ("ports", text)


DATED = {
    "---\ndate: 2026-01-02\n---\n# A\n\nx": "2026-01-02",
    "# A\nDate: 2 January 2026\nx": "2026-01-02",
    "日期：2026年1月2日\n\n# A\n\nx": "2026-01-02",
    "# Log\n## 2026-01-02 Release\nx": "2026-01-02",
    "---\ndate: 2020-01-01\n---\n# 2026/01/02\n## A\nx": "2026-01-02",
    "# A\n\nSince 2026-01-02 it works.": "2023-11-14",
}


def test_a_section_has_the_date_that_it_says_or_that_of_the_file() -> None:
    assert {text: f"{made(text)[-1].occurred_at:%Y-%m-%d}" for text in DATED} == DATED
    (item,) = made("# A\n\nx", "memory/2026-01.md")
    assert (item.occurred_at.isoformat()[:10], item.updated_at.year) == ("2026-01-01", 2023)


def test_a_heading_with_a_date_alone_is_not_shown_under_the_date_of_the_next_one() -> None:
    text = (
        "# Log\n\n## Kickoff\nDate: 2022-02-02\n\n## 回顾\n日期：2021-11-11\n大家同意延期\n\n"
        "# Talks\nDate: 2020-01-01\n\n## First\nOf tea.\n"
    )
    dated = [(item.title, item.occurred_at.year) for item in made(text)]
    assert dated == [("Log › Kickoff", 2022), ("Log › 回顾", 2021), ("Talks › First", 2020)]
    assert made(text)[0].body == "# Log\n\n## Kickoff\nDate: 2022-02-02"


def test_a_summary_is_one_line_of_three_hundred_characters_at_most() -> None:
    assert made("记" * 1000)[0].summary == "记" * 299 + "…"
    assert made("记" * 300)[0].summary == "记" * 300
    (one,) = made("a\n\n\tb\u2028c\x85d")
    assert one.summary == "a b c d"


@pytest.mark.parametrize("piece", ["# a" + " " * 60_000 + "b", "#" * 100_000, "```\n" * 20_000])
def test_no_shape_of_a_line_takes_forever(piece: str) -> None:
    assert made(f"{piece}\n\n{LONG}")


@pytest.mark.parametrize("ns", [0, 2**63 - 1])
def test_the_first_and_the_last_date_that_a_file_can_have_are_dates(ns: int) -> None:
    (one,) = items_of(NoteText(file=NoteFile("memory/a.md", ns, 1), text="x", digest="d"))
    assert one.occurred_at == datetime.fromtimestamp(ns // 10**9, UTC)
