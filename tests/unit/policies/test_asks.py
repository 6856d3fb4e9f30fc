"""Rules that want a person to be asked: about which calls, which commands, which paths."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from policies.rules import AskRule, Rules, shipped_rules
from policies.tools import ToolCall, ToolGate
from policies.verdict import Allow, Ask, Deny, Verdict
from tests.unit.policies.judging import read_table

OWN = "mcp__notes__add"


def asking(
    *paths: str, tools: frozenset[str] = frozenset(), commands: frozenset[str] = frozenset()
) -> Rules:
    rule = AskRule(tools=tools, commands=commands, paths=paths)
    return replace(shipped_rules(), ask=(rule,), own_changing_tools=frozenset({OWN}))


FILES = frozenset({"Read", "Write", "Edit", "NotebookEdit", "Glob", "Grep"})
COMMANDS = frozenset({"rm", "mv", "cp", "mkdir", "ls", "cat"})


def judge(root: Path, rules: Rules, tool: str, **given_input: Any) -> Verdict:
    return ToolGate(root, rules=rules).judge(ToolCall(name=tool, input=given_input, cwd=str(root)))


def test_every_call_of_a_named_tool_is_asked_about(shared_workspace: Path) -> None:
    rules = asking(tools=frozenset({"Read", "TodoWrite", OWN}))
    calls: dict[str, dict[str, Any]] = {"Read": {"file_path": "a.txt"}, "TodoWrite": {"todos": []}}
    for tool, given_input in [*calls.items(), (OWN, {})]:
        verdict = judge(shared_workspace, rules, tool, **given_input)
        assert isinstance(verdict, Ask), verdict
        assert verdict.rule == "ask_rule"
        assert tool in verdict.reason
        assert verdict.reason.endswith(".")
    assert isinstance(judge(shared_workspace, rules, "Bash", command="ls"), Allow)


def test_a_question_carries_what_would_run_and_whether_it_changes_anything(
    shared_workspace: Path,
) -> None:
    rules = asking(commands=frozenset({"rm", "ls"}))
    verdict = judge(shared_workspace, rules, "Bash", command="rm  -rf  ./build")
    assert verdict == Ask(
        "ask_rule",
        "A rule of this gateway wants a person to be asked about rm.",
        {"command": "rm -r -f -- ./build"},
        changes=True,
    )
    looking = judge(shared_workspace, rules, "Bash", command="ls")
    assert isinstance(looking, Ask)
    assert not looking.changes
    assert isinstance(judge(shared_workspace, rules, "Bash", command="cat a.txt"), Allow)


def test_what_is_denied_is_never_asked_about(shared_workspace: Path) -> None:
    rules = asking(tools=FILES | {"Bash"}, commands=COMMANDS)
    for tool, given_input in [
        ("Read", {"file_path": "../outside.txt"}),
        ("Write", {"file_path": ".env", "content": "x"}),
        ("Bash", {"command": "rm -rf ."}),
        ("Bash", {"command": "ls; id"}),
    ]:
        assert isinstance(judge(shared_workspace, rules, tool, **given_input), Deny)


ASKED = """
ask src/**: cat src/main.py ¦ cat SRC/x ¦ ls src ¦ ls ¦ rm -rf src ¦ cat ./docs/../src/main.py ¦ cat alias ¦ mv a.txt src ¦ mv -t src a.txt ¦ cp a.txt src/new.txt
allow src/**: cat docs/readme.md ¦ cat a.txt ¦ mkdir srcs
ask src: cat src/main.py
ask *.md: cat notes.md
allow *.md: cat docs/readme.md
ask **/*.md: cat docs/readme.md ¦ cat notes.md ¦ rm -rf docs
allow **/*.md: cat a.txt
ask docs/*.md: cat docs/readme.md
allow docs/*.md: cat docs/new.txt
ask **: cat a.txt
ask 项目/**: ls 项目
ask [ab].txt: cat b.txt
allow [ab].txt: cat notes.md
"""
"""The verdict and the pattern, then commands."""


def test_patterns_tell_which_paths_are_asked_about(workspace: Path) -> None:
    (workspace / "alias").symlink_to("src/main.py")
    for command, head in read_table(ASKED):
        expected, pattern = head.split()
        judged = judge(workspace, asking(pattern, commands=COMMANDS), "Bash", command=command)
        assert type(judged).__name__.lower() == expected, (pattern, command)


def test_patterns_hold_for_the_file_tools(shared_workspace: Path) -> None:
    rules = asking("src/**", tools=FILES)
    root = shared_workspace
    write = {"content": "x"}
    assert isinstance(judge(root, rules, "Write", file_path="src/a.py", **write), Ask)
    assert isinstance(judge(root, rules, "Write", file_path=f"{root}/src/a.py", **write), Ask)
    assert isinstance(judge(root, rules, "Write", file_path="docs/a.md", **write), Allow)
    assert isinstance(judge(root, rules, "Grep", pattern="x"), Ask)
    assert isinstance(judge(root, rules, "Grep", pattern="x", path="docs"), Allow)
    assert isinstance(judge(root, rules, "Glob", pattern="*", path="src"), Ask)
    assert isinstance(judge(root, rules, "Glob", pattern="src/*", path="."), Ask)


def test_where_nobody_knows_the_paths_every_pattern_may_match(shared_workspace: Path) -> None:
    rules = asking("src/**", tools=frozenset({OWN}))
    assert isinstance(judge(shared_workspace, rules, OWN, text="x"), Ask)


def test_the_first_of_several_rules_that_fits_asks(shared_workspace: Path) -> None:
    rules = replace(
        shipped_rules(),
        ask=(
            AskRule(tools=frozenset({"Read"}), paths=("docs/**",)),
            AskRule(tools=frozenset({"Read"}), paths=("src/**",)),
        ),
    )
    asked = [
        isinstance(judge(shared_workspace, rules, "Read", file_path=name), Ask)
        for name in ("docs/readme.md", "src/main.py", "a.txt")
    ]
    assert asked == [True, True, False]
