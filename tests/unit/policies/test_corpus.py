"""The corpora, and the table of denials."""

import ast
import string
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import policies
from policies.calls import ToolCall
from policies.tools import ToolGate
from policies.verdict import Allow, Deny, Verdict
from tests.unit.policies.corpus import build_workspace, fill, read_cases

FILE_TOOLS = {"Read", "Write", "Edit", "NotebookEdit", "Glob", "Grep"}


def _judge_all(name: str, shared: Path, fresh: Path) -> dict[str, Verdict]:
    """Judge each case on its platform, and cases of the file tools for any platform also on Windows."""
    verdicts: dict[str, Verdict] = {}
    for case in read_cases(name):
        root = build_workspace(fresh / case.id, case.setup) if case.setup else shared
        call = ToolCall(name=case.tool, input=fill(case.input, root), cwd=fill(case.hook_cwd, root))
        gate = ToolGate(root, rules=case.rules, platform=case.platform)
        verdicts[case.id] = gate.judge(call)
        if case.any_platform and case.tool in FILE_TOOLS:
            windows = ToolGate(root, rules=case.rules, platform="windows")
            verdicts[f"{case.id} on Windows"] = windows.judge(call)
    return verdicts


def test_no_case_of_the_deny_file_is_allowed(shared_workspace: Path, tmp_path: Path) -> None:
    verdicts = _judge_all("policy-deny.jsonl", shared_workspace, tmp_path)
    assert len(verdicts) >= 590
    assert [name for name, verdict in verdicts.items() if not isinstance(verdict, Deny)] == []
    assert [name for name, verdict in verdicts.items() if verdict.rule == "policy_error"] == []
    denials = [verdict for verdict in verdicts.values() if isinstance(verdict, Deny)]
    assert [denial for denial in denials if not denial.reason.endswith(".")] == []
    assert max(len(denial.message) for denial in denials) < 400
    hinted = [denial for denial in denials if (denial.hint or "").endswith((".", "…"))]
    assert len(hinted) / len(denials) > 0.98
    assert len({denial.rule for denial in denials}) > 75


def test_the_honest_calls_are_allowed(shared_workspace: Path, tmp_path: Path) -> None:
    verdicts = _judge_all("policy-allow.jsonl", shared_workspace, tmp_path)
    assert len(verdicts) >= 190
    assert {name: v.rule for name, v in verdicts.items() if not isinstance(v, Allow)} == {}


@pytest.mark.parametrize("name", ["policy-allow.jsonl", "policy-deny.jsonl"])
def test_no_two_cases_share_a_name(name: str) -> None:
    assert [k for k, n in Counter(case.id for case in read_cases(name)).items() if n > 1] == []


_FOLDER = Path(policies.__file__).parent
_TABLES = {"signs", "commands", "instead"}


def _table() -> dict[str, list[str]]:
    told = tomllib.loads((_FOLDER / "denials.toml").read_text(encoding="utf-8"))
    keys = {key for key in told["commands"].values() for key in key}
    assert keys <= told.keys()
    return {key: texts for key, texts in told.items() if key not in _TABLES}


def _calls() -> Iterator[tuple[str, int]]:
    """Yield the key of each `denied(…)`, and how many values it shows."""
    for file in _FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name("denied"), args=[ast.Constant(str(key)), *shown]):
                    yield key, len(shown)
                case _:
                    pass


def _shown(texts: list[str]) -> int:
    fields = [field for text in texts for _, field, _, _ in string.Formatter().parse(text)]
    return max((int(field) + 1 for field in fields if field is not None), default=0)


def test_each_denial_that_the_code_names_is_in_the_table_and_gets_its_values() -> None:
    table = _table()
    wrong = [(key, n) for key, n in _calls() if key not in table or _shown(table[key]) != n]
    assert wrong == []


def test_each_denial_of_the_table_is_named_in_the_code() -> None:
    code = "".join(file.read_text(encoding="utf-8") for file in _FOLDER.rglob("*.py"))
    commands = tomllib.loads((_FOLDER / "denials.toml").read_text(encoding="utf-8"))["commands"]
    named = {key for shell in commands.values() for key in shell}
    assert [key for key in _table() if f'"{key}"' not in code and key not in named] == []
