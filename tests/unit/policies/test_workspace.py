"""What of a workspace's own configuration acts, judged file by file."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.configuration import Concern, Found, digest_of, find_concerns, is_content

SETTINGS = ".claude/settings.json"
SKILL = ".claude/skills/mine/SKILL.md"


def what(path: str, content: Any) -> str:
    """Give what acts in one file; empty: nothing."""
    text = content if isinstance(content, bytes | str) else json.dumps(content)
    raw = text if isinstance(text, bytes) else text.encode()
    concerns = find_concerns([Found(path=path, content=raw)], {})
    return concerns[0].what if concerns else ""


@pytest.mark.parametrize(
    "settings",
    [
        {},
        "",
        " \n",
        {"$schema": "x", "outputStyle": "default", "includeCoAuthoredBy": False},
        {"permissions": {"deny": ["Read(./secret)"], "ask": ["Bash"]}},
        {"permissions": {"allow": [], "disableBypassPermissionsMode": "disable"}},
        {"hooks": {}, "env": {}, "statusLine": None, "enabledPlugins": {}, "apiKeyHelper": ""},
        {"hooks": {"Stop": []}},
        {"enableAllProjectMcpServers": False, "disableAllHooks": True},
    ],
)
def test_settings_that_do_nothing_are_no_concern(settings: Any) -> None:
    assert what(SETTINGS, settings) == ""


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"hooks": {"Stop": [{}]}}, "hooks.Stop"),
        ({"hooks": [1]}, "hooks"),
        ({"env": {"A": "1", "PATH": "/x"}}, "env.A, env.PATH"),
        ({"env": dict.fromkeys("ABCDEF", "1")}, "env.A, env.B, env.C, env.D, env.…"),
        ({"apiKeyHelper": "x"}, "apiKeyHelper"),
        (
            {"awsAuthRefresh": "x", "awsCredentialExport": "y"},
            "awsAuthRefresh, awsCredentialExport",
        ),
        ({"otelHeadersHelper": "x"}, "otelHeadersHelper"),
        ({"statusLine": {"type": "command", "command": "x"}}, "statusLine"),
        ({"permissions": {"allow": ["Bash"]}}, "permissions.allow"),
        ({"permissions": {"additionalDirectories": ["/"]}}, "permissions.additionalDirectories"),
        ({"permissions": {"defaultMode": "plan"}}, "permissions.defaultMode"),
        ({"permissions": "all"}, "permissions"),
        ({"enableAllProjectMcpServers": True}, "enableAllProjectMcpServers"),
        ({"enableAllProjectMcpServers": 0}, "enableAllProjectMcpServers"),
        ({"enabledMcpjsonServers": ["x"]}, "enabledMcpjsonServers"),
        ({"disableAllHooks": False}, "disableAllHooks"),
        ({"forceLoginMethod": "console"}, "forceLoginMethod"),
        ({"model": "x"}, "model"),
        ({"agent": "evil"}, "agent"),
        ({"sandbox": {"enabled": False}}, "sandbox"),
        ({"enabledPlugins": {"a@b": True}}, "enabledPlugins"),
        ({"neverHeardOf": 1}, "neverHeardOf"),
        ({"Hooks": {"Stop": [1]}}, "Hooks"),
        ({"a key\nwith `marks`": 1}, "…"),
        ('{"hooks": {"Stop": [1]}, "hooks": {"Start": [1]}}', "hooks.Start"),
        ("[]", "syntax"),
        ("{", "syntax"),
        ("// comment\n{}", "syntax"),
        (b"\xef\xbb\xbf{}", "syntax"),
        ('{"hooks": {}}'.encode("utf-16"), "syntax"),
        ("[" * 100_000, "syntax"),
    ],
    ids=lambda one: str(one)[:40],
)
def test_settings_that_act_are_named(settings: Any, told: str) -> None:
    for path in (SETTINGS, ".claude/settings.local.json", ".Claude/SETTINGS.json"):
        assert what(path, settings) == told


@pytest.mark.parametrize(
    ("servers", "told"),
    [
        ("", ""),
        ({"mcpServers": {}}, ""),
        ({"$schema": "x", "mcpServers": None}, ""),
        ({"mcpServers": {"x": {"command": "x"}}}, "mcpServers"),
        ({"x": {"command": "x"}}, "mcpServers"),
        ("no json", "syntax"),
    ],
)
def test_servers_are_a_concern(servers: Any, told: str) -> None:
    assert what(".mcp.json", servers) == told
    assert what(".MCP.json", servers) == told


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (".claude/scheduled_tasks.json", "unknown_kind"),
        (".claude/plugins/x/plugin.json", "unknown_kind"),
        (".claude/workflows/x.js", "unknown_kind"),
        (".claude/commands/x.sh", "unknown_kind"),
        (".claude/skills/x/.claude-plugin/plugin.json", "plugin"),
        (".claude/skills/x/.mcp.json", "plugin"),
        (".claude/skills/x/hooks/hooks.json", "plugin"),
        (".claude/skills/x/scripts/run.sh", ""),
        (".claude/skills/x/reference.md", ""),
        (".claude/skills/.candor.json", ""),
        (".claude/hooks/check.sh", ""),
        ("deep/.claude/settings.json", ""),
        ("deep/.claude/scheduled_tasks.json", ""),
        ("deep/.claude/commands/x.sh", "unknown_kind"),
        (".claude/rules/deep/style.md", ""),
        (".claude/output-styles/short.md", ""),
        (".claude/CLAUDE.md", ""),
        (".claude/README.md", ""),
        (".claude/.gitignore", ""),
        ("CLAUDE.md", ""),
        ("CLAUDE.local.md", ""),
    ],
)
def test_a_file_is_known_by_its_place(path: str, told: str) -> None:
    assert what(path, "hooks: all\n@.env") == told
    assert is_content(path) == (told == "")


FRONT = "---\nname: mine\ndescription: Does it.\n{}---\n\nDo it.\n"


@pytest.mark.parametrize(
    ("front", "told"),
    [
        ("", ""),
        ("license: MIT\nmetadata:\n  version: 1\n", ""),
        ("tags:\n- a\n- b\n", ""),
        ("description: |\n  hooks: they are described here\n\n  allowed-tools: too\n", ""),
        ("# hooks: none\n", ""),
        ("hooks:\n  Stop: []\n", "hooks"),
        ("hooks :\n  Stop: []\n", "hooks"),
        ("HOOKS:\n  Stop: []\n", "HOOKS"),
        ("allowed-tools: Bash(*)\n", "allowed-tools"),
        ("model: x\ncontext: fork\nagent: x\n", "model, context, agent"),
        ("mcpServers: {}\n", "mcpServers"),
        ('"hooks": {}\n', "syntax"),
        ("'hooks': {}\n", "syntax"),
        ("? hooks\n: x\n", "syntax"),
        ("<<: *a\n", "syntax"),
        ("&a hooks: x\n", "syntax"),
        ("!!str hooks: x\n", "syntax"),
        ("{hooks: x}\n", "syntax"),
        ("license: MIT\rhooks: x\n", "syntax"),
        ("# a comment\rhooks: x\n", "syntax"),
        ("license: MIT\u2028hooks: x\n", "syntax"),
        ("license: MIT\x85hooks: x\n", "syntax"),
        ("license:\tMIT\n", "syntax"),
    ],
    ids=lambda one: repr(one)[:40],
)
def test_a_skill_is_judged_by_its_front_matter(front: str, told: str) -> None:
    for path in (
        SKILL,
        ".claude/skills/a/b/skill.md",
        ".claude/skills/x.md",
        ".claude/commands/x.md",
    ):
        assert what(path, FRONT.format(front)) == told
    assert what(SKILL, FRONT.format(front).replace("\n", "\r\n")) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("No front matter: hooks.", ""),
        ("", ""),
        ("\ufeff\n---\nhooks: x\n---\n", "hooks"),
        ("---\nhooks: x\n", "syntax"),
        ("---\n  name: x\n  hooks: y\n---\n", "syntax"),
        ("--- \nname: x\n---\n", ""),
        (b"\xff\xfe", "syntax"),
    ],
)
def test_a_front_matter_may_be_missing_but_not_unclear(text: str | bytes, told: str) -> None:
    assert what(SKILL, text) == told


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("Now: !`git status`", "!`command`"),
        ("!`git status`", "!`command`"),
        ("```!\ngit status\n```", "!`command`"),
        ("Say `!` loudly.", ""),
        ("Hello! `ls` lists.", ""),
        ("```\n!x\n```", ""),
    ],
)
def test_a_command_in_the_text_of_a_skill_is_a_concern(body: str, told: str) -> None:
    assert what(SKILL, FRONT.format("") + body) == told
    assert what(SKILL, body) == told


@pytest.mark.parametrize(
    ("front", "told"),
    [
        ("color: red\n", ""),
        ("tools: Read\n", "tools"),
        ("hooks:\n  Stop: []\n", "hooks"),
        ("mcpServers:\n  - x\n", "mcpServers"),
        ("permissionMode: bypassPermissions\n", "permissionMode"),
    ],
)
def test_an_agent_is_judged_by_its_front_matter(front: str, told: str) -> None:
    assert what(".claude/agents/mine.md", FRONT.format(front)) == told


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
