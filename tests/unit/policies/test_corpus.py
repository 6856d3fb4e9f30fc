"""Every case of the corpus through the gate: no deny case allowed, the honest ones let through."""

from collections import Counter
from pathlib import Path

import pytest

from policies.tools import ToolCall, ToolGate
from policies.verdict import Allow, Deny, Verdict
from tests.unit.policies.corpus import Case, build_workspace, fill, read_cases

REFUSED_HONEST: dict[str, str] = {}
"""Honest calls that the shipped rules refuse, and why."""


def _judge(case: Case, shared: Path, fresh: Path) -> Verdict:
    root = build_workspace(fresh / case.id, case.setup) if case.setup else shared
    call = ToolCall(name=case.tool, input=fill(case.input, root), cwd=fill(case.hook_cwd, root))
    return ToolGate(root, rules=case.rules, platform=case.platform).judge(call)


def test_no_case_of_the_deny_file_is_allowed(shared_workspace: Path, tmp_path: Path) -> None:
    cases = read_cases("policy-deny.jsonl")
    verdicts = {case.id: _judge(case, shared_workspace, tmp_path) for case in cases}
    assert len(verdicts) >= 540
    assert [name for name, verdict in verdicts.items() if not isinstance(verdict, Deny)] == []
    assert [name for name, verdict in verdicts.items() if verdict.rule == "policy_error"] == []


def test_the_honest_calls_are_allowed(shared_workspace: Path, tmp_path: Path) -> None:
    cases = read_cases("policy-allow.jsonl")
    verdicts = {case.id: _judge(case, shared_workspace, tmp_path) for case in cases}
    refused = {name for name, verdict in verdicts.items() if not isinstance(verdict, Allow)}
    assert refused == set(REFUSED_HONEST)
    assert len(refused) / len(cases) <= 0.01


def test_every_denial_says_why_and_what_would_work(shared_workspace: Path, tmp_path: Path) -> None:
    verdicts = [_judge(c, shared_workspace, tmp_path) for c in read_cases("policy-deny.jsonl")]
    denials = [verdict for verdict in verdicts if isinstance(verdict, Deny)]
    assert all(denial.reason.endswith(".") for denial in denials)
    assert [denial for denial in denials if not (denial.hint or "").endswith((".", "…"))] == []
    assert max(len(denial.message) for denial in denials) < 400


@pytest.mark.parametrize("name", ["policy-allow.jsonl", "policy-deny.jsonl"])
def test_no_two_cases_share_a_name(name: str) -> None:
    assert [k for k, n in Counter(case.id for case in read_cases(name)).items() if n > 1] == []
