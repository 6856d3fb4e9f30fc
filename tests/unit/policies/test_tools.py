"""The gate: one call in, one verdict out."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.bash import validate_bash_command
from policies.protected import SECRET_PATTERNS, secret_exclusions
from policies.rules import shipped_rules
from policies.tools import OFFERED_TOOLS, Platform, ToolCall, ToolGate
from policies.verdict import Allow, Ask, Deny, Verdict

TODOS = [{"content": "a", "status": "pending", "activeForm": "a"}]
QUESTION = {"questions": [{"question": "Which?", "header": "Pick", "options": []}]}


def _judge(root: Path, name: str, **given_input: Any) -> Verdict:
    return ToolGate(root).judge(ToolCall(name=name, input=given_input, cwd=str(root)))


def _rule(root: Path, name: str, **given_input: Any) -> str:
    verdict = _judge(root, name, **given_input)
    assert isinstance(verdict, Deny), verdict
    return verdict.rule


def _allowed(root: Path, name: str, **given_input: Any) -> Allow:
    verdict = _judge(root, name, **given_input)
    assert isinstance(verdict, Allow), verdict
    return verdict


HONEST: dict[str, dict[str, Any]] = {
    "Read": {"file_path": "a.txt"},
    "Write": {"file_path": "new.txt", "content": "x"},
    "Edit": {"file_path": "a.txt", "old_string": "a", "new_string": "b", "replace_all": True},
    "NotebookEdit": {"notebook_path": "n.ipynb", "new_source": "x", "edit_mode": "insert"},
    "Glob": {"pattern": "**/*.py"},
    "Grep": {"pattern": "TODO", "output_mode": "content", "-n": True, "head_limit": 5},
    "Bash": {"command": "ls"},
    "Skill": {"skill": "memory-capture"},
    "TodoWrite": {"todos": TODOS},
}


def test_an_honest_call_of_every_offered_tool_is_allowed(shared_workspace: Path) -> None:
    assert set(HONEST) == set(OFFERED_TOOLS)
    for name, given_input in HONEST.items():
        _allowed(shared_workspace, name, **given_input)


def test_only_writing_tools_change_something(shared_workspace: Path) -> None:
    changing = {n for n, i in HONEST.items() if _allowed(shared_workspace, n, **i).changes}
    assert changing == {"Write", "Edit", "NotebookEdit"}
    assert _allowed(shared_workspace, "Bash", command="rm a.txt").changes


@pytest.mark.parametrize(
    "name", ["", "bash", "Bash ", "Task", "Agent", "Monitor", "MultiEdit", "mcp__x__y", "KillShell"]
)
def test_an_unknown_tool_is_denied(shared_workspace: Path, name: str) -> None:
    assert _rule(shared_workspace, name, command="ls") == "unknown_tool"


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


@pytest.mark.parametrize("name", list(HONEST))
def test_an_input_that_nobody_judged_is_refused(shared_workspace: Path, name: str) -> None:
    assert _rule(shared_workspace, name, **HONEST[name], surprise=1) == "tool_input"


@pytest.mark.parametrize("name", list(HONEST))
def test_a_missing_input_is_refused(shared_workspace: Path, name: str) -> None:
    for key in HONEST[name]:
        if key in {"replace_all", "edit_mode", "output_mode", "-n", "head_limit"}:
            continue
        rest = {k: v for k, v in HONEST[name].items() if k != key}
        assert _rule(shared_workspace, name, **rest) == "tool_input"


def test_inputs_of_the_wrong_sort_are_refused(shared_workspace: Path) -> None:
    assert _rule(shared_workspace, "Read", file_path=["/etc/passwd"]) == "tool_input"
    assert _rule(shared_workspace, "Read", file_path="a.txt", limit="1;2") == "tool_input"
    assert _rule(shared_workspace, "Grep", pattern="x", **{"-A": "--pre=sh"}) == "tool_input"
    assert _rule(shared_workspace, "Grep", pattern="x", type="--pre=sh") == "tool_input"
    assert _rule(shared_workspace, "Bash", command="ls", timeout=True) == "tool_input"
    assert _rule(shared_workspace, "Bash", command="ls", timeout=10**9) == "tool_input"
    assert (
        _rule(shared_workspace, "NotebookEdit", notebook_path="a.txt", new_source="")
        == "tool_input"
    )
    call = ToolCall(name="Read", input=["a.txt"], cwd="/")  # type: ignore[arg-type]
    assert isinstance(ToolGate(shared_workspace).judge(call), Deny)


def test_a_relative_path_is_made_absolute_and_a_full_one_left_alone(shared_workspace: Path) -> None:
    full = f"{shared_workspace}/a.txt"
    assert _allowed(shared_workspace, "Read", file_path="src/../a.txt", limit=5).updated_input == {
        "file_path": full,
        "limit": 5,
    }
    assert _allowed(shared_workspace, "Read", file_path=full).updated_input is None


def test_files_outside_secrets_and_folders_are_not_read(shared_workspace: Path) -> None:
    assert _rule(shared_workspace, "Read", file_path="/etc/passwd") == "outside_workspace"
    assert _rule(shared_workspace, "Read", file_path=".env") == "secret_file"
    assert _rule(shared_workspace, "Read", file_path="src") == "not_a_file"
    assert _rule(shared_workspace, "Read", file_path="nosuch/") == "not_a_file"
    _allowed(shared_workspace, "Read", file_path="CLAUDE.md")
    _allowed(shared_workspace, "Read", file_path="nosuch.txt")


@pytest.mark.parametrize(
    "path", [".claude/skills/x/SKILL.md", "CLAUDE.md", ".git/config", ".vscode/x"]
)
def test_protected_files_are_not_written(shared_workspace: Path, path: str) -> None:
    assert _rule(shared_workspace, "Write", file_path=path, content="x") == "protected_path"
    assert _rule(shared_workspace, "Edit", file_path=path, old_string="a", new_string="") == (
        "protected_path"
    )


@pytest.mark.parametrize(
    ("pattern", "rule"),
    [
        ("../*", "pattern_parent"),
        ("src/../../*", "pattern_parent"),
        ("/etc/*", "outside_workspace"),
        ("{/etc/*,*.py}", "outside_workspace"),
        ("{a,{b,/etc}}/*", "outside_workspace"),
        ("~/**", "path_tilde"),
        ("{~,a}/*", "path_tilde"),
        (".env", "pattern_secret"),
        ("**/.env*", "pattern_secret"),
        (".e*", "pattern_secret"),
        ("**/*.pem", "pattern_secret"),
        ("id_*", "pattern_secret"),
        ("{a,.env}", "pattern_secret"),
        (".ssh/**", "pattern_secret"),
        ("{a", "pattern_braces"),
        ("a}", "pattern_braces"),
        ("{a,b}" * 7, "pattern_braces"),
        ("a\\*", "path_backslash"),
        ("", "path_empty"),
        ("a" * 1025, "pattern_too_long"),
    ],
)
def test_a_pattern_stays_inside_and_does_not_aim_at_secrets(
    shared_workspace: Path, pattern: str, rule: str
) -> None:
    assert _rule(shared_workspace, "Glob", pattern=pattern) == rule
    if pattern:
        assert _rule(shared_workspace, "Grep", pattern="x", glob=pattern) == rule


@pytest.mark.parametrize(
    "pattern",
    ["*", ".*", "**/*", "*.json", "*..md", "src/**", "*.{py,js}", ".github/**", "[a-z]*.py"],
)
def test_a_broad_or_ordinary_pattern_is_allowed(shared_workspace: Path, pattern: str) -> None:
    _allowed(shared_workspace, "Glob", pattern=pattern)
    _allowed(shared_workspace, "Glob", pattern=f"{shared_workspace}/{pattern}")


def test_a_search_starts_inside(workspace: Path) -> None:
    (workspace / "out").symlink_to("/etc")
    for name in ("Glob", "Grep"):
        assert _rule(workspace, name, pattern="x", path="..") == "outside_workspace"
        assert _rule(workspace, name, pattern="x", path="out") == "link_outside"
        assert _rule(workspace, name, pattern="x", path=".env") == "secret_file"
        call = ToolCall(name=name, input={"pattern": "x"}, cwd="/etc")
        assert isinstance(ToolGate(workspace).judge(call), Deny)
    assert _rule(workspace, "Glob", pattern="out/*") == "link_outside"


def test_grep_is_told_last_of_all_to_leave_out_secrets(shared_workspace: Path) -> None:
    plain = _allowed(shared_workspace, "Grep", pattern="x").updated_input
    assert plain == {"pattern": "x", "glob": secret_exclusions()}
    narrowed = _allowed(shared_workspace, "Grep", pattern="x", glob="*.py, *.js !a*").updated_input
    assert narrowed is not None
    assert narrowed["glob"] == f"*.py, *.js !a* {secret_exclusions()}"


def test_the_exclusions_survive_the_tools_own_splitting() -> None:
    pieces = secret_exclusions().split()
    assert len(pieces) == len(SECRET_PATTERNS)
    assert {"!.[eE][nN][vV]*", "!*.[pP]12", "![iI][dD]_[rR][sS][aA]"} <= set(pieces)
    assert (
        "![sS][eE][rR][vV][iI][cC][eE][-_][aA][cC][cC][oO][uU][nN][tT]*.[jJ][sS][oO][nN]" in pieces
    )
    assert all(piece.startswith("!") and not set(piece) & set("{},\\") for piece in pieces)


def test_a_command_keeps_only_what_was_judged(shared_workspace: Path) -> None:
    allowed = _allowed(
        shared_workspace,
        "Bash",
        command="ls  src",
        description="List",
        timeout=1000,
        run_in_background=False,
    )
    assert allowed.updated_input == {"command": "ls -- src", "description": "List", "timeout": 1000}


def test_a_command_in_the_background_or_without_the_sandbox_is_refused(
    shared_workspace: Path,
) -> None:
    for key in ("run_in_background", "dangerouslyDisableSandbox"):
        for value in (True, "false", 0, None):
            assert _rule(shared_workspace, "Bash", command="ls", **{key: value}) == "bash_mode"


@pytest.mark.parametrize("skill", ["../x", "a/b", "a b", "", "x" * 65, "a;b", "报告"])
def test_a_skill_is_called_by_a_plain_name(shared_workspace: Path, skill: str) -> None:
    assert _rule(shared_workspace, "Skill", skill=skill) == "tool_input"


def test_a_skills_arguments_are_plain_text(shared_workspace: Path) -> None:
    _allowed(shared_workspace, "Skill", skill="plugin:memory-capture", args="the notes of today")
    for args in ("!`id`", "$HOME", "@/etc/passwd", "a\nb", "x" * 2001):
        assert _rule(shared_workspace, "Skill", skill="a", args=args) == "tool_input"


def test_a_question_needs_somebody_to_answer(shared_workspace: Path) -> None:
    call = ToolCall(name="AskUserQuestion", input=QUESTION, cwd="/")
    assert isinstance(ToolGate(shared_workspace).judge(call), Deny)
    assert isinstance(ToolGate(shared_workspace, can_ask_user=True).judge(call), Allow)


def _fetch(root: Path, url: str, *hosts: str) -> Verdict:
    call = ToolCall(name="WebFetch", input={"url": url, "prompt": "x"}, cwd="/")
    rules = replace(shipped_rules(), web_hosts=frozenset(hosts))
    return ToolGate(root, rules=rules).judge(call)


def test_no_host_is_fetched_from_unless_it_is_listed(shared_workspace: Path) -> None:
    url = "https://docs.python.org/3/?a=b#c"
    assert isinstance(_fetch(shared_workspace, url), Deny)
    assert isinstance(_fetch(shared_workspace, url, "docs.python.org"), Allow)
    assert isinstance(_fetch(shared_workspace, url, "*"), Allow)
    assert isinstance(_fetch(shared_workspace, url, "python.org"), Deny)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "//example.com/x",
        "https://user@example.com/",
        "https://example.com\\@127.0.0.1/",
        "https://exa mple.com/",
        "https://example.com:8443/",
        "https://example.com:x/",
        "https://localhost/",
        "https://127.0.0.1/",
        "https://127.1/",
        "https://0x7f000001/",
        "https://[::1]/",
        "https://①②⑦.0.0.1/",
        "https://10.0.0.1/",
        "https://intranet/",
        "https://printer.local/",
        "https://metadata.google.internal/",
        "https://example.com./",
        "https://127.0.0.1.nip.io/",
        "https://10-0-0-1.sslip.io/",
        "https://localtest.me/",
        "https://a.b.LVH.me/",
        "https://db.home.arpa/",
        "https://router.lan/",
        "https://x.onion/",
        "https://1.0.0.127.in-addr.arpa/",
        "https://127.0.0.1:443/",
        "https://example.com:443@127.0.0.1/",
        "https://example.com#@127.0.0.1:8000\\",
        "https:example.com",
        "https:/example.com/",
        "https:///example.com/",
        "https://[::ffff:127.0.0.1]/",
        "https://[fe80::1%25eth0]/",
        "https://017700000001/",
        "https://2130706433/",
        "https://127.0.0.1%2f.example.com/",
        "https://%6c%6f%63%61%6c%68%6f%73%74/",
        "https://ⓛocalhost/",
        "https://example。local/",
        "https://exam\tple.com/",
        "https://example.com/\u202e",
        "ftp://example.com/",
        "file:///etc/passwd",
        "data:text/html,x",
        "javascript:alert(1)",
        "view-source:https://example.com/",
        "https://-a.example.com/",
        "https://a..example.com/",
        "https://",
        f"https://example.com/{'a' * 2100}",
    ],
)
def test_only_plain_https_addresses_of_public_names_are_fetched(
    shared_workspace: Path, url: str
) -> None:
    assert isinstance(_fetch(shared_workspace, url, "*"), Deny)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/a?b=c#d",
        "HTTPS://Example.COM/",
        "https://example.com:443/",
        "https://中文.example/路径",
        "https://xn--fiq228c.example/",
        "https://localhost.example.com/",
        "https://lan.example/x?to=http://127.0.0.1/",
    ],
)
def test_a_public_name_is_fetched_by_the_shipped_rules(shared_workspace: Path, url: str) -> None:
    _allowed(shared_workspace, "WebFetch", url=url, prompt="x")


def test_a_list_of_hosts_holds_for_exactly_those(shared_workspace: Path) -> None:
    for url in (
        "https://docs.python.org.evil.example/",
        "https://evil-docs.python.org/",
        "https://docs.python.org@evil.example/",
        "https://evil.example/docs.python.org",
        "https://evil.example/?docs.python.org",
        "https://a.docs.python.org/",
    ):
        assert isinstance(_fetch(shared_workspace, url, "docs.python.org"), Deny)
    assert isinstance(
        _fetch(shared_workspace, "https://DOCS.python.org/x", "docs.python.org"), Allow
    )


def test_the_platform_decides_how_paths_and_commands_are_read(shared_workspace: Path) -> None:
    def verdict(platform: Platform, tool: str, **given_input: Any) -> Verdict:
        gate = ToolGate(shared_workspace, platform=platform)
        return gate.judge(ToolCall(name=tool, input=given_input, cwd=str(shared_workspace)))

    for command, on in {"rm a.txt": "posix", "del a.txt": "windows"}.items():
        for platform in get_args(Platform):
            expected = Allow if platform == on else Deny
            assert isinstance(verdict(platform, "Bash", command=command), expected)
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
    assert _rule(shared_workspace, "Read", file_path="a.txt") == "policy_error"


def test_a_file_system_that_gives_no_answer_is_told_as_such(
    shared_workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.is_dir", refuse)
    assert _rule(shared_workspace, "Bash", command="cp a.txt docs") == "path_unreadable"
    verdict = validate_bash_command(
        "cp a.txt docs", root=shared_workspace, cwd=str(shared_workspace)
    )
    assert verdict.rule == "path_unreadable"


_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=40), st.lists(st.text(max_size=5))
)


@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
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
