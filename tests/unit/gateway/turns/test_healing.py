"""When a turn may go on in a new session, and what that session is shown."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from gateway.conversations.model import Turn, fresh_conversation
from gateway.engine.events import EngineEvent, ModelFailed, TextDone
from gateway.ids import ConversationId, TurnId, UserId
from gateway.turns.healing import history_refused, summarise_record
from tests.support.builders import called, evidence_of, finished

NOW = datetime(2026, 11, 28, tzinfo=UTC)
HELD = replace(fresh_conversation(UserId("u"), NOW), session_id="s")
FAILED = ModelFailed(kind="unknown", text="API Error: 400")
REFUSED = finished(is_error=True, terminal_reason="api_error", api_error_status=400)
TOO_LONG = finished(is_error=True, terminal_reason="prompt_too_long", api_error_status=400)


@pytest.mark.parametrize("ending", [REFUSED, TOO_LONG])
def test_a_refused_history_may_be_left(ending: EngineEvent) -> None:
    assert history_refused(evidence_of(FAILED, ending), HELD)


def test_nothing_is_done_twice_and_other_failures_are_no_reason() -> None:
    assert not history_refused(evidence_of(called(), FAILED, REFUSED), HELD)
    assert not history_refused(evidence_of(TextDone(text="Half."), FAILED, REFUSED), HELD)
    assert not history_refused(evidence_of(FAILED, REFUSED, stopped_by="user_interrupt"), HELD)
    assert not history_refused(evidence_of(FAILED, REFUSED), replace(HELD, session_id=None))
    assert not history_refused(evidence_of(FAILED, REFUSED), replace(HELD, fork_at="e"))
    assert not history_refused(evidence_of(FAILED, replace(REFUSED, api_error_status=500)), HELD)
    assert not history_refused(evidence_of(TextDone(text="Yes."), finished()), HELD)


def test_a_summary_has_the_turns_that_were_answered() -> None:
    turn = Turn(
        id=TurnId("t"),
        conversation_id=ConversationId("c"),
        user_id=UserId("u"),
        seq=1,
        state="completed",
        message="My word is heron.",
        created_at=NOW,
        result={"outcome": "answered", "reply": "A grey bird. " * 999},
    )
    failed = replace(turn, message="poison", result={"outcome": "engine_failed", "reply": "No."})
    running = replace(turn, message="now", result=None)
    told = summarise_record([turn, failed, running])
    assert "\nPerson: My word is heron.\nYou: A grey bird." in told
    assert "poison" not in told
    assert "now" not in told.splitlines()
    assert len(told) < 2_000
