"""`policy check` without a process: lines in, lines out."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from policies.check import MAX_LINE_BYTES, Checker, read_lines
from policies.rules import AskRule, shipped_rules

READ = {"id": 1, "tool": "Read", "input": {"file_path": "a.txt"}}


@pytest.fixture
def checker(shared_workspace: Path) -> Checker:
    return Checker(shipped_rules(), shared_workspace)


def check(checker: Checker, told: object) -> dict[str, Any]:
    line = told if isinstance(told, bytes) else json.dumps(told).encode()
    answer: dict[str, Any] = json.loads(checker.check_line(line))
    assert list(answer) == ["id", "verdict", "rule", "reason", "runs"]
    return answer


def test_a_command_is_answered_with_what_would_run(checker: Checker) -> None:
    told = {"id": "一", "tool": "Bash", "input": {"command": "rm -rf 'build' \"项目\""}}
    assert check(checker, told) == {
        "id": "一",
        "verdict": "allow",
        "rule": "bash_rm",
        "reason": "A listed command with every path inside the workspace.",
        "runs": "rm -r -f -- build '项目'",
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


def test_keys_that_say_nothing_about_the_call_are_passed_over(checker: Checker) -> None:
    assert check(checker, {**READ, "class": "x", "note": "y"})["verdict"] == "allow"


def test_each_line_is_judged_in_its_own_workspace(checker: Checker, workspace: Path) -> None:
    (workspace / "src" / "sub").mkdir()
    inside = {"tool": "Bash", "input": {"command": f"ls {workspace}"}}
    assert check(checker, inside)["verdict"] == "deny"
    assert check(checker, {**inside, "workspace": str(workspace)})["verdict"] == "allow"
    up = {"tool": "Bash", "input": {"command": "ls main.py"}, "workspace": str(workspace)}
    assert check(checker, {**up, "hook_cwd": f"{workspace}/src"})["verdict"] == "allow"
    assert check(checker, {**up, "hook_cwd": str(workspace.parent)})["rule"] == "cwd_outside"


def test_settings_of_a_line_hold_for_that_line_alone(checker: Checker) -> None:
    fetch = {"tool": "WebFetch", "input": {"url": "https://docs.python.org/3/", "prompt": "x"}}
    own = {"tool": "mcp__gateway__remember", "input": {"text": "茶"}}
    head = {"tool": "Bash", "input": {"command": "head a.txt"}}
    ask = {"tool": "AskUserQuestion", "input": {"questions": []}}
    listed = {"webfetch_allow": ["docs.python.org"]}
    elsewhere = {"webfetch_allow": ["example.org"]}
    assert check(checker, {**fetch, "config": listed})["verdict"] == "allow"
    assert check(checker, {**fetch, "config": elsewhere})["verdict"] == "deny"
    for call, config in (
        (own, {"mcp_allow": ["mcp__gateway__remember"]}),
        (head, {"commands_allow": ["head"]}),
        (ask, {"can_ask_user": True}),
    ):
        assert check(checker, {**call, "config": config})["verdict"] == "allow"
        assert check(checker, call)["verdict"] == "deny"


def test_a_platform_that_is_any_is_this_one(checker: Checker) -> None:
    for platform in ("any", None, "posix"):
        assert check(checker, {**READ, "platform": platform})["verdict"] == "allow"


def test_lines_are_read_whole_and_blank_ones_left_out() -> None:
    long = b"x" * (3 * MAX_LINE_BYTES)
    stream = io.BytesIO(b"\n  \r\n{a}\r\n" + long + b"\nb\n\nlast")
    lines = list(read_lines(stream))
    assert lines[0] == b"{a}\r\n"
    assert len(lines[1]) == MAX_LINE_BYTES + 1
    assert lines[2:] == [b"b\n", b"last"]


def test_an_id_that_can_just_be_read_is_answered(checker: Checker) -> None:
    answers = set()
    for depth in range(800, 1010):
        nested = b"[" * depth + b"]" * depth
        line = b'{"id": ' + nested + b', "tool": "Read", "input": {"file_path": "a.txt"}}'
        answers.add(checker.check_line(line).partition('"verdict": ')[2])
    assert {answer[:6] for answer in answers} == {'"allow', '"deny"'}


@pytest.mark.parametrize("folder", ["\0", "\ud800", "relative", "/nosuch/folder", "a" * 5000, "~"])
def test_a_workspace_of_any_sort_gets_a_verdict(checker: Checker, folder: str) -> None:
    for told in ({**READ, "workspace": folder}, {**READ, "hook_cwd": folder}):
        assert check(checker, told)["verdict"] in {"allow", "deny"}
    outside = {"tool": "Read", "input": {"file_path": "/etc/passwd"}, "workspace": folder}
    assert check(checker, outside)["verdict"] == "deny"
