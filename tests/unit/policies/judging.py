"""One tool call through the gate under the shipped rules, for the tests that ask about many."""

from pathlib import Path
from typing import Any

from policies.tools import ToolCall, ToolGate
from policies.verdict import Allow, Deny, Verdict


def judge_call(root: Path, name: str, **given_input: Any) -> Verdict:
    return ToolGate(root).judge(ToolCall(name=name, input=given_input, cwd=str(root)))


def find_rule(root: Path, name: str, **given_input: Any) -> str:
    """Give the rule that denies a call; fails where none does."""
    verdict = judge_call(root, name, **given_input)
    assert isinstance(verdict, Deny), verdict
    return verdict.rule


def allow_call(root: Path, name: str, **given_input: Any) -> Allow:
    """Give the verdict on an allowed call; fails where it is none."""
    verdict = judge_call(root, name, **given_input)
    assert isinstance(verdict, Allow), verdict
    return verdict
