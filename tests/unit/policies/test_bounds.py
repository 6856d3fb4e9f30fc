"""Hostile calls and command lines are judged in bounded work, measured in function calls and not in time."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from policies.calls import ToolCall
from policies.rules import AskRule, shipped_rules
from policies.shell.commands import GRAMMARS
from policies.tools import ToolGate, validate_bash_command
from policies.verdict import Deny, Verdict
from tests.unit.policies.judging import count_calls, validate_windows_command

LONG = 100_000
MOST_CALLS = 2_500_000
"""An honest verdict needs some hundred."""
ALL = replace(shipped_rules(), commands=frozenset(GRAMMARS))


def count_line(command: str, root: Path) -> tuple[int, Verdict]:
    return count_calls(lambda: validate_bash_command(command, root=root, cwd=root, rules=ALL))


def count_tool(gate: ToolGate, tool: str, given: Any) -> tuple[int, Verdict]:
    return count_calls(lambda: gate.judge(ToolCall(name=tool, input=given, cwd=str(gate.root))))


def nest(depth: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    return nested


HOSTILE_CALLS: tuple[tuple[str, Any], ...] = (
    ("Read", {"file_path": "a" * LONG}),
    ("Read", {"file_path": "a/" * LONG}),
    ("Read", {"file_path": "../" * LONG}),
    ("Read", {"file_path": "\u202e" * LONG}),
    ("Write", {"file_path": "é" * LONG, "content": "x"}),
    ("Glob", {"pattern": "*" * LONG}),
    ("Glob", {"pattern": "{a,b}" * 200}),
    ("Glob", {"pattern": "{" * 1000}),
    ("Glob", {"pattern": "{a," * 300 + "}" * 300}),
    ("Glob", {"pattern": "}" * 1000}),
    ("Glob", {"pattern": "{" + "," * 1000 + "}"}),
    ("Glob", {"pattern": "x", "path": "a" * LONG}),
    ("Grep", {"pattern": "x", "glob": "*.a " * LONG}),
    ("Grep", {"pattern": "x", "glob": "a," * LONG}),
    ("Grep", {"pattern": "x", "type": "a" * LONG}),
    ("Skill", {"skill": "a" * LONG}),
    ("Skill", {"skill": "a", "args": "a" * LONG}),
    ("WebFetch", {"url": "https://" + "a." * LONG + "example", "prompt": "x"}),
    ("WebFetch", {"url": "https://" + "[" * LONG, "prompt": "x"}),
    ("Bash", {"command": "ls", "timeout": "9" * LONG}),
    ("Bash", {"command": "ls " + "'" * LONG}),
    ("Bash", nest(10_000)),
    ("TodoWrite", {"todos": nest(50_000)}),
    ("x" * LONG, {}),
    ("Read", dict.fromkeys(map(str, range(10_000)), "x")),
)


def test_what_is_too_long_or_too_deep_is_denied_at_once(shared_workspace: Path) -> None:
    gate = ToolGate(shared_workspace)
    for number, (tool, given) in enumerate(HOSTILE_CALLS):
        count, verdict = count_tool(gate, tool, given)
        assert count < MOST_CALLS, number
        assert isinstance(verdict, Deny), number
        assert verdict.rule != "policy_error", number
        assert len(verdict.message) < 400, number


def test_text_is_only_text_however_long(shared_workspace: Path) -> None:
    for tool, given in (
        ("Write", {"file_path": "a.txt", "content": "(" * 1_000_000}),
        ("Grep", {"pattern": "(" * LONG}),
    ):
        count, verdict = count_tool(ToolGate(shared_workspace), tool, given)
        assert count < 5_000
        assert not isinstance(verdict, Deny)


def test_a_hostile_rule_to_ask_by_is_matched_in_bounded_work(shared_workspace: Path) -> None:
    ask = AskRule(tools=frozenset({"Write"}), paths=("/".join(["**", "*a*a*a*a*"] * 20),) * 20)
    gate = ToolGate(shared_workspace, rules=replace(shipped_rules(), ask=(ask,)))
    deep = "/".join(["a" * 100] * 30)
    assert count_tool(gate, "Write", {"file_path": deep, "content": ""})[0] < MOST_CALLS


QUICK_LINES = (
    *("ls " + "a" * LONG, "ls " + "'" * LONG, "ls " + "(" * LONG, "ls " + "$(" * LONG, "a" * LONG),
    *("ls " + "* " * 2_000, "ls " + "*/" * 2_000, "ls " + "*a" * 2_000, "ls *" + "/." * 2_000),
    *("ls " + "[a-z]" * 800, "ls " + "[" * 4_000, "ls " + "''" * 2_000, "ls " + "'a'\"b\"" * 600),
    *("mkdir -p " + "a/" * 2_000, "rmdir -p " + "a/" * 2_000, "ls -" + "l" * 4_000),
    "find . " + "-not " * 800,
)
SLOW_LINES = (
    *(
        "ls " + "./" * 2_000,
        "ls " + "src/../" * 580,
        "ls " + "*/*/* " * 300,
        "rm -rf " + "src " * 500,
    ),
    *("cp -r " + "src " * 500 + "docs", "mv " + "src " * 500 + "docs", "mkdir -p " + "a/../" * 800),
    *("rmdir -p " + ("a/" * 60 + " ") * 33, "grep -r x " + "src " * 500),
)


def check_lines(lines: tuple[str, ...], root: Path) -> None:
    for command in lines:
        calls, verdict = count_line(command, root)
        assert calls < MOST_CALLS, command[:40]
        assert verdict.rule != "policy_error", command[:40]
        if len(command) > 5_000:
            assert (calls < 500, verdict.rule) == (True, "command_too_long"), command[:40]


def test_hostile_lines_are_judged_in_bounded_work(shared_workspace: Path) -> None:
    check_lines(QUICK_LINES[1::2], shared_workspace)


@pytest.mark.soak
def test_many_hostile_words_are_judged_in_bounded_work(shared_workspace: Path) -> None:
    check_lines(QUICK_LINES + SLOW_LINES, shared_workspace)


def test_the_work_grows_with_the_line_and_not_faster(shared_workspace: Path) -> None:
    for piece in ("a", "'a' ", "\\ ", "a/", "*x ", "./", "[a]"):
        short, _ = count_line("ls " + piece * 25, shared_workspace)
        long, _ = count_line("ls " + piece * 100, shared_workspace)
        assert long < 6 * short + 20_000, piece


def test_many_patterns_over_many_files_are_judged_in_bounded_work(tmp_path: Path) -> None:
    for i in range(3000):
        (tmp_path / f"{'ab' * 40}{i}").touch()
    calls, verdict = count_line("ls " + "*a*a*a*a*a*a*a*z " * 200, tmp_path)
    assert calls < MOST_CALLS
    assert verdict.rule == "glob_too_wide"
    windows = validate_windows_command("copy a* b", root=tmp_path, cwd=tmp_path)
    assert windows.rule == "glob_too_wide"


WINDOWS_LINES = (
    *("del " + "a" * LONG, "del " + '"' * LONG, "Remove-Item " + "'" * LONG, "\n" * LONG),
    *("del " + "a.txt " * 600, "del " + "/q" * 2000 + " a.txt", "del " + "*?" * 1500),
    *("Remove-Item " + "*\\" * 1500 + "x", "Remove-Item " + "[a-z]" * 700),
    *("Remove-Item '" + "''" * 1900 + "'", "Remove-Item " + "..\\" * 1300),
    *("New-Item -ItemType Directory " + "a\\" * 1900, "Remove-Item " + "-Force " * 500),
    "Get-ChildItem " + "-" * 4000,
)
SLOW_WINDOWS_LINES = (
    *("Remove-Item " + ",".join(["*.log"] * 500), "del " + "src " * 500),
    "Remove-Item " + "src\\..\\" * 580 + "a.txt",
)


def check_windows_lines(lines: tuple[str, ...], root: Path) -> None:
    for command in lines:
        calls, verdict = count_calls(
            lambda line=command: validate_windows_command(line, root=root, cwd=root)  # type: ignore[misc]
        )
        assert calls < MOST_CALLS, command[:40]
        assert verdict.rule != "policy_error", command[:40]


def test_hostile_windows_lines_are_judged_in_bounded_work(shared_workspace: Path) -> None:
    check_windows_lines(WINDOWS_LINES[::2], shared_workspace)


@pytest.mark.soak
def test_many_hostile_windows_words_are_judged_in_bounded_work(shared_workspace: Path) -> None:
    check_windows_lines(WINDOWS_LINES + SLOW_WINDOWS_LINES, shared_workspace)
