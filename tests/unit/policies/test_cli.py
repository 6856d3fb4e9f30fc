"""The `policy` command: `explain`, `rules`, `trust` and `check`, and what its documentation shows."""

import io
import json
import re
import shlex
from bisect import bisect_left
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from policies.check import MAX_LINE_BYTES, Checker, read_lines
from policies.cli import PolicyCommand, UserPlace
from policies.rules import KNOWN_COMMANDS, AskRule, load_rules, shipped_rules


class Ran:
    """What one command gave."""

    def __init__(
        self, workspace: Path, *args: str, file: Path | None = None, stdin: str = "", **more: Any
    ) -> None:
        self.trusted: list[bool | str] = []
        out, err = io.StringIO(), io.StringIO()
        command = PolicyCommand(
            workspace=workspace,
            policy_file=file,
            private=(),
            place_of=self._place_of,
            trust=self._trust,
            **more,
        )
        self.code = command.run(args, source=io.BytesIO(stdin.encode()), out=out, err=err)
        self.out, self.err = out.getvalue(), err.getvalue()

    def _place_of(self, user: str) -> UserPlace:
        raise AssertionError(user)

    def _trust(self, yes: bool, user: str | None) -> int:  # noqa: FBT001  as the command calls it
        self.trusted.append(yes if user is None else f"{user}: {yes}")
        return 7


def test_a_line_that_runs_in_a_box_is_explained_as_such(workspace: Path) -> None:
    line = "python3 -m unittest | tail -1"
    assert Ran(workspace, "explain", line).out.startswith("Denied: ")
    told = Ran(workspace, "explain", line, sandboxed_shell=True).out.splitlines()
    assert told[0] == f"Allowed: {line}"
    assert told[2].endswith("The command runs in the sandbox, which keeps it in the workspace.")
    call = json.dumps({"id": 1, "tool": "Bash", "input": {"command": line}})
    answer = json.loads(Ran(workspace, "check", stdin=call, sandboxed_shell=True).out)
    assert (answer["verdict"], answer["runs"]) == ("allow", line)


def test_a_denial_that_ends_the_turn_says_so(workspace: Path) -> None:
    assert "The whole turn ends." in Ran(workspace, "explain", f"rm -rf {workspace}").out


def test_what_a_person_may_allow_is_said(workspace: Path) -> None:
    said = "With approvals a person may allow it"
    assert said in Ran(workspace, "explain", "git status").out
    assert said not in Ran(workspace, "explain", "git status | sh").out


def test_any_tool_is_explained(workspace: Path) -> None:
    def explain(tool: str, **given: str) -> str:
        return Ran(workspace, "explain", "--tool", tool, "--input", json.dumps(given)).out

    assert "secret_file" in explain("Read", file_path=".env")
    assert "the call as it came" in explain("Read", file_path=str(workspace / "a.txt"))
    assert str(workspace / "项目") in explain("Write", file_path="项目/新.md", content="x")
    assert explain("Telnet").startswith("Denied: Telnet {}\n  rule      unknown_tool\n")


def test_relative_folders_of_a_call_are_below_the_workspace(workspace: Path) -> None:
    below = Ran(workspace, "explain", "cat main.py", "--cwd", "src").out
    assert "Allowed" in below
    assert "runs      cat -- main.py" in below
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


def test_where_each_user_has_a_workspace_a_call_is_judged_in_a_named_one_alone(
    workspace: Path,
) -> None:
    for args in (("explain", "cat notes.md"), ("check",)):
        ran = Ran(workspace, *args, each_user=True)
        assert (ran.code, ran.out) == (2, "")
        assert "--user or --workspace" in ran.err
        assert Ran(workspace, *args, "--workspace", str(workspace), each_user=True).code == 0
    assert Ran(workspace, "rules", each_user=True).code == 0


def test_help_names_every_command(workspace: Path) -> None:
    for args in ((), ("--help",), ("check", "-h"), ("explain", "--help")):
        ran = Ran(workspace, *args)
        assert ran.code == 0
        for name in ("check", "explain", "rules", "trust"):
            assert f"candor policy {name}" in ran.out


def test_trust_is_handed_on(workspace: Path) -> None:
    assert (Ran(workspace, "trust").code, Ran(workspace, "trust").trusted) == (7, [False])
    assert Ran(workspace, "trust", "--yes").trusted == [True]
    assert Ran(workspace, "trust", "--user", "ada").trusted == ["ada: False"]


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
    ran = Ran(workspace, *args, stdin=stdin)
    assert ran.code == 0
    return ran.out


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
    (example,) = re.findall(r"```toml\n(\[commands\]\n.*?)```", TEXT, re.DOTALL)
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


READ = {"id": 1, "tool": "Read", "input": {"file_path": "a.txt"}}


@pytest.fixture
def checker(shared_workspace: Path) -> Checker:
    return Checker(shipped_rules(), shared_workspace)


def check(checker: Checker, told: object) -> dict[str, Any]:
    line = told if isinstance(told, bytes) else json.dumps(told).encode()
    answer: dict[str, Any] = json.loads(checker.check_line(line))
    assert list(answer) == ["id", "verdict", "rule", "reason", "runs", "kind"]
    assert (answer["kind"] is None) == (answer["verdict"] != "deny")
    return answer


def test_a_command_is_answered_with_what_would_run(checker: Checker) -> None:
    told = {"id": "一", "tool": "Bash", "input": {"command": "rm -rf 'build' \"项目\""}}
    assert check(checker, told) == {
        "id": "一",
        "verdict": "allow",
        "rule": "bash_rm",
        "reason": "A listed command with every path inside the workspace.",
        "runs": "rm -r -f -- build '项目'",
        "kind": None,
    }


def test_other_tools_run_no_command(checker: Checker) -> None:
    assert check(checker, READ)["runs"] is None
    assert check(checker, READ)["verdict"] == "allow"


def test_a_rule_may_ask(shared_workspace: Path) -> None:
    ask = AskRule(commands=frozenset({"rm"}))
    checker = Checker(replace(shipped_rules(), ask=(ask,)), shared_workspace)
    answer = check(checker, {"tool": "Bash", "input": {"command": "rm a.txt"}})
    assert (answer["verdict"], answer["runs"]) == ("ask", "rm -- a.txt")


NO_CALLS: tuple[tuple[bytes, str], ...] = (
    (b"garbage", "JSON"),
    (b"{", "JSON"),
    (b"[1]", "object"),
    (b"null", "object"),
    (b'"rm"', "object"),
    (b"\xff\xfe{}", "JSON"),
    (b'{"tool": "Read"}', "input"),
    (b'{"input": {}}', "tool"),
    (b'{"tool": null, "input": {}}', "tool"),
    (b'{"tool": 5, "input": {}}', "tool"),
    (b'{"tool": "Read", "input": NaN}', "NaN"),
    (b'{"tool": "Read", "input": {}, "workspace": 5}', "workspace"),
    (b'{"tool": "Read", "input": {}, "workspace": ""}', "workspace"),
    (b'{"tool": "Read", "input": {}, "hook_cwd": ["/"]}', "hook_cwd"),
    (b'{"tool": "Read", "input": {}, "platform": "beos"}', "platform"),
    (b'{"tool": "Read", "input": {}, "platform": {}}', "platform"),
    (b'{"tool": "Read", "input": {}, "config": [1]}', "config"),
    (b'{"tool": "Read", "input": {}, "config": {"mystery": 1}}', "mystery"),
    (b'{"tool": "Read", "input": {}, "config": {"mcp_allow": "mcp__a__b"}}', "mcp_allow"),
    (b'{"tool": "Read", "input": {}, "config": {"mcp_allow": [1]}}', "mcp_allow"),
    (b'{"tool": "Read", "input": {}, "config": {"webfetch_allow": ["1.2.3.4"]}}', "1.2.3.4"),
    (b'{"tool": "Read", "input": {}, "config": {"commands_allow": ["sudo"]}}', "sudo"),
    (b'{"tool": "Read", "input": {}, "config": {"can_ask_user": "yes"}}', "can_ask_user"),
    (b'{"tool": "Read", "input": ' + b"[" * 200_000, "deep"),
    (b'{"id": ' + b"9" * 10_000 + b', "tool": "Read", "input": {}}', "JSON"),
    (b'{"tool": "' + b"x" * MAX_LINE_BYTES + b'"}', "longer"),
)


def test_what_is_no_call_is_denied_in_one_sentence(checker: Checker) -> None:
    for line, word in NO_CALLS:
        answer = check(checker, line)
        assert (answer["verdict"], answer["rule"], answer["runs"]) == ("deny", "bad_call", None)
        assert word in answer["reason"], line[:80]
        assert answer["reason"].endswith("."), line[:80]
        assert len(answer["reason"]) < 200, line[:80]


def test_the_id_comes_back_as_it_was(checker: Checker) -> None:
    for request_id in (None, 0, "a", 1.5, True, ["x"], {"y": "é"}, "\ud800"):
        assert check(checker, {**READ, "id": request_id})["id"] == request_id
        assert check(checker, {"id": request_id})["id"] == request_id


def test_an_input_of_any_sort_gets_a_verdict(checker: Checker) -> None:
    inputs: tuple[object, ...] = (None, 5, "x", [], {}, {"file_path": 5}, {"file_path": "\ud800"})
    for given in inputs:
        answer = check(checker, {"tool": "Read", "input": given})
        assert answer["verdict"] == "deny", given
        assert answer["rule"] not in {"policy_error", "bad_call"}, given


def test_what_stands_beside_a_call_holds_for_that_line_alone(
    checker: Checker, workspace: Path
) -> None:
    (workspace / "src" / "sub").mkdir()
    fetch = {"tool": "WebFetch", "input": {"url": "https://docs.python.org/3/", "prompt": "x"}}
    own = {"tool": "mcp__gateway__remember", "input": {"text": "茶"}}
    head = {"tool": "Bash", "input": {"command": "head a.txt"}}
    ask = {"tool": "AskUserQuestion", "input": {"questions": []}}
    inside = {"tool": "Bash", "input": {"command": f"ls {workspace}"}}
    up = {"tool": "Bash", "input": {"command": "ls main.py"}, "workspace": str(workspace)}
    beside: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        (READ, {"class": "x", "note": "y"}, "allow"),
        *((READ, {"platform": platform}, "allow") for platform in ("any", None, "posix")),
        (inside, {}, "deny"),
        (inside, {"workspace": str(workspace)}, "allow"),
        (up, {"hook_cwd": f"{workspace}/src"}, "allow"),
        (up, {"hook_cwd": str(workspace.parent)}, "deny"),
        (fetch, {"config": {"webfetch_allow": ["docs.python.org"]}}, "allow"),
        (fetch, {"config": {"webfetch_allow": ["example.org"]}}, "deny"),
        (own, {"config": {"mcp_allow": ["mcp__gateway__remember"]}}, "allow"),
        (head, {"config": {"commands_allow": ["head"]}}, "allow"),
        (ask, {"config": {"can_ask_user": True}}, "allow"),
        *((call, {}, "deny") for call in (own, head, ask)),
    ]
    for call, more, verdict in beside:
        assert check(checker, {**call, **more})["verdict"] == verdict, (call, more)


def test_lines_are_read_whole_and_blank_ones_left_out() -> None:
    long = b"x" * (3 * MAX_LINE_BYTES)
    stream = io.BytesIO(b"\n  \r\n{a}\r\n" + long + b"\nb\n\nlast")
    lines = list(read_lines(stream))
    assert lines[0] == b"{a}\r\n"
    assert len(lines[1]) == MAX_LINE_BYTES + 1
    assert lines[2:] == [b"b\n", b"last"]


def test_an_id_that_can_just_be_read_is_answered(checker: Checker) -> None:
    """What can be read may still be nested too deeply to be written; how deep that is differs by version."""
    deepest = bisect_left(range(200_000), '"deny"', key=partial(_answer_to_nested_id, checker))
    answers = {_answer_to_nested_id(checker, deepest + change) for change in range(-160, 20)}
    assert answers == {'"allow', '"deny"'}


def _answer_to_nested_id(checker: Checker, depth: int) -> str:
    nested = b"[" * depth + b"]" * depth
    line = b'{"id": ' + nested + b', "tool": "Read", "input": {"file_path": "a.txt"}}'
    return checker.check_line(line).partition('"verdict": ')[2][:6]


@pytest.mark.parametrize("folder", ["\0", "\ud800", "relative", "/nosuch/folder", "a" * 5000, "~"])
def test_a_workspace_of_any_sort_gets_a_verdict(checker: Checker, folder: str) -> None:
    for told in ({**READ, "workspace": folder}, {**READ, "hook_cwd": folder}):
        assert check(checker, told)["verdict"] in {"allow", "deny"}
    outside = {"tool": "Read", "input": {"file_path": "/etc/passwd"}, "workspace": folder}
    assert check(checker, outside)["verdict"] == "deny"
