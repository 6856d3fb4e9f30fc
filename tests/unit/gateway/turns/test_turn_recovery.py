import json
from typing import Any

import pytest

from gateway.turns.evidence import Evidence
from gateway.turns.turn_recovery import evidence_of
from tests.conformance.suites.conversation_values import event, turn


def proven(*told: tuple[str, dict[str, Any]]) -> Evidence:
    numbered = enumerate(told, start=1)
    return evidence_of(
        [event(n, turn(), n, type=kind, data=json.dumps(data)) for n, (kind, data) in numbered]
    )


def started(tool_use_id: str, **more: Any) -> tuple[str, dict[str, Any]]:
    call = {"name": "Bash", "summary": "ls", "input": {"command": "ls"}}
    return "tool.started", {"tool_use_id": tool_use_id, **call, **more}


def ended(tool_use_id: str, status: str, **more: Any) -> tuple[str, dict[str, Any]]:
    told = {"tool_use_id": tool_use_id, "status": status, "error": None, "duration_ms": 7, **more}
    return "tool.finished", told


def test_evidence_is_what_the_stored_events_prove() -> None:
    evidence = proven(
        ("turn.queued", {"position": 1}),
        ("turn.started", {"model": "m", "log_file": "x"}),
        ("text.delta", {"text": "I lo"}),
        ("text.delta", {"text": "ok."}),
        started("t1"),
        ended("t1", "failed", error="no"),
        started("t2"),
        ("notice", {"code": "model_retrying", "message": "again"}),
        ("thinking.delta", {"text": "hm"}),
    )
    assert (evidence.model, evidence.text) == ("m", "I look.")
    assert [(notice.code, notice.message) for notice in evidence.notices] == [
        ("model_retrying", "again")
    ]
    first, second = evidence.tools.values()
    assert (first.status, first.error, first.duration_ms) == ("failed", "no", 7)
    assert second.status is None
    evidence.settle(0)
    assert second.status == "unknown"


@pytest.mark.parametrize(
    ("before", "partial", "whole"),
    [("It is done.", "Par", "All of it."), ("做完了。", "一部分", "全部在这里。")],
)
def test_text_that_is_void_takes_nothing_of_the_text_before_it(
    before: str, partial: str, whole: str
) -> None:
    void = {"code": "model_retrying", "message": "again", "void_text_chars": len(partial) + 2}
    told = [
        ("text.delta", {"text": before}),
        started("t1"),
        ended("t1", "ok"),
        ("text.delta", {"text": f"\n\n{partial}"}),
        ("notice", void),
    ]
    assert proven(*told).text == before
    assert proven(*told, ("text.delta", {"text": f"\n\n{whole}"})).text == f"{before}\n\n{whole}"


def test_calls_of_one_id_are_told_apart_by_their_number() -> None:
    calls = started("t1", index=1), started("t1", index=2)
    told = proven(*calls, ended("t1", "failed", index=2))
    assert [(use.index, use.status) for use in told.tools.values()] == [(1, None), (2, "failed")]


def test_events_of_version_1_0_have_no_number_and_are_paired_in_order() -> None:
    calls = started("t1"), started("t2"), started("t1")
    told = proven(*calls, ended("t2", "ok"), ended("t1", "failed"), ended("t1", "ok"))
    found = [(use.index, use.tool_use_id, use.status) for use in told.tools.values()]
    assert found == [(1, "t1", "failed"), (2, "t2", "ok"), (3, "t1", "ok")]


ASKED = {"approval_id": "apr_1", "tool_use_id": "t1", "index": 1, "summary": "ls"}
TOLD = [
    ("turn.started", {"model": "m", "log_file": "x"}),
    ("text.delta", {"text": "Look:"}),
    started("t1", index=1),
    ("approval.requested", ASKED),
    (
        "approval.resolved",
        {**ASKED, "decision": "allow", "by": "ann", "allowed_by": {"by": "ann"}},
    ),
    ended("t1", "ok", index=1, output="a", output_chars=1),
    ("notice", {"code": "model_retrying", "message": "again"}),
]


@pytest.mark.parametrize(
    ("kind", "field"), [(kind, field) for kind, data in TOLD for field in data]
)
def test_an_event_that_lost_a_field_keeps_no_turn_from_being_recovered(
    kind: str, field: str
) -> None:
    left = [
        (told, {key: value for key, value in data.items() if (told, key) != (kind, field)})
        for told, data in TOLD
    ]
    evidence = proven(*left)
    evidence.settle(0)
    assert [use.name for use in evidence.tools.values()]
