"""Every case of the corpus that holds on Windows: no deny case allowed, no honest one refused."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from policies.tools import ToolCall, ToolGate
from policies.verdict import Allow, Deny, Verdict
from tests.unit.policies.corpus import CORPUS, build_workspace, fill
from tests.unit.policies.judging import validate_windows_command

FILE_TOOLS = {"Read", "Write", "Edit", "NotebookEdit", "Glob", "Grep"}
COMMAND_TOOLS = {"Bash", "PowerShell"}


@dataclass(frozen=True, slots=True)
class _Case:
    id: str
    tool: str
    input: Any
    setup: tuple[str, ...]
    cwd: str


def _read(name: str, platforms: set[str], tools: set[str]) -> Iterator[_Case]:
    for line in (CORPUS / name).read_text(encoding="utf-8").split("\n"):
        told = json.loads(line) if line else {}
        if told.get("platform") in platforms and told["tool"] in tools:
            setup = tuple(told.get("setup", ()))
            cwd = told.get("hook_cwd", "{WS}")
            yield _Case(told["id"], told["tool"], told["input"], setup, cwd)


def _judge_command(case: _Case, root: Path) -> Verdict:
    return validate_windows_command(
        fill(case.input["command"], root),
        root=root,
        cwd=fill(case.cwd, root),
        shell="powershell" if case.tool == "PowerShell" else "any",
    )


def _judge_file(case: _Case, root: Path) -> Verdict:
    call = ToolCall(name=case.tool, input=fill(case.input, root), cwd=fill(case.cwd, root))
    return ToolGate(root, platform="windows").judge(call)


def _root_for(case: _Case, shared: Path, fresh: Path) -> Path:
    return build_workspace(fresh / case.id, case.setup) if case.setup else shared


def test_no_command_of_the_deny_file_is_allowed(shared_workspace: Path, tmp_path: Path) -> None:
    cases = list(_read("policy-deny.jsonl", {"windows"}, COMMAND_TOOLS))
    verdicts = {
        case.id: _judge_command(case, _root_for(case, shared_workspace, tmp_path)) for case in cases
    }
    assert len(verdicts) > 100
    assert [name for name, verdict in verdicts.items() if not isinstance(verdict, Deny)] == []
    assert [name for name, verdict in verdicts.items() if verdict.rule == "policy_error"] == []


def test_every_honest_command_is_allowed(shared_workspace: Path, tmp_path: Path) -> None:
    cases = list(_read("policy-allow.jsonl", {"windows"}, COMMAND_TOOLS))
    verdicts = {
        case.id: _judge_command(case, _root_for(case, shared_workspace, tmp_path)) for case in cases
    }
    assert len(verdicts) > 30
    assert {n: v.rule for n, v in verdicts.items() if not isinstance(v, Allow)} == {}


def test_denials_say_why_and_what_would_work(shared_workspace: Path) -> None:
    cases = list(_read("policy-deny.jsonl", {"windows"}, COMMAND_TOOLS))
    denials = [_judge_command(case, shared_workspace) for case in cases if not case.setup]
    assert all(isinstance(d, Deny) and d.reason.endswith(".") for d in denials)
    hinted = [d for d in denials if isinstance(d, Deny) and d.hint is not None]
    assert len(hinted) / len(denials) > 0.95
    assert len({d.rule for d in denials}) > 40


def test_no_file_call_of_the_deny_file_is_allowed(shared_workspace: Path, tmp_path: Path) -> None:
    cases = list(_read("policy-deny.jsonl", {"windows", "any"}, FILE_TOOLS))
    verdicts = {
        case.id: _judge_file(case, _root_for(case, shared_workspace, tmp_path)) for case in cases
    }
    assert len(verdicts) > 60
    assert [name for name, verdict in verdicts.items() if not isinstance(verdict, Deny)] == []
    assert [name for name, verdict in verdicts.items() if verdict.rule == "policy_error"] == []


def test_every_honest_file_call_is_allowed(shared_workspace: Path, tmp_path: Path) -> None:
    cases = list(_read("policy-allow.jsonl", {"windows", "any"}, FILE_TOOLS))
    verdicts = {
        case.id: _judge_file(case, _root_for(case, shared_workspace, tmp_path)) for case in cases
    }
    assert len(verdicts) > 25
    assert {n: v.rule for n, v in verdicts.items() if not isinstance(v, Allow)} == {}


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("\\\\?\\{WS}\\a.txt", "path_namespace"),
        ("\\\\.\\PhysicalDrive0", "path_namespace"),
        ("\\\\wsl$\\x\\etc\\passwd", "path_share"),
        ("//server/share/x", "path_share"),
        ("\\??\\UNC\\server\\x", "path_namespace"),
        ("C:\\Users\\x\\a.txt", "path_drive"),
        ("c:/Users/x/a.txt", "path_drive"),
        ("C:a.txt", "path_drive_relative"),
        ("{WS}\\a.txt::$DATA", "path_stream"),
        ("src\\..\\..\\outside.txt", "outside_workspace"),
        ("{WS}\\..\\outside.txt", "outside_workspace"),
        ("{WS}\\src\\NUL", "path_device"),
        ("LPT9.txt.bak", "path_device"),
        (".git.\\config", "path_trailing"),
        (".claude \\settings.json", "path_trailing"),
        ("ENV~1", "path_short_name"),
        (".ENV", "secret_file"),
        ("src\\.Env.local", "secret_file"),
        ("报告／..／x", "path_lookalike"),
        ("env:PATH", "path_provider"),
        ("~\\x", "path_tilde"),
        ("{WS}\\src\\", "not_a_file"),
    ],
)
def test_windows_spellings_are_refused_for_the_read_tool(
    shared_workspace: Path, path: str, rule: str
) -> None:
    case = _Case("x", "Read", {"file_path": path}, (), "{WS}")
    verdict = _judge_file(case, shared_workspace)
    assert isinstance(verdict, Deny)
    assert verdict.rule == rule


def test_backslashes_separate_folders_for_the_file_tools(shared_workspace: Path) -> None:
    for path in ("src\\main.py", "{WS}\\src\\main.py", ".\\src/main.py", "SRC\\MAIN.PY"):
        case = _Case("x", "Edit", {"file_path": path, "old_string": "a", "new_string": "b"}, (), "")
        call = ToolCall(
            name=case.tool, input=fill(case.input, shared_workspace), cwd=str(shared_workspace)
        )
        verdict = ToolGate(shared_workspace, platform="windows").judge(call)
        assert isinstance(verdict, Allow), verdict
        told = {**call.input, **(verdict.updated_input or {})}["file_path"].replace("\\", "/")
        assert told.casefold() == str(shared_workspace / "src" / "main.py").casefold()
