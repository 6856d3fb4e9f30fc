"""Hostile inputs of every tool, judged in bounded work: functions called are counted, no clock is read."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from policies.rules import AskRule, shipped_rules
from policies.tools import ToolCall, ToolGate
from policies.verdict import Deny, Verdict

LONG = 100_000
MOST_CALLS = 2_500_000


def _count_calls(gate: ToolGate, call: ToolCall) -> tuple[int, Verdict]:
    count = 0

    def tally(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(tally)
    try:
        verdict = gate.judge(call)
    finally:
        sys.setprofile(None)
    return count, verdict


def _nest(depth: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    return nested


@pytest.mark.parametrize(
    ("tool", "given_input"),
    [
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
        ("Bash", _nest(10_000)),
        ("TodoWrite", {"todos": _nest(50_000)}),
        ("x" * LONG, {}),
        ("Read", dict.fromkeys(map(str, range(10_000)), "x")),
    ],
)
def test_what_is_too_long_or_too_deep_is_denied_at_once(
    shared_workspace: Path, tool: str, given_input: Any
) -> None:
    call = ToolCall(name=tool, input=given_input, cwd=str(shared_workspace))
    count, verdict = _count_calls(ToolGate(shared_workspace), call)
    assert count < MOST_CALLS
    assert isinstance(verdict, Deny)
    assert verdict.rule != "policy_error"
    assert len(verdict.message) < 400


@pytest.mark.parametrize(
    ("tool", "given_input"),
    [
        ("Write", {"file_path": "a.txt", "content": "(" * 1_000_000}),
        ("Grep", {"pattern": "(" * LONG}),
    ],
)
def test_text_is_only_text_however_long(
    shared_workspace: Path, tool: str, given_input: dict[str, Any]
) -> None:
    call = ToolCall(name=tool, input=given_input, cwd=str(shared_workspace))
    count, verdict = _count_calls(ToolGate(shared_workspace), call)
    assert count < 5_000
    assert not isinstance(verdict, Deny)


def test_a_hostile_rule_to_ask_by_is_matched_in_bounded_work(shared_workspace: Path) -> None:
    pattern = "/".join(["**", "*a*a*a*a*"] * 20)
    rules = replace(
        shipped_rules(), ask=(AskRule(tools=frozenset({"Write"}), paths=(pattern,) * 20),)
    )
    deep = "/".join(["a" * 100] * 30)
    given_input = {"file_path": deep, "content": ""}
    call = ToolCall(name="Write", input=given_input, cwd=str(shared_workspace))
    count, _ = _count_calls(ToolGate(shared_workspace, rules=rules), call)
    assert count < MOST_CALLS
