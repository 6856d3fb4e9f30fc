"""Rules that want a person to be asked: about which calls, which commands, which paths."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from policies.rules import AskRule, Rules, shipped_rules
from policies.tools import ToolCall, ToolGate
from policies.verdict import Allow, Ask, Deny, Verdict

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


@pytest.mark.parametrize(
    ("pattern", "command", "verdict"),
    [
        ("src/**", "cat src/main.py", Ask),
        ("src/**", "cat SRC/x", Ask),
        ("src/**", "ls src", Ask),
        ("src/**", "ls", Ask),
        ("src/**", "rm -rf src", Ask),
        ("src/**", "cat ./docs/../src/main.py", Ask),
        ("src/**", "cat alias", Ask),
        ("src/**", "cat docs/readme.md", Allow),
        ("src/**", "cat a.txt", Allow),
        ("src/**", "mv a.txt src", Ask),
        ("src/**", "mv -t src a.txt", Ask),
        ("src/**", "cp a.txt src/new.txt", Ask),
        ("src/**", "mkdir srcs", Allow),
        ("src", "cat src/main.py", Ask),
        ("*.md", "cat notes.md", Ask),
        ("*.md", "cat docs/readme.md", Allow),
        ("**/*.md", "cat docs/readme.md", Ask),
        ("**/*.md", "cat notes.md", Ask),
        ("**/*.md", "cat a.txt", Allow),
        ("**/*.md", "rm -rf docs", Ask),
        ("docs/*.md", "cat docs/readme.md", Ask),
        ("docs/*.md", "cat docs/new.txt", Allow),
        ("**", "cat a.txt", Ask),
        ("项目/**", "ls 项目", Ask),
        ("[ab].txt", "cat b.txt", Ask),
        ("[ab].txt", "cat notes.md", Allow),
    ],
)
def test_patterns_tell_which_paths_are_asked_about(
    workspace: Path, pattern: str, command: str, verdict: type[Verdict]
) -> None:
    (workspace / "alias").symlink_to("src/main.py")
    judged = judge(workspace, asking(pattern, commands=COMMANDS), "Bash", command=command)
    assert isinstance(judged, verdict), judged


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


def test_a_hostile_pattern_is_matched_in_bounded_work(tmp_path: Path) -> None:
    deep = "/".join("a" * 40)
    rules = asking("/".join(["**"] * 60 + ["z"]), tools=frozenset({"Write"}))
    verdict = judge(tmp_path, rules, "Write", file_path=deep, content="x")
    assert isinstance(verdict, Allow | Ask)
