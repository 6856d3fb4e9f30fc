"""What is read of a workspace's configuration, and what a person approved of it."""

import json
import os
import stat
from pathlib import Path

import pytest

from gateway import trust
from gateway.errors import StartError
from gateway.settings import Settings
from gateway.trust import review_blocking, review_folder_blocking, trust_blocking
from policies.configuration import Concern

HOOKS = json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}})


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "ws" / ".claude").mkdir(parents=True)
    return Settings(workspace=tmp_path / "ws", data_dir=tmp_path / "data")


def concerns(settings: Settings) -> list[tuple[str, str]]:
    return [(concern.path, concern.what) for concern in review_blocking(settings).concerns]


def write(settings: Settings, name: str, text: str) -> Path:
    path = settings.workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_an_empty_or_missing_workspace_is_trusted_and_so_are_the_shipped_skills(
    settings: Settings, tmp_path: Path
) -> None:
    assert review_blocking(settings).is_trusted
    for folder in (tmp_path / "nowhere", Path(trust.__file__).parents[1]):
        assert review_folder_blocking(folder, None).is_trusted


def test_everything_at_any_depth_is_looked_at(settings: Settings) -> None:
    write(settings, ".claude/settings.json", HOOKS)
    write(settings, ".claude/skills/a/b/c/SKILL.md", "---\nhooks: x\n---\n")
    write(settings, ".mcp.json", '{"mcpServers": {"x": {}}}')
    write(settings, "CLAUDE.md", "hooks")
    write(settings, "deep/.claude/settings.json", HOOKS)  # the agent program reads none from there
    write(settings, "deep/.mcp.json", '{"mcpServers": {"x": {}}}')  # nor this
    write(settings, "deep/er/.claude/skills/a/SKILL.md", "---\nhooks: x\n---\n")  # but this it does
    assert concerns(settings) == [
        (".claude/settings.json", "hooks.Stop"),
        (".claude/skills/a/b/c/SKILL.md", "hooks"),
        (".mcp.json", "mcpServers"),
        ("deep/er/.claude/skills/a/SKILL.md", "hooks"),
    ]


def test_the_search_below_is_bounded_and_goes_through_no_link(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    front = "---\nhooks: x\n---\n"
    write(settings, "../outside/.claude/skills/a/SKILL.md", front)
    (settings.workspace / "link").symlink_to(tmp_path / "outside")
    assert concerns(settings) == []
    write(settings, "near/.claude/skills/a/SKILL.md", front)
    write(settings, "near/far/.claude/skills/a/SKILL.md", front)
    assert len(concerns(settings)) == 2
    monkeypatch.setattr(trust, "MAX_ENTRIES", 6)
    assert concerns(settings) == [("near/.claude/skills/a/SKILL.md", "hooks")]


MAY_INSTRUCT = {
    ".claude/skills/a/SKILL.md": False,
    "deep/notes.md": False,
    "CLAUDE.md": True,
    "deep/Agents.md": True,
    ".claude/rules/style.md": True,
    "deep/.claude/CLAUDE.md": True,
}


def test_instructions_for_agents_are_found_at_any_depth(settings: Settings) -> None:
    found = {}
    for name in MAY_INSTRUCT:
        file = write(settings, name, "Be brief.")
        found[name] = review_blocking(settings).may_instruct
        file.unlink()
    assert found == MAY_INSTRUCT


def test_where_not_all_is_searched_and_where_the_machine_has_some_there_may_be_instructions(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trust, "_MANAGED", [str(settings.workspace)])
    assert review_blocking(settings).may_instruct
    monkeypatch.setattr(trust, "_MANAGED", [])
    assert not review_blocking(settings).may_instruct
    monkeypatch.setattr(trust, "MAX_ENTRIES", 1)
    assert review_blocking(settings).may_instruct


def test_what_was_approved_is_trusted_until_it_changes(settings: Settings) -> None:
    file = write(settings, ".claude/settings.json", HOOKS)
    after = trust_blocking(settings)
    (approvals,) = settings.data_dir.iterdir()
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (approvals, settings.data_dir)]
    assert modes == [0o600, 0o700]
    assert (after.is_trusted, after.approved) == (True, (".claude/settings.json",))
    assert after.lines() == [".claude/settings.json: approved"]
    file.write_text(HOOKS + " ", encoding="utf-8")
    assert concerns(settings) == [(".claude/settings.json", "hooks.Stop")]
    file.write_text(HOOKS, encoding="utf-8")
    assert review_blocking(settings).is_trusted
    assert trust_blocking(settings) == review_blocking(settings)


def test_what_was_shown_is_approved_and_nothing_that_came_since(settings: Settings) -> None:
    file = write(settings, ".claude/settings.json", HOOKS)
    shown = review_blocking(settings)
    file.write_text('{"apiKeyHelper": "x"}', encoding="utf-8")
    write(settings, ".mcp.json", '{"mcpServers": {"x": {}}}')
    after = trust_blocking(settings, shown)
    assert [concern.what for concern in after.concerns] == ["apiKeyHelper", "mcpServers"]


def test_an_approval_is_for_one_workspace(settings: Settings, tmp_path: Path) -> None:
    write(settings, ".claude/settings.json", HOOKS)
    trust_blocking(settings)
    other = Settings(workspace=tmp_path / "other", data_dir=settings.data_dir)
    write(other, ".claude/settings.json", HOOKS)
    assert not review_blocking(other).is_trusted
    assert trust_blocking(other).is_trusted
    assert review_blocking(settings).is_trusted


@pytest.mark.parametrize("text", ["", "{", "[]", '{"workspaces": 1}', '{"workspaces": {"x": 1}}'])
def test_approvals_that_cannot_be_understood_are_none(settings: Settings, text: str) -> None:
    write(settings, ".claude/settings.json", HOOKS)
    settings.data_dir.mkdir()
    (settings.data_dir / "trusted.json").write_text(text, encoding="utf-8")
    assert not review_blocking(settings).is_trusted
    assert trust_blocking(settings).is_trusted


def test_approvals_that_cannot_be_used_are_told(settings: Settings) -> None:
    write(settings, ".claude/settings.json", HOOKS)
    (settings.data_dir / "trusted.json").mkdir(parents=True)
    for use in (review_blocking, trust_blocking):
        with pytest.raises(StartError, match=r"trusted\.json cannot be"):
            use(settings)
    assert [path.name for path in settings.data_dir.iterdir()] == ["trusted.json"]


def test_links_are_refused_wherever_they_lead(settings: Settings, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "SKILL.md").write_text("text", encoding="utf-8")
    (settings.workspace / ".claude" / "skills").symlink_to(outside)
    (settings.workspace / ".mcp.json").symlink_to(tmp_path / "nowhere")
    for name in ("CLAUDE.md", "AGENTS.md"):
        (settings.workspace / name).symlink_to(outside / "SKILL.md")
    links = (".claude/skills", ".mcp.json", "AGENTS.md", "CLAUDE.md")
    assert concerns(settings) == [(link, "link") for link in links]
    assert trust_blocking(settings).concerns == tuple(
        Concern(path=link, what="link") for link in links
    )
    (settings.workspace / ".claude" / "skills").unlink()
    (settings.workspace / ".claude").rmdir()
    (settings.workspace / ".claude").symlink_to(outside)
    assert (".claude", "link") in concerns(settings)


def test_a_pipe_is_not_waited_for(settings: Settings) -> None:
    os.mkfifo(settings.workspace / ".claude" / "settings.json")
    assert concerns(settings) == [(".claude/settings.json", "unreadable")]


def test_a_link_that_takes_a_files_place_is_not_followed(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at what it is and the reading."""
    file = write(settings, ".claude/settings.json", "{}")
    (tmp_path / "harmless.json").write_text("{}", encoding="utf-8")
    opened = os.open

    def swap(path: Path, flags: int, mode: int = 0o777) -> int:
        if Path(path) == file and not file.is_symlink():
            file.unlink()
            file.symlink_to(tmp_path / "harmless.json")
        return opened(path, flags, mode)

    monkeypatch.setattr("gateway.trust.os.open", swap)
    assert concerns(settings) == [(".claude/settings.json", "unreadable")]


def test_sizes_and_counts_are_bounded(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    write(settings, ".claude/settings.json", '{"theme": "' + "x" * 100 + '"}')
    monkeypatch.setattr(trust, "MAX_FILE_BYTES", 50)
    assert concerns(settings) == [(".claude/settings.json", "too_large")]
    monkeypatch.undo()
    for number in range(5):
        write(settings, f".claude/skills/a/{number}.txt", "")
    monkeypatch.setattr(trust, "MAX_FILES", 3)
    assert concerns(settings) == [(".claude", "too_many")]
    assert not trust_blocking(settings).is_trusted


def test_the_report_is_in_words(settings: Settings) -> None:
    write(settings, ".claude/settings.json", HOOKS)
    write(settings, ".claude/odd.bin", "x")
    (settings.workspace / "CLAUDE.md").symlink_to("x")
    assert review_blocking(settings).lines() == [
        ".claude/odd.bin: is of an unknown kind",
        ".claude/settings.json: acts: hooks.Stop",
        "CLAUDE.md: is a link; put the file itself there, or remove it",
    ]
