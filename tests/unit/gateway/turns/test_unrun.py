import json
from typing import Any

from gateway.conversations.model import TurnEvent
from gateway.ids import ConversationId, TurnId
from gateway.turns.unrun import evidence_of
from tests.support.builders import NOON


def events(*told: tuple[str, dict[str, Any]]) -> list[TurnEvent]:
    return [
        TurnEvent(
            seq=n,
            conversation_id=ConversationId("cnv_1"),
            turn_id=TurnId("trn_1"),
            n=n,
            type=kind,
            data=json.dumps(data),
        )
        for n, (kind, data) in enumerate(told, start=1)
    ]


def started(tool_use_id: str) -> tuple[str, dict[str, Any]]:
    return "tool.started", {
        "tool_use_id": tool_use_id,
        "name": "Bash",
        "summary": "ls",
        "input": {"command": "ls"},
    }


def test_evidence_is_what_the_stored_events_prove() -> None:
    evidence = evidence_of(
        events(
            ("turn.queued", {"position": 1}),
            ("turn.started", {"model": "m", "log_file": "x"}),
            ("text.delta", {"text": "I lo"}),
            ("text.delta", {"text": "ok."}),
            started("t1"),
            (
                "tool.finished",
                {"tool_use_id": "t1", "status": "failed", "error": "no", "duration_ms": 7},
            ),
            started("t2"),
            ("notice", {"code": "model_retrying", "message": "again"}),
            ("thinking.delta", {"text": "hm"}),
        ),
        NOON,
    )
    assert (evidence.model, evidence.text) == ("m", "I look.")
    assert [(one.code, one.message) for one in evidence.notices] == [("model_retrying", "again")]
    first, second = evidence.tools.values()
    assert (first.status, first.error, first.duration_ms) == ("failed", "no", 7)
    assert second.status is None
    evidence.settle(NOON)
    assert second.status == "unknown"


def test_no_events_prove_nothing() -> None:
    evidence = evidence_of([], NOON)
    assert (evidence.text, evidence.tools, evidence.notices) == ("", {}, [])
