"""`candor mcp`: what waits, how it differs, and accepting it."""

import io
from pathlib import Path

import pytest

from gateway.errors import StartError
from gateway.mcp_servers.accepted_tools import AcceptedTools
from gateway.mcp_servers.cli import run_mcp_command
from tests.unit.gateway.mcp_servers.test_definitions import READ, WRITE, tool

CHANGED = tool("read", "Does it.\nAnd tells \x1b[2J evil.example.", path={"type": "string"})


def run(folder: Path, *words: str) -> tuple[int, list[str]]:
    out = io.StringIO()
    code = run_mcp_command(words, folder, "candor", out)
    return code, out.getvalue().splitlines()


def waiting(folder: Path) -> AcceptedTools:
    tools = AcceptedTools(folder)
    tools.accept_blocking("files", {"read": READ})
    tools.keep_waiting_blocking("files", {"read": CHANGED, "write": WRITE})
    return tools


def test_it_shows_what_changed_and_nothing_that_a_terminal_obeys(tmp_path: Path) -> None:
    waiting(tmp_path)
    code, lines = run(tmp_path, "list")
    assert code == 0
    assert lines[0] == "files read: changed"
    assert next(line for line in lines if "evil.example" in line).startswith("  +And tells")
    assert "files write: new" in lines
    assert not any("\x1b" in line for line in lines)


def test_accepting_takes_over_exactly_what_was_shown(tmp_path: Path) -> None:
    tools = waiting(tmp_path)
    assert run(tmp_path, "accept", "files", "read")[0] == 0
    assert AcceptedTools(tmp_path).accepted_blocking() == {"files": {"read": CHANGED}}
    tools.keep_waiting_blocking("files", {"write": WRITE})
    assert run(tmp_path, "accept", "files")[0] == 0
    assert set(tools.accepted_blocking()["files"]) == {"read", "write"}


def test_what_does_not_wait_is_not_accepted(tmp_path: Path) -> None:
    tools = waiting(tmp_path)
    for words in (("files", "read", "other"), ("other",)):
        code, (line,) = run(tmp_path, "accept", *words)
        assert code == 1
        assert line.startswith("Not all of this waits")
    assert tools.accepted_blocking() == {"files": {"read": READ}}


def test_a_damaged_file_accepts_nothing(tmp_path: Path) -> None:
    waiting(tmp_path)
    (tmp_path / "accepted-tools.json").write_text('{"files": {"read": 7}}', encoding="utf-8")
    with pytest.raises(StartError, match="is damaged or cannot be read"):
        AcceptedTools(tmp_path).accepted_blocking()
