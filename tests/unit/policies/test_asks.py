"""Rules that want a person to be asked, and what a person permits from then on."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from policies.calls import ToolCall
from policies.permits import Effect, Permit, Reach, permits_for
from policies.rules import AskRule, Rules, shipped_rules
from policies.tools import ToolGate
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
    first, second = (asking(path, tools=frozenset({"Read"})) for path in ("docs/**", "src/**"))
    rules = replace(first, ask=first.ask + second.ask)
    asked = [
        isinstance(judge(shared_workspace, rules, "Read", file_path=name), Ask)
        for name in ("docs/readme.md", "src/main.py", "a.txt")
    ]
    assert asked == [True, True, False]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("src/deep", "docs"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("a.txt", "b.txt", "src/c.txt", "src/d.txt", "src/deep/e.txt", "docs/f.txt"):
        (tmp_path / file).write_text("x", encoding="utf-8")
    (tmp_path / "src" / "link").symlink_to(tmp_path / "docs")
    return tmp_path


def effect(root: Path, call: str, cwd: str = "") -> Effect:
    """Return the effect of a call: a command, or a tool and its file."""
    tool, _, rest = call.partition(":")
    name, given = ("Bash", {"command": call})
    if rest:
        keys = {"Write": {"content": "x"}, "Edit": {"old_string": "x", "new_string": rest}}
        name = tool
        given = {"file_path": rest, **keys[tool]} if tool in keys else {"text": rest}
    rules = replace(shipped_rules(), own_changing_tools=frozenset({OWN}))
    verdict = ToolGate(root, rules=rules).judge(
        ToolCall(name=name, input=given, cwd=str(root / cwd))
    )
    assert isinstance(verdict, Allow), verdict
    assert verdict.effect is not None
    return verdict.effect


CASES = """
rm src/c.txt | exact | rm src/c.txt ¦ rm   'src/c.txt' | rm src/d.txt ¦ rm -f src/c.txt ¦ rm src/c.txt src/d.txt ¦ Write:src/c.txt
rm src/c.txt | folder | rm src/d.txt ¦ rm src/c.txt src/deep/e.txt | rm a.txt ¦ rm -r src/deep ¦ rm src/c.txt a.txt ¦ rm src/link/f.txt ¦ mkdir src/new
rm src/c.txt | any | rm a.txt ¦ rm -r docs | mv a.txt c.txt ¦ Write:src/c.txt
rm -r src/deep | folder | rm -r src/deep/e.txt | rm -r src ¦ rm -r docs ¦ rm src/c.txt
rm a.txt | folder | rm b.txt ¦ rm src/deep/e.txt | rm -r src
mv src/c.txt docs/c.txt | folder | mv a.txt b2.txt ¦ mv src/d.txt src/d2.txt | cp a.txt b2.txt
Write:src/new.txt | exact | Write:src/new.txt | Edit:src/c.txt ¦ Write:src/c.txt
Write:src/new.txt | folder | Write:src/deep/other.txt | Write:a.txt ¦ Write:src/link/f.txt ¦ mkdir src/new
Write:src/new.txt | any | Write:a.txt | Edit:a.txt
mcp__notes__add:hello | exact | mcp__notes__add:hello | mcp__notes__add:other
mcp__notes__add:hello | any | mcp__notes__add:other | Write:a.txt
"""


def test_each_rule_covers_what_it_says_and_nothing_beside_it(root: Path) -> None:
    misses = []
    for line in CASES.strip().splitlines():
        asked, reach, *columns = (part.strip() for part in line.split(" | "))
        permit = next(one for one in permits_for(effect(root, asked)) if one.reach == reach)
        misses += [
            f"{reach} of {asked!r} on {call!r}: not {expected}"
            for calls, expected in zip(columns, (True, False), strict=True)
            for call in calls.split(" ¦ ")
            if permit.covers(effect(root, call)) is not expected
        ]
    assert misses == []


def reaches(permits: tuple[Permit, ...]) -> list[Reach]:
    return [permit.reach for permit in permits]


def test_a_folder_is_offered_only_where_all_paths_are_known_to_be_below_it(root: Path) -> None:
    assert reaches(permits_for(effect(root, "rm src/c.txt"))) == ["exact", "folder", "any"]
    assert reaches(permits_for(effect(root, f"{OWN}:x"))) == ["exact", "any"]
    (root / "out").symlink_to("/nowhere/else")
    assert reaches(permits_for(effect(root, "rm out"))) == ["exact", "any"]
    unknown = replace(effect(root, "rm src/c.txt"), options=None)
    assert reaches(permits_for(unknown)) == ["exact", "any"]


def test_the_same_words_elsewhere_are_another_call(root: Path) -> None:
    here = permits_for(effect(root, "rm deep/../c.txt", cwd="src"))[0]
    (root / "deep").mkdir()
    (root / "c.txt").write_text("x", encoding="utf-8")
    assert not here.covers(effect(root, "rm deep/../c.txt"))
    linked = permits_for(effect(root, "rm src/link/f.txt"))[0]
    (root / "src" / "link").unlink()
    (root / "src" / "link").symlink_to(root / "src" / "deep")
    assert not linked.covers(effect(root, "rm src/link/f.txt"))


def test_clients_see_the_rule_in_words_that_were_made_safe(root: Path) -> None:
    fields = [rule.fields(str.upper) for rule in permits_for(effect(root, "rm -f src/c.txt"))]
    bash = {"tool": "Bash", "command": "rm"}
    assert fields == [
        {"reach": "exact", **bash, "call": "RM -F -- SRC/C.TXT"},
        {"reach": "folder", **bash, "options": ["-F"], "folder": "SRC"},
        {"reach": "any", **bash},
    ]
