"""The `policy` command, and what its documentation shows."""

import io
import json
import re
import shlex
from pathlib import Path

import pytest

from policies.cli import PolicyCommand
from policies.rules import KNOWN_COMMANDS, load_rules, shipped_rules


class Ran:
    """What one command gave."""

    def __init__(
        self, workspace: Path, *args: str, file: Path | None = None, stdin: str = ""
    ) -> None:
        self.trusted: list[bool] = []
        out, err = io.StringIO(), io.StringIO()
        command = PolicyCommand(
            workspace=workspace, policy_file=file, private=(), trust=self._trust
        )
        self.code = command.run(args, source=io.BytesIO(stdin.encode()), out=out, err=err)
        self.out, self.err = out.getvalue(), err.getvalue()

    def _trust(self, yes: bool) -> int:  # noqa: FBT001  as the command calls it
        self.trusted.append(yes)
        return 7


def test_a_denial_that_ends_the_turn_says_so(workspace: Path) -> None:
    assert "The whole turn ends." in Ran(workspace, "explain", f"rm -rf {workspace}").out


def test_any_tool_is_explained(workspace: Path) -> None:
    def explain(tool: str, **given: str) -> str:
        return Ran(workspace, "explain", "--tool", tool, "--input", json.dumps(given)).out

    assert "secret_file" in explain("Read", file_path=".env")
    assert "the call as it came" in explain("Read", file_path=str(workspace / "a.txt"))
    assert str(workspace / "项目") in explain("Write", file_path="项目/新.md", content="x")
    assert explain("Telnet").startswith("Denied: Telnet {}\n  rule      unknown_tool\n")


def test_relative_folders_of_a_call_are_below_the_workspace(workspace: Path) -> None:
    assert "Allowed" in Ran(workspace, "explain", "cat main.py", "--cwd", "src").out
    assert (
        "runs      cat -- main.py" in Ran(workspace, "explain", "cat main.py", "--cwd", "src").out
    )
    assert "cwd_outside" in Ran(workspace, "explain", "ls", "--cwd", "..").out
    other = Ran(workspace, "explain", f"ls {workspace}", "--workspace", str(workspace.parent))
    assert "Allowed" in other.out


def test_nothing_reaches_the_terminal_raw(workspace: Path) -> None:
    ran = Ran(workspace, "explain", "ls \x1b[2J\u202e" + "x" * 9000)
    assert "\x1b" not in ran.out
    assert "\u202e" not in ran.out
    assert "\\x1b[2J\\u202e" in ran.out
    assert len(ran.out) < 3000


BAD_ARGUMENTS = (
    (("dance",), "dance"),
    (("explain",), "command"),
    (("explain", "ls", "--input", "{}"), "both"),
    (("explain", "--tool", "Read", "--input", "{"), "--input"),
    (("explain", "--tool", "Read"), "--input"),
    (("explain", "ls", "--platform", "beos"), "beos"),
    (("check", "--nonsense"), "--nonsense"),
    (("rules", "x"), "x"),
)


def test_bad_arguments_are_told_in_one_sentence(workspace: Path) -> None:
    for args, word in BAD_ARGUMENTS:
        ran = Ran(workspace, *args)
        assert (ran.code, ran.out) == (2, ""), args
        assert word in ran.err, args
        assert ran.err.startswith("candor: ")
        assert ran.err.endswith(".\n")
        assert ran.err.count("\n") == 1, args


def test_help_names_every_command(workspace: Path) -> None:
    for args in ((), ("--help",), ("check", "-h"), ("explain", "--help")):
        ran = Ran(workspace, *args)
        assert ran.code == 0
        for name in ("check", "explain", "rules", "trust"):
            assert f"candor policy {name}" in ran.out


def test_trust_is_handed_on(workspace: Path) -> None:
    assert (Ran(workspace, "trust").code, Ran(workspace, "trust").trusted) == (7, [False])
    assert Ran(workspace, "trust", "--yes").trusted == [True]


def test_the_shipped_rules_are_listed(workspace: Path) -> None:
    out = Ran(workspace, "rules").out
    assert "commands: cat cp ls mkdir mv rm\n" in out
    assert "a file may allow: diff" in out
    assert ".env*" in out
    assert "+" not in out


def test_what_a_file_changes_is_marked(workspace: Path, tmp_path: Path) -> None:
    file = tmp_path / "规则.toml"
    more = tmp_path / "共享"
    more.mkdir()
    file.write_text(
        '[commands]\nallow = ["head"]\nforbid = ["rm"]\n'
        '[web]\nhosts = ["docs.example.com"]\n'
        f'[directories]\nread_only = ["{more}"]\n'
        '[[ask]]\ntools = ["Write"]\npaths = ["src/**"]\n',
        encoding="utf-8",
    )
    ran = Ran(workspace, "rules", file=file)
    assert ran.code == 0
    assert str(file) in ran.out
    for line in (
        *("commands: cat cp ls mkdir mv", "  + head", "  - rm", "  + docs.example.com", "  - *"),
        *(f"  + {more} (read-only)", "  + Write on src/**"),
    ):
        assert line in ran.out.splitlines()


def test_a_wrong_file_of_rules_is_told_with_its_line(workspace: Path, tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text('[commands]\nallow = ["sudo"]\n', encoding="utf-8")
    for args in (("rules",), ("check",), ("explain", "ls")):
        ran = Ran(workspace, *args, file=file, stdin="{}\n")
        assert (ran.code, ran.out) == (2, "")
        assert f"{file}, line 2" in ran.err


def test_the_rules_of_a_file_hold(workspace: Path, tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text('[commands]\nallow = ["head"]\n', encoding="utf-8")
    assert "Denied" in Ran(workspace, "explain", "head a.txt").out
    assert "Allowed" in Ran(workspace, "explain", "head a.txt", file=file).out
    line = '{"tool": "Bash", "input": {"command": "head a.txt"}}\n'
    assert '"allow"' in Ran(workspace, "check", file=file, stdin=line).out


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
