"""One tool call through the gate under the shipped rules, for the tests that ask about many."""

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from policies.calls import ToolCall
from policies.paths.workspace import Place
from policies.rules import shipped_rules
from policies.tools import ToolGate
from policies.verdict import Allow, Deny, Refused, Verdict
from policies.windows.judge import KNOWN_COMMANDS

T = TypeVar("T")


def denied(work: Callable[[], T]) -> T | Deny:
    """Return what `work` returns, or the denial with which it refuses."""
    try:
        return work()
    except Refused as refused:
        return refused.denial


def judge_call(root: Path, name: str, **given_input: Any) -> Verdict:
    return ToolGate(root).judge(ToolCall(name=name, input=given_input, cwd=str(root)))


def find_rule(root: Path, name: str, **given_input: Any) -> str:
    """Return the rule that denies a call; fails where none does."""
    verdict = judge_call(root, name, **given_input)
    assert isinstance(verdict, Deny), verdict
    return verdict.rule


def allow_call(root: Path, name: str, **given_input: Any) -> Allow:
    """Return the verdict on an allowed call; fails where it is none."""
    verdict = judge_call(root, name, **given_input)
    assert isinstance(verdict, Allow), verdict
    return verdict


def validate_windows_command(
    command: str,
    *,
    root: Path,
    cwd: Path | str,
    commands: frozenset[str] = KNOWN_COMMANDS,
) -> Verdict:
    """Judge a command line through the gate for Windows."""
    rules = replace(shipped_rules(), windows_commands=commands)
    call = ToolCall(name="PowerShell", input={"command": command}, cwd=str(cwd))
    return ToolGate(root, rules=rules, platform="windows").judge(call)


def line_of(verdict: Verdict) -> str:
    """Return the line that would run; fails where the command is refused."""
    assert isinstance(verdict, Allow), verdict
    assert verdict.updated_input is not None
    return str(verdict.updated_input["command"])


def bash_words(words: str, cwd: Path, *options: str, language: str = "C.UTF-8") -> list[str]:
    """Return what a restricted bash without programs makes of the words behind a command."""
    done = subprocess.run(
        ["/bin/bash", "-r", *options, "-c", f"printf '%s\\0' x {words}"],
        cwd=cwd,
        env={"PATH": "/nonexistent", "LC_ALL": language},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    assert done.stderr == b""
    return done.stdout.decode().split("\0")[1:-1]


def read_list(text: str) -> list[str]:
    """Return the items of a text, which ¦ or line ends separate.

    `{U+000A}` stands for a character that cannot be written, `{EMPTY}` for nothing.
    """
    items = (item.strip() for item in re.split(r"[¦\n]", text))
    spelled = (re.sub(r"\{U\+(\w+)\}", lambda code: chr(int(code[1], 16)), i) for i in items if i)
    return [item.replace("{EMPTY}", "") for item in spelled]


def read_table(text: str) -> list[tuple[str, str]]:
    """Return the (command, rule) pairs of lines `rule: command ¦ command`; a line that begins with ¦ continues."""
    pairs: list[tuple[str, str]] = []
    for line in re.sub(r"\n\s*¦", " ¦", text.strip()).splitlines():
        rule, _, commands = line.partition(":")
        pairs += ((command, rule.strip()) for command in read_list(commands))
    return pairs


def find_misses(table: str, judge: Callable[[str], Verdict | Place]) -> list[str]:
    """Return every command of a table that is not denied under its rule."""
    misses = []
    for command, rule in read_table(table):
        verdict = judge(command)
        found = verdict.rule if isinstance(verdict, Deny) else "allowed"
        if found != rule:
            misses.append(f"{command!r}: {found}, not {rule}")
    return misses


def count_calls(work: Callable[[], T]) -> tuple[int, T]:
    """Return how many functions some work calls, and its result."""
    count = 0

    def tally(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(tally)
    try:
        result = work()
    finally:
        sys.setprofile(None)
    return count, result
