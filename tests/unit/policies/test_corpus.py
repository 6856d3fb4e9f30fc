"""Every case of the corpus through the gate: no deny case allowed, the honest ones let through."""

from collections import Counter
from pathlib import Path

import pytest

from policies.tools import ToolCall, ToolGate
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
    assert len({denial.rule for denial in denials}) > 100


def test_the_honest_calls_are_allowed(shared_workspace: Path, tmp_path: Path) -> None:
    verdicts = _judge_all("policy-allow.jsonl", shared_workspace, tmp_path)
    assert len(verdicts) >= 190
    assert {name: v.rule for name, v in verdicts.items() if not isinstance(v, Allow)} == {}


@pytest.mark.parametrize("name", ["policy-allow.jsonl", "policy-deny.jsonl"])
def test_no_two_cases_share_a_name(name: str) -> None:
    assert [k for k, n in Counter(case.id for case in read_cases(name)).items() if n > 1] == []
