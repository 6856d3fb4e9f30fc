from dataclasses import replace

import pytest

from gateway.engine.events import (
    ClientLost,
    EngineEvent,
    EntryRecorded,
    MessageBegun,
    MessageEnded,
    ModelFailed,
    ModelRetrying,
    RunFinished,
    SessionReady,
    TextDone,
)
from gateway.turns.evidence import Evidence, StopReason
from tests.support.builders import broken_off, called, evidence_of, failed, finished, returned


def test_the_result_is_the_text_only_where_no_block_told_any() -> None:
    assert evidence_of(finished(result="Hello")).text == "Hello"
    assert evidence_of(TextDone(text="A"), finished(result="B")).text == "A"
    assert evidence_of(called(), returned(), finished(result="Done.")).text == "Done."


def test_session_model_entry_and_usage_are_kept_and_usage_is_summed_over_runs() -> None:
    usage = {"input_tokens": 3, "output_tokens": 2, "service_tier": "standard"}
    evidence = evidence_of(
        SessionReady(session_id="s1", model="m"),
        EntryRecorded(entry_id="e1"),
        EntryRecorded(entry_id="e2"),
        finished(usage=usage),
        finished(usage=usage),
    )
    assert (evidence.session_id, evidence.model, evidence.last_entry_id) == ("s1", "m", "e2")
    assert evidence.usage == {"input_tokens": 6, "output_tokens": 4}


def test_the_context_is_what_the_last_answer_has_read_and_written() -> None:
    evidence = evidence_of(
        SessionReady(session_id="s1", model="big"),
        MessageBegun(context_tokens=900),
        MessageEnded(stop_reason="tool_use", output_tokens=50),
        MessageBegun(context_tokens=1000),
        MessageEnded(stop_reason="end_turn", output_tokens=7),
        finished(context_windows={"big": 5000, "small": 9000}),
    )
    assert evidence.usage == {"context_tokens": 1007, "context_window": 5000}


@pytest.mark.parametrize(
    "later", [[TextDone(text="Here.")], [called(), returned()], [finished()]], ids=lambda _: ""
)
def test_an_answer_or_a_clean_result_clears_an_earlier_failure(later: list[EngineEvent]) -> None:
    failure = ModelFailed(kind="invalid_request", text="API Error")
    evidence = evidence_of(failure, *later, finished())
    assert (evidence.model_failure, evidence.model_gave_up) == (None, False)
    still = evidence_of(failure, finished(is_error=True, terminal_reason="api_error"))
    assert (still.model_failure, still.model_gave_up) == (failure, True)


def test_a_call_that_worked_is_ok_with_its_output_and_duration() -> None:
    evidence = Evidence()
    use = evidence.tool_called(called(), "ls", 100)
    evidence.take(returned("a.txt"), 100.012)
    assert (use.status, use.error, use.output, use.duration_ms) == ("ok", None, "a.txt", 12)


def test_calls_of_one_id_have_each_their_own_evidence() -> None:
    first = replace(called("t1"), tool_use_id="same")
    second = replace(called("t2"), tool_use_id="same")
    evidence = evidence_of(
        first, second, replace(returned("Out."), index=None), failed("t2 failed", "t2")
    )
    assert [use.status for use in evidence.tools.values()] == ["unknown", "failed"]


def test_a_call_counts_as_denied_where_only_the_agent_program_names_it_so() -> None:
    evidence = evidence_of(called(), failed("no"), finished(denied_calls=(1, 9)))
    assert evidence.tools[1].status == "denied"


def test_a_call_that_did_not_run_returned_nothing_of_any_length() -> None:
    evidence = Evidence()
    gate, agent, ran = (evidence.tool_called(called(f"t{n}"), "ls", 0) for n in (1, 2, 3))
    evidence.denials[gate.index] = "No."
    for event in (failed("No, says the gate.", "t1"), failed("No.", "t2"), returned("a", "t3")):
        evidence.take(event, 0)
    evidence.take(finished(denied_calls=(agent.index,)), 0)
    assert [use.status for use in (gate, agent, ran)] == ["denied", "denied", "ok"]
    assert [use.output_chars for use in (gate, agent, ran)] == [None, None, 1]


SETTLED: dict[StopReason | None, str] = {
    **dict.fromkeys((None, "api_error"), "unknown"),
    **dict.fromkeys(("user_interrupt", "shutdown", "timeout", "doom_loop"), "interrupted"),
}


def test_a_call_without_a_result_is_settled_by_what_ended_the_turn() -> None:
    found = {reason: evidence_of(called(), stopped_by=reason).tools[1].status for reason in SETTLED}
    assert found == SETTLED


def test_only_open_calls_are_settled_and_a_second_result_changes_nothing() -> None:
    evidence = evidence_of(called(), returned(), failed("late"), called("t2"), settled=False)
    assert [item.tool_use_id for item in evidence.settle(0)] == ["t2"]
    assert evidence.tools[1].status == "ok"
    assert evidence.settle(0) == []


STOPS: list[tuple[StopReason, RunFinished | ClientLost]] = [
    ("user_interrupt", broken_off()),
    ("user_interrupt", ClientLost(exit_code=-9)),
    ("user_interrupt", finished(terminal_reason="aborted_streaming")),
    ("api_error", finished(is_error=True, terminal_reason="api_error")),
    ("doom_loop", finished()),
    ("policy_interrupt", finished()),
]


def test_a_stop_stands_if_it_took_effect_and_not_if_the_run_had_ended_by_itself() -> None:
    for reason, finish in STOPS:
        assert evidence_of(finish, stopped_by=reason).stopped_by == reason
    reasons: list[StopReason] = ["user_interrupt", "shutdown", "timeout", "api_error"]
    for reason in reasons:
        whole = evidence_of(TextDone(text="All of it."), finished(), stopped_by=reason)
        assert whole.stopped_by is None


def test_the_model_gave_up_where_its_failure_was_final_and_not_where_it_declined() -> None:
    failure = ModelFailed(kind="overloaded", text="529")
    retry = ModelRetrying(attempt=1, max_attempts=10, delay_ms=1, status=529, error="overloaded")
    assert evidence_of(failure, finished(is_error=True)).model_gave_up
    assert evidence_of(finished(is_error=True, terminal_reason="api_error")).model_gave_up
    assert evidence_of(stopped_by="api_error").model_gave_up
    assert not evidence_of(retry, finished()).model_gave_up
    assert not evidence_of(failure, finished(stop_reason="refusal")).model_gave_up
    assert not evidence_of(failure, stopped_by="user_interrupt").model_gave_up
