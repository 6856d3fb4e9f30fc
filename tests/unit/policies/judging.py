"""One tool call through the gate under the shipped rules, for the tests that ask about many."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from policies.rules import shipped_rules
from policies.tools import ToolCall, ToolGate
from policies.verdict import Allow, Deny, Verdict
from policies.windows.judge import KNOWN_COMMANDS, Shell


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


def validate_windows_command(
    command: str,
    *,
    root: Path,
    cwd: Path | str,
    shell: Shell = "any",
    commands: frozenset[str] = KNOWN_COMMANDS,
) -> Verdict:
    """Judge a command line through the gate for Windows."""
    rules = replace(
        shipped_rules(),
        windows_commands=commands,
        tolerated_tools=shipped_rules().tolerated_tools | {"PowerShell"},
    )
    name = "PowerShell" if shell == "powershell" else "Bash"
    call = ToolCall(name=name, input={"command": command}, cwd=str(cwd))
    return ToolGate(root, rules=rules, platform="windows").judge(call)
