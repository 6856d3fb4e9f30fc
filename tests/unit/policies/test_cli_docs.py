"""What docs/policies.md shows is what comes out."""

import io
import re
import shlex
from pathlib import Path

import pytest

from policies.cli import PolicyCommand
from policies.rules import KNOWN_COMMANDS, load_rules, shipped_rules

TEXT = (Path(__file__).parents[3] / "docs" / "policies.md").read_text(encoding="utf-8")
SESSIONS = re.findall(r"```console\n\$ (.+)\n((?:.+\n)+?)```", TEXT)


def run(workspace: Path, args: list[str], stdin: str = "") -> str:
    out = io.StringIO()
    command = PolicyCommand(workspace=workspace, policy_file=None, private=(), trust=lambda _yes: 0)
    assert command.run(args, source=io.BytesIO(stdin.encode()), out=out) == 0
    return out.getvalue()


@pytest.mark.parametrize(("line", "shown"), SESSIONS)
def test_a_session_shows_what_comes_out(workspace: Path, line: str, shown: str) -> None:
    words = shlex.split(line)
    stdin = f"{words[1]}\n" if words[0] == "echo" else ""
    args = words[words.index("policy") + 1 :]
    assert run(workspace, args, stdin) == shown


def test_the_list_of_rules_begins_as_shown(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    (shown,) = re.findall(r"```text\n\$ python app.py policy rules\n(.*?)```", TEXT, re.DOTALL)
    assert run(workspace, ["rules"]).startswith(shown)


def test_there_are_sessions_of_both_commands() -> None:
    lines = [line for line, _ in SESSIONS]
    assert sum("policy explain" in line for line in lines) >= 3
    assert any("policy check" in line for line in lines)


def test_the_rules_that_are_shown_can_be_used(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    file = tmp_path / "rules.toml"
    file.write_text(example, encoding="utf-8")
    rules = load_rules(file)
    assert {"head", "wc", "grep"} <= rules.commands
    assert "rm" not in rules.commands
    assert "WebFetch" in rules.offered_tools
    assert rules.web_hosts == {"docs.python.org", "xn--fiq228c.example"}
    assert len(rules.ask) == 2


def test_the_counts_in_the_text_are_true() -> None:
    assert "`ls cat cp mv rm mkdir`; twelve more" in TEXT
    assert shipped_rules().commands == {"ls", "cat", "cp", "mv", "rm", "mkdir"}
    assert len(KNOWN_COMMANDS - shipped_rules().commands) == 12
