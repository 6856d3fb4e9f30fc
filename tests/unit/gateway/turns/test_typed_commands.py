"""Which messages are typed commands, and what they ask for."""

from pathlib import Path

import pytest

from gateway.turns.typed_commands import (
    GatewayAnswer,
    SkillRequest,
    list_skills_blocking,
    read_command,
    starts_afresh,
)

SKILLS = ("memory-capture", "deploy_it")


@pytest.mark.parametrize(
    ("message", "asked"),
    [
        ("/memory-capture", SkillRequest("memory-capture", "")),
        (" /memory-capture\n", SkillRequest("memory-capture", "")),
        ("/memory-capture the\nport  is 1", SkillRequest("memory-capture", "the\nport  is 1")),
        ("/deploy_it 到测试环境", SkillRequest("deploy_it", "到测试环境")),
        ("/clear", GatewayAnswer("command_clear", "clear")),
        ("/CLEAR", GatewayAnswer("command_clear", "CLEAR")),
        ("／clear", GatewayAnswer("command_clear", "clear")),
        ("/compact", GatewayAnswer("command_compact", "compact")),
        ("/compact keep the names", GatewayAnswer("command_compact", "compact")),
        ("/Memory-Capture", GatewayAnswer("command_unknown", "Memory-Capture")),
        ("/nonsense", GatewayAnswer("command_unknown", "nonsense")),
        ("/etc/hosts is wrong", None),
        ("/etc/hosts", None),
        ("/tmp is full", None),
        ("/clear the table", None),
        ("use /memory-capture", None),
        ("//memory-capture", None),
        ("/", None),
        ("/ clear", None),
        ("/你好", None),
        ("", None),
    ],
)
def test_a_command_is_one_word_after_a_slash(
    message: str, asked: SkillRequest | GatewayAnswer | None
) -> None:
    assert read_command(message, SKILLS) == asked
    assert starts_afresh(message) is (asked is not None and asked.name.lower() == "clear")


def test_the_skills_are_those_of_the_workspace(tmp_path: Path) -> None:
    assert list_skills_blocking(tmp_path) == ()
    for name in ("zeta", "alpha"):
        folder = tmp_path / ".claude/skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text("x", encoding="utf-8")
    (tmp_path / ".claude/skills/empty").mkdir()
    assert list_skills_blocking(tmp_path) == ("alpha", "zeta")
