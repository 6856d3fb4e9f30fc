"""What of a workspace's own configuration acts, judged file by file."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.configuration import Concern, Found, digest_of, find_concerns, is_content
from tests.support.tables import read_pairs, read_rows
from tests.unit.policies.judging import read_list, read_table

SETTINGS = ".claude/settings.json"
SKILL = ".claude/skills/mine/SKILL.md"


def what(path: str, content: Any) -> str:
    """Return what acts in one file; empty: nothing."""
    text = content if isinstance(content, bytes | str) else json.dumps(content)
    raw = text if isinstance(text, bytes) else text.encode()
    concerns = find_concerns([Found(path=path, content=raw)], {})
    return concerns[0].what if concerns else ""


ACTING: list[tuple[Any, str]] = [
    *read_rows("workspace-settings"),
    (b"\xef\xbb\xbf{}", "syntax"),
    ('{"hooks": 1}'.encode("utf-16"), "syntax"),
    ("[" * 100_000, "syntax"),
]


def test_settings_that_act_are_named() -> None:
    for path in (SETTINGS, ".claude/settings.local.json", ".Claude/SETTINGS.json"):
        found = [(settings, what(path, settings)) for settings, _ in ACTING]
        assert found == ACTING


def test_servers_are_a_concern() -> None:
    quiet: tuple[Any, ...] = ("", {"mcpServers": {}}, {"$schema": "x", "mcpServers": None})
    for path in (".mcp.json", ".MCP.json"):
        for harmless in quiet:
            assert what(path, harmless) == ""
        for servers in ({"mcpServers": {"x": {"command": "x"}}}, {"x": {"command": "x"}}):
            assert what(path, servers) == "mcpServers"
        assert what(path, "no json") == "syntax"


PLACES = """
unknown_kind: .claude/scheduled_tasks.json ¦ .claude/plugins/x/plugin.json
    ¦ .claude/workflows/x.js ¦ .claude/commands/x.sh ¦ deep/.claude/commands/x.sh
plugin: .claude/skills/x/.claude-plugin/plugin.json ¦ .claude/skills/x/.mcp.json
    ¦ .claude/skills/x/hooks/hooks.json
nothing: .claude/skills/x/scripts/run.sh ¦ .claude/skills/x/reference.md
    ¦ .claude/skills/.candor.json ¦ .claude/hooks/check.sh ¦ deep/.claude/settings.json
    ¦ deep/.claude/scheduled_tasks.json ¦ .claude/rules/deep/style.md
    ¦ .claude/output-styles/short.md ¦ .claude/CLAUDE.md ¦ .claude/README.md ¦ .claude/.gitignore
    ¦ CLAUDE.md ¦ CLAUDE.local.md
"""


def test_a_file_is_known_by_its_place() -> None:
    for path, kind in read_table(PLACES):
        assert (what(path, "hooks: all\n@.env") or "nothing") == kind, path
        assert is_content(path) == (kind == "nothing"), path


FRONT = "---\nname: mine\ndescription: Does it.\n{}---\n\nDo it.\n"


FRONTS = read_pairs("workspace-fronts")


def test_a_skill_is_judged_by_its_front_matter() -> None:
    others = ".claude/skills/a/b/skill.md ¦ .claude/skills/x.md ¦ .claude/commands/x.md"
    for path in (SKILL, *read_list(others)):
        assert {front: what(path, FRONT.format(front)) for front in FRONTS} == FRONTS
    lines = {front: what(SKILL, FRONT.format(front).replace("\n", "\r\n")) for front in FRONTS}
    assert lines == FRONTS


UNCLEAR: dict[str | bytes, str] = {
    "No front matter: hooks.": "",
    "": "",
    "\ufeff\n---\nhooks: x\n---\n": "hooks",
    "---\nhooks: x\n": "syntax",
    "---\n  name: x\n  hooks: y\n---\n": "syntax",
    "--- \nname: x\n---\n": "",
    b"\xff\xfe": "syntax",
}
BODIES: dict[str, str] = {
    "Now: !`git status`": "!`command`",
    "!`git status`": "!`command`",
    "```!\ngit status\n```": "!`command`",
    "Say `!` loudly.": "",
    "Hello! `ls` lists.": "",
    "```\n!x\n```": "",
}
AGENTS: dict[str, str] = {
    "color: red\n": "",
    "tools: Read\n": "tools",
    "hooks:\n  Stop: []\n": "hooks",
    "mcpServers:\n  - x\n": "mcpServers",
    "permissionMode: bypassPermissions\n": "permissionMode",
}


def test_a_command_in_the_text_an_unclear_front_matter_and_an_agents_keys_are_concerns() -> None:
    assert {text: what(SKILL, text) for text in UNCLEAR} == UNCLEAR
    assert {body: what(SKILL, FRONT.format("") + body) for body in BODIES} == BODIES
    assert {body: what(SKILL, body) for body in BODIES} == BODIES
    found = {front: what(".claude/agents/mine.md", FRONT.format(front)) for front in AGENTS}
    assert found == AGENTS


@pytest.mark.parametrize("trouble", ["link", "unreadable", "too_large", "too_many"])
def test_what_cannot_be_judged_cannot_be_approved(trouble: Any) -> None:
    file = Found(path="CLAUDE.md", trouble=trouble)
    (concern,) = find_concerns([file], {"CLAUDE.md": digest_of(b"")})
    assert concern == Concern(path="CLAUDE.md", what=trouble, digest="")


def test_an_approval_is_for_an_exact_content_at_a_place() -> None:
    one, other = b'{"model": "x"}', b'{"model": "x" }'
    approved = {SETTINGS: digest_of(one)}
    assert find_concerns([Found(path=SETTINGS, content=one)], approved) == ()
    (changed,) = find_concerns([Found(path=SETTINGS, content=other)], approved)
    assert changed == Concern(path=SETTINGS, what="model", digest=digest_of(other))
    assert find_concerns([Found(path=".claude/settings.local.json", content=one)], approved)


@given(st.text(alphabet=st.sampled_from(list("hoks:- \n\r\t#\"'{}&*!|>name")), max_size=60))
def test_no_spelling_hides_a_key_from_a_reader_of_yaml(middle: str) -> None:
    """A line that begins with a plain `hooks:` at the margin is seen, whatever stands around it."""
    text = f"---\n{middle}\nhooks:\n  Stop: []\n---\n"
    if "\n---" not in middle and not middle.startswith("---"):
        assert what(SKILL, text) != ""
