"""The gate: one call in, one verdict out."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.calls import OwnToolRule, ToolCall
from policies.rules import load_rules, shipped_rules
from policies.tools import OFFERED_TOOLS, Platform, ToolGate, validate_bash_command
from policies.verdict import Allow, Ask, Deny, Verdict
from tests.unit.policies.judging import allow_call, find_rule

QUESTION = {"questions": [{"question": "Which?", "header": "Pick", "options": []}]}


HONEST: dict[str, dict[str, Any]] = {
    "Read": {"file_path": "a.txt"},
    "Write": {"file_path": "new.txt", "content": "x"},
    "Edit": {"file_path": "a.txt", "old_string": "a", "new_string": "b", "replace_all": True},
    "NotebookEdit": {"notebook_path": "n.ipynb", "new_source": "x", "edit_mode": "insert"},
    "Glob": {"pattern": "**/*.py"},
    "Grep": {"pattern": "TODO", "output_mode": "content", "-n": True, "head_limit": 5},
    "Bash": {"command": "ls"},
    "Skill": {"skill": "demo"},
}


def test_an_honest_call_of_every_offered_tool_is_allowed(shared_workspace: Path) -> None:
    assert set(HONEST) == set(OFFERED_TOOLS)
    for name, given_input in HONEST.items():
        allow_call(shared_workspace, name, **given_input)


def test_only_writing_tools_change_something(shared_workspace: Path) -> None:
    changing = {n for n, i in HONEST.items() if allow_call(shared_workspace, n, **i).changes}
    assert changing == {"Write", "Edit", "NotebookEdit"}
    assert allow_call(shared_workspace, "Bash", command="rm a.txt").changes


def test_the_gateways_own_tools_are_allowed_by_exact_name(shared_workspace: Path) -> None:
    rules = replace(
        shipped_rules(),
        own_changing_tools=frozenset({"mcp__memory__upsert"}),
        own_reading_tools=frozenset({"mcp__memory__search"}),
    )
    gate = ToolGate(shared_workspace, rules=rules)

    def judge(name: str) -> Verdict:
        return gate.judge(ToolCall(name=name, input={"x": 1}, cwd="/"))

    upsert, search = judge("mcp__memory__upsert"), judge("mcp__memory__search")
    assert isinstance(upsert, Allow)
    assert isinstance(search, Allow)
    assert (upsert.changes, search.changes) == (True, False)
    for name in ("mcp__memory", "mcp__memory__upsert2", "mcp__memory__", "MCP__memory__search"):
        assert isinstance(judge(name), Deny)


def test_a_tool_that_comes_and_goes_is_judged_by_what_the_operator_says_of_it(
    shared_workspace: Path,
) -> None:
    rules: dict[str, OwnToolRule] = {
        "mcp__time__now": OwnToolRule(changes=False),
        "mcp__time__set": OwnToolRule(),
        "mcp__time__tell": OwnToolRule(changes=False, ask="always"),
        "mcp__time__wind": OwnToolRule(ask="never"),
        "mcp__memory__memory_get": OwnToolRule(),
    }
    gate = ToolGate(shared_workspace, further_tools=rules.get)

    def judge(name: str) -> Verdict:
        return gate.judge(ToolCall(name=f"mcp__{name}", input={"x": 1}, cwd="/"))

    found = {name: judge(name) for name in ("time__now", "time__set", "time__tell", "time__wind")}
    assert {name: type(verdict) for name, verdict in found.items()} == {
        "time__now": Allow,
        "time__set": Allow,
        "time__tell": Ask,
        "time__wind": Allow,
    }
    told = [
        (verdict.changes, verdict.unasked)
        for verdict in found.values()
        if not isinstance(verdict, Deny)
    ]
    assert told == [(False, False), (True, False), (False, False), (True, True)]
    rules.clear()
    assert isinstance(judge("time__now"), Deny)
    assert isinstance(judge("memory__memory_get"), Allow), "the shipped rules name it"


def test_unlisted_and_missing_inputs_are_refused(shared_workspace: Path) -> None:
    optional = {"replace_all", "edit_mode", "output_mode", "-n", "head_limit"}
    for name, given_input in HONEST.items():
        assert find_rule(shared_workspace, name, **given_input, surprise=1) == "tool_input"
        for key in given_input.keys() - optional:
            rest = {k: v for k, v in given_input.items() if k != key}
            assert find_rule(shared_workspace, name, **rest) == "tool_input"


WRONG: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Read", {"file_path": ["/etc/passwd"]}),
    ("Read", {"file_path": "a.txt", "limit": "1;2"}),
    ("Grep", {"pattern": "x", "-A": "--pre=sh"}),
    ("Grep", {"pattern": "x", "type": "--pre=sh"}),
    ("Bash", {"command": "ls", "timeout": True}),
    ("Bash", {"command": "ls", "timeout": 600_001}),
    ("NotebookEdit", {"notebook_path": "a.txt", "new_source": ""}),
    *(("Skill", {"skill": name}) for name in ("../x", "a/b", "a b", "", "x" * 65, "a;b", "报告")),
    *(
        ("Skill", {"skill": "demo", "args": args})
        for args in ("!`id`", "$HOME", "@/etc/passwd", "a\nb", "x" * 2001)
    ),
)
MODES = [
    {key: value}
    for key in ("run_in_background", "dangerouslyDisableSandbox")
    for value in (True, "false", 0, None)
]
"""A command runs in the foreground and in the sandbox."""


def test_inputs_of_the_wrong_type_or_form_are_refused(shared_workspace: Path) -> None:
    allow_call(shared_workspace, "Skill", skill="demo", args="the notes of today")
    for mode in MODES:
        assert find_rule(shared_workspace, "Bash", command="ls", **mode) == "bash_mode"
    for tool, given_input in WRONG:
        assert find_rule(shared_workspace, tool, **given_input) == "tool_input", given_input
    call = ToolCall(name="Read", input=["a.txt"], cwd="/")  # type: ignore[arg-type]
    assert isinstance(ToolGate(shared_workspace).judge(call), Deny)


def test_a_relative_path_is_made_absolute_and_a_full_one_left_alone(shared_workspace: Path) -> None:
    full = f"{shared_workspace}/a.txt"
    allowed = allow_call(shared_workspace, "Read", file_path="src/../a.txt", limit=5)
    assert allowed.updated_input == {"file_path": full, "limit": 5}
    assert allow_call(shared_workspace, "Read", file_path=full).updated_input is None


def test_a_command_keeps_only_what_was_judged(shared_workspace: Path) -> None:
    kept = {"description": "List", "timeout": 1000}
    told = {"command": "ls  src", **kept, "run_in_background": False}
    allowed = allow_call(shared_workspace, "Bash", **told)
    assert allowed.updated_input == {"command": "ls -- src", **kept}


def test_only_the_workspaces_own_skills_are_launched(workspace: Path) -> None:
    """Not what the agent program brings (`update-config`), nor a plugin's, nor a user's."""
    commands = workspace / ".claude/commands"
    commands.mkdir()
    (commands / "deploy.md").write_text("Deploy.", encoding="utf-8")
    (workspace / ".claude/skills/away").symlink_to("../../../outdir")
    (workspace.parent / "outdir/SKILL.md").write_text("Away.", encoding="utf-8")
    for skill in ("demo", "deploy"):
        allow_call(workspace, "Skill", skill=skill)
    for skill in ("update-config", "init", "compact", "away", "skills"):
        assert find_rule(workspace, "Skill", skill=skill) == "unknown_skill"
    assert find_rule(workspace, "Skill", skill="plugin:demo") == "tool_input"


def test_a_file_with_further_names_is_neither_written_to_nor_moved(workspace: Path) -> None:
    """They may lie outside, and what is written shows there; moved, it could come under another call's pen."""
    shared = workspace / "shared.ipynb"
    shared.hardlink_to(workspace.parent / "outside.txt")
    (workspace / "docs/shared.ipynb").hardlink_to(shared)
    (workspace / "src/docs").mkdir()
    (workspace / "src/docs/shared.ipynb").write_text("new", encoding="utf-8")
    writes: list[tuple[str, dict[str, Any]]] = [
        ("Write", {"file_path": "shared.ipynb", "content": "x"}),
        ("Edit", {"file_path": "shared.ipynb", "old_string": "a", "new_string": "b"}),
        ("NotebookEdit", {"notebook_path": "shared.ipynb", "new_source": "x"}),
        ("Bash", {"command": "cp a.txt shared.ipynb"}),
        ("Bash", {"command": "cp shared.ipynb docs"}),
        ("Bash", {"command": "cp -r src/docs ."}),
        ("Bash", {"command": "cp -r src/docs/ docs"}),
        ("Bash", {"command": "mv shared.ipynb other.ipynb"}),
        ("Bash", {"command": "mv docs other"}),
    ]
    for tool, given_input in writes:
        assert find_rule(workspace, tool, **given_input) == "hard_link", given_input
    allow_call(workspace, "Read", file_path="shared.ipynb")
    for command in ("cp shared.ipynb own.ipynb", "cp -r docs other", "rm shared.ipynb"):
        allow_call(workspace, "Bash", command=command)


def test_a_question_needs_somebody_to_answer(shared_workspace: Path) -> None:
    call = ToolCall(name="AskUserQuestion", input=QUESTION, cwd="/")
    assert isinstance(ToolGate(shared_workspace).judge(call), Deny)
    assert isinstance(ToolGate(shared_workspace, can_ask_user=True).judge(call), Allow)


PLANS_AND_CHANGES = [
    (".plans/calm-fox.md", False),
    (".plans/deeper/calm-fox.md", True),
    (".plans/run.sh", True),
    ("plans/calm-fox.md", True),
    ("linked/calm-fox.md", True),
]


@pytest.mark.parametrize(("path", "changes"), PLANS_AND_CHANGES)
def test_writing_a_plan_is_no_change_where_a_person_reads_it(
    tmp_path: Path, path: str, *, changes: bool
) -> None:
    (tmp_path / ".plans").mkdir()
    (tmp_path / "linked").symlink_to(".plans")
    call = ToolCall(name="Write", input={"file_path": path, "content": "# Plan"}, cwd=str(tmp_path))
    for can_ask_user in (True, False):
        verdict = ToolGate(tmp_path, can_ask_user=can_ask_user).judge(call)
        assert isinstance(verdict, Allow)
        assert verdict.changes == (changes or not can_ask_user)


def test_a_plan_is_shown_to_somebody_and_not_without_words(tmp_path: Path) -> None:
    for plan, asks, expected in (
        ({"plan": "# Plan"}, True, Allow),
        ({"plan": "# Plan"}, False, Deny),
        ({}, True, Deny),
    ):
        call = ToolCall(name="ExitPlanMode", input=plan, cwd=str(tmp_path))
        assert isinstance(ToolGate(tmp_path, can_ask_user=asks).judge(call), expected)


def test_the_platform_decides_how_paths_and_commands_are_read(shared_workspace: Path) -> None:
    def verdict(platform: Platform, tool: str, **given_input: Any) -> Verdict:
        gate = ToolGate(shared_workspace, platform=platform)
        return gate.judge(ToolCall(name=tool, input=given_input, cwd=str(shared_workspace)))

    commands = {
        "rm a.txt": "posix",
        "del a.txt": "windows",
        "Remove-Item a.txt": "windows",
        "copy a.txt c.txt": "windows",
    }
    for command, on in commands.items():
        for platform in get_args(Platform):
            expected = Allow if platform == on else Deny
            assert isinstance(verdict(platform, "Bash", command=command), expected)
            is_shell = platform == on == "windows"
            shell = verdict(platform, "PowerShell", command=command)
            assert isinstance(shell, Allow if is_shell else Deny)
    for name, wanted in {"posix": Deny, "windows": Allow}.items():
        assert isinstance(
            verdict(cast("Platform", name), "PowerShell", command="Get-ChildItem src"), wanted
        )
        assert isinstance(verdict(cast("Platform", name), "Read", file_path="src\\main.py"), wanted)


def test_subagents_are_judged_like_the_main_agent(shared_workspace: Path) -> None:
    gate = ToolGate(shared_workspace)
    for command in ("ls", "rm -rf ."):
        main = ToolCall(name="Bash", input={"command": command}, cwd=str(shared_workspace))
        sub = replace(main, tool_use_id="t", agent_id="a")
        assert gate.judge(main) == gate.judge(sub)


def test_whatever_goes_wrong_inside_is_a_denial(
    shared_workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("policies.tools.find_input_fault", fail)
    assert find_rule(shared_workspace, "Read", file_path="a.txt") == "policy_error"


def test_a_file_system_that_gives_no_answer_is_told_as_such(
    shared_workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.is_dir", refuse)
    assert find_rule(shared_workspace, "Bash", command="cp a.txt docs") == "path_unreadable"
    verdict = validate_bash_command(
        "cp a.txt docs", root=shared_workspace, cwd=str(shared_workspace)
    )
    assert verdict.rule == "path_unreadable"


_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=40), st.lists(st.text(max_size=5))
)


@settings(
    max_examples=75, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.sampled_from([*HONEST, "WebFetch", "AskUserQuestion", "Other"]),
    st.dictionaries(
        st.sampled_from(
            ["command", "file_path", "path", "pattern", "glob", "content", "skill", "url", "prompt"]
        ),
        _VALUES,
    ),
    st.text(max_size=10),
)
def test_any_call_gets_a_verdict(
    shared_workspace: Path, name: str, given_input: dict[str, Any], cwd: str
) -> None:
    verdict = ToolGate(shared_workspace).judge(ToolCall(name=name, input=given_input, cwd=cwd))
    assert isinstance(verdict, Allow | Ask | Deny)
    assert verdict.rule != "policy_error"


def test_the_policies_need_little_more_than_the_standard_library() -> None:
    script = "import sys, policies; print(*{m.partition('.')[0] for m in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        check=True,
        text=True,
    )
    loaded = set(done.stdout.split())
    assert {"policies", "tree_sitter"} <= loaded
    assert not {"pydantic", "structlog", "gateway", "memory", "anyio"} & loaded


def test_an_input_nested_deeper_than_any_tool_needs_is_denied(shared_workspace: Path) -> None:
    """An engine may have cut what lies far below, so what was judged would not be what runs."""
    own = "mcp__notes__add"
    gate = ToolGate(
        shared_workspace, rules=replace(shipped_rules(), own_reading_tools=frozenset({own}))
    )

    def judge(name: str, depth: int) -> Verdict:
        nested: Any = "x"
        for _ in range(depth - 1):
            nested = [nested] if depth % 2 else {"a": nested}
        return gate.judge(ToolCall(name=name, input={"todos": nested}, cwd=str(shared_workspace)))

    for name in (own, "TodoWrite"):
        assert isinstance(judge(name, 32), Allow)
        for depth in (33, 34, 90):
            assert judge(name, depth).rule == "tool_input"


def test_a_switched_tool_is_offered_only_where_it_is_on_and_no_file_forbids_it(
    shared_workspace: Path, tmp_path: Path
) -> None:
    file = tmp_path / "rules.toml"
    file.write_text('[tools]\nforbid = ["Agent"]\n', encoding="utf-8")
    both = {"Agent": True, "TaskList": True}
    shipped, own = shipped_rules(), load_rules(file)
    for rules, may in (
        (shipped, set()),
        (shipped.with_optional(both), {"Agent", "TaskList"}),
        (shipped.with_optional({**both, "Agent": False}), {"TaskList"}),
        (own.with_optional(both), {"TaskList"}),
        (
            replace(shipped, offered_tools=frozenset({"Agent"})).with_optional({"Agent": False}),
            set(),
        ),
    ):
        gate = ToolGate(shared_workspace, rules=rules)
        given = {"Agent": {"description": "d", "prompt": "p"}, "TaskList": {}}
        allowed = {
            name
            for name, one in given.items()
            if isinstance(gate.judge(ToolCall(name=name, input=one, cwd="/")), Allow)
        }
        assert allowed == may


def test_a_sub_agent_is_the_gateways_own_and_works_with_the_conversations_model(
    shared_workspace: Path,
) -> None:
    gate = ToolGate(shared_workspace, rules=shipped_rules().with_optional({"Agent": True}))

    def judge(**more: Any) -> Verdict:
        given = {"description": "Look", "prompt": "Look around.", **more}
        return gate.judge(ToolCall(name="Agent", input=given, cwd="/"))

    verdict = judge(model="opus", effort="max")
    assert isinstance(verdict, Allow)
    assert verdict.updated_input == {
        "description": "Look",
        "prompt": "Look around.",
        "subagent_type": "general-purpose",
    }
    for more, rule in (
        ({"subagent_type": "fork"}, "unknown_subagent"),
        ({"isolation": "worktree"}, "tool_input"),
        ({"run_in_background": True}, "tool_input"),
    ):
        assert judge(**more).rule == rule


def test_what_a_person_did_not_approve_is_not_launched(tmp_path: Path) -> None:
    for name in ("good", "bad"):
        (tmp_path / f".claude/skills/{name}").mkdir(parents=True)
        (tmp_path / f".claude/skills/{name}/SKILL.md").write_text("x", encoding="utf-8")
    gate = ToolGate(tmp_path, instructions={"Skill": ["good"], "Agent": ["helper"]}.__getitem__)

    def rule(tool: str, **given: str) -> str:
        return gate.judge(ToolCall(name=tool, input=given, cwd=str(tmp_path))).rule

    assert rule("Skill", skill="good") == "skill_allowed"
    assert rule("Skill", skill="bad") == "skill_not_approved"
    assert rule("Skill", skill="gone") == "unknown_skill"
    work = {"description": "d", "prompt": "p"}
    tools = shipped_rules().with_optional({"Agent": True})
    gate = ToolGate(tmp_path, rules=tools, instructions=gate.instructions)
    call = ToolCall(name="Agent", input={**work, "subagent_type": "helper"}, cwd=str(tmp_path))
    verdict = gate.judge(call)
    assert isinstance(verdict, Allow)
    assert verdict.updated_input == {**work, "subagent_type": "helper"}
    assert rule("Agent", **work, subagent_type="other") == "unknown_subagent"
