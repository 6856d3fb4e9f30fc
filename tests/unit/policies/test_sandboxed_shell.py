"""The policy where Bash runs in a box: its lines are not read, and everything else is judged as before."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from policies.calls import ToolCall
from policies.permits import Effect, permits_for
from policies.rules import AskRule, Rules, shipped_rules
from policies.tools import ToolGate
from policies.verdict import Allow, Ask, Deny, Verdict


def judge(
    root: Path, tool: str, cwd: Path | None = None, rules: Rules | None = None, **given: Any
) -> Verdict:
    gate = ToolGate(root, rules=rules, sandboxed_shell=True)
    return gate.judge(ToolCall(name=tool, input=given, cwd=str(cwd or root)))


@pytest.mark.parametrize(
    "line",
    [
        "python3 -m unittest | tail -3",
        "cat /etc/passwd > x",
        "rm -rf .",
        "curl evil.example",
        "$(x",
    ],
)
def test_any_line_runs_as_it_is_and_counts_as_a_change_of_the_workspace(
    tmp_path: Path, line: str
) -> None:
    verdict = judge(tmp_path, "Bash", command=line, timeout=5000, description="d")
    assert isinstance(verdict, Allow)
    assert verdict.rule == "bash_sandboxed"
    assert verdict.updated_input == {"command": line, "timeout": 5000, "description": "d"}
    assert verdict.changes
    assert verdict.paths == (str(tmp_path),)


@pytest.mark.parametrize(
    "given",
    [
        {"command": "ls", "run_in_background": True},
        {"command": "ls", "dangerouslyDisableSandbox": True},
        {"command": "ls", "timeout": 600_001},
        {"command": 1},
        {"command": "ls", "shell": "zsh"},
    ],
)
def test_modes_and_inputs_are_judged_as_before(tmp_path: Path, given: dict[str, Any]) -> None:
    assert isinstance(judge(tmp_path, "Bash", **given), Deny)


def test_a_shell_that_stands_outside_of_the_workspace_runs_nothing(tmp_path: Path) -> None:
    verdict = judge(tmp_path, "Bash", tmp_path.parent, command="ls")
    assert isinstance(verdict, Deny)
    assert verdict.rule == "cwd_outside"


def test_the_tools_for_files_are_judged_as_before(tmp_path: Path) -> None:
    for name in (".env", "../x", ".git/config"):
        assert isinstance(judge(tmp_path, "Read", file_path=str(tmp_path / name)), Deny), name
    assert isinstance(
        judge(tmp_path, "Write", file_path=str(tmp_path / "CLAUDE.md"), content="x"), Deny
    )


def test_a_rule_about_commands_asks_about_every_line(tmp_path: Path) -> None:
    """Which commands a line runs is not known."""
    rules = replace(shipped_rules(), ask=(AskRule(commands=frozenset({"rm"})),))
    assert isinstance(judge(tmp_path, "Bash", rules=rules, command="ls"), Ask)
    assert isinstance(
        judge(tmp_path, "Write", rules=rules, file_path=str(tmp_path / "a"), content=""), Allow
    )
    on_paths = replace(
        shipped_rules(), ask=(AskRule(tools=frozenset({"Bash"}), paths=("a/*.lock",)),)
    )
    assert isinstance(judge(tmp_path, "Bash", rules=on_paths, command="ls"), Ask)


def test_a_yes_to_a_line_covers_that_line_in_that_folder(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    rules = replace(shipped_rules(), ask=(AskRule(tools=frozenset({"Bash"})),))
    lines = [
        ("make", tmp_path),
        ("make", tmp_path / "sub"),
        ("make all", tmp_path),
        ("make", tmp_path),
    ]
    effects = []
    for line, cwd in lines:
        verdict = judge(tmp_path, "Bash", cwd, rules, command=line)
        assert isinstance(verdict, Ask)
        assert verdict.effect is not None
        effects.append(verdict.effect)
    exact, wide = permits_for(effects[0])
    assert [exact.covers(effect) for effect in effects] == [True, False, False, True]
    assert (exact.reach, wide.reach) == ("exact", "any")
    assert effects[0].shown == "make"


@pytest.mark.parametrize(
    ("line", "same", "others"),
    [
        ("make all", ["make all ", " make all\t"], ["make  all", "make all\nrm x", "make all\\ "]),
        ("echo a\\ ", ["echo a\\  ", " echo a\\ "], ["echo a\\", "echo a"]),
        ("cat <<E\nx\nE", ["cat <<E\nx\nE"], ["cat <<E\nx\nE ", " cat <<E\nx\nE"]),
    ],
)
def test_a_yes_to_a_line_covers_it_with_another_description_time_and_blanks_around_it(
    tmp_path: Path, line: str, same: list[str], others: list[str]
) -> None:
    """Blanks are left as they are in several lines: they may tell whether a document ends."""
    rules = replace(shipped_rules(), ask=(AskRule(tools=frozenset({"Bash"})),))

    def effect(command: str, **more: Any) -> Effect:
        verdict = judge(tmp_path, "Bash", rules=rules, command=command, **more)
        assert isinstance(verdict, Ask)
        assert verdict.effect is not None
        return verdict.effect

    exact, _ = permits_for(effect(line, description="first", timeout=1000))
    assert [found for found in same if not exact.covers(effect(found, description="x"))] == []
    assert [found for found in others if exact.covers(effect(found, description="first"))] == []
