"""The pieces of a turn hold its reply once, whatever the model gives again; doors tell its end."""

from typing import Any

from gateway.conversations.model import Turn, TurnEvent
from gateway.doors.acp.updates import stop_reason
from gateway.doors.ag_ui.events import Run
from gateway.doors.openai.chunks import Chunks, failure_of, finish_reason
from gateway.doors.openai.response_events import ResponseStream, ResponseWriter
from gateway.doors.openai.response_objects import status_of
from gateway.doors.pieces import Asked, CallEnded, CallStarted, Ended, PieceReader, Text, pieces_of
from gateway.ids import LOCAL_USER, ConversationId, TurnId
from gateway.jsonsafe import json_text
from memory.clock import rfc3339, utc_now


def event(kind: str, **fields: Any) -> TurnEvent:
    return TurnEvent(
        seq=0,
        conversation_id=ConversationId("cnv_1"),
        turn_id=TurnId("trn_1"),
        n=1,
        type=kind,
        data=json_text(fields),
    )


def texts(*events: TurnEvent) -> list[tuple[str, bool]]:
    pieces = list(PieceReader().read(events))
    assert isinstance(pieces[-1], Ended)
    return [(piece.text, piece.is_apart) for piece in pieces if isinstance(piece, Text)]


def test_what_breaks_off_is_followed_by_the_whole_answer_and_by_nothing_more() -> None:
    """A stream cannot take back what it sent; the answer that counts begins a paragraph."""
    assert texts(
        event("text.delta", text="\nHalf an"),
        event("notice", code="model_retrying", message="", void_text_chars=8),
        event("text.delta", text="Half an answer."),
        event("turn.completed", reply="Half an answer."),
    ) == [("Half an", False), ("Half an answer.", True)]


def test_words_of_the_gateway_behind_the_deltas_are_told() -> None:
    assert texts(
        event("text.delta", text="Begun."),
        event("notice", code="other", message=""),
        event("turn.completed", reply="Begun.\n\nYou stopped it."),
    ) == [("Begun.", False), ("You stopped it.", True)]


def test_calls_that_have_no_number_are_told_apart_by_their_ids() -> None:
    """As the first servers stored them."""
    pieces = PieceReader().read(
        [
            event("tool.started", tool_use_id="a", name="Bash", summary="ls", input={}),
            event("tool.started", tool_use_id="b", name="Bash", summary="id", input={}),
            event("approval.requested", approval_id="apr_1", tool_use_id="b", summary="id"),
            event("tool.finished", tool_use_id="b", name="Bash", status="ok"),
            event("tool.finished", tool_use_id="a", name="Bash", status="ok"),
        ]
    )
    told = [piece.fields for piece in pieces if isinstance(piece, CallStarted | Asked | CallEnded)]
    assert [(fields["index"], fields["summary"]) for fields in told] == [
        *[(1, "ls"), (2, "id"), (2, "id"), (2, "id"), (1, "ls")]
    ]


ANSWERED: dict[str, Any] = {
    "reply": "Half an",
    "outcome": "answered",
    "stop_reason": "end_turn",
    "notices": [],
}


def test_an_answer_that_reached_the_models_output_limit_is_told_as_cut_off() -> None:
    cut = {**ANSWERED, "notices": [{"code": "max_tokens", "message": "It was cut off."}]}
    told = [
        (finish_reason(result), status_of(result), stop_reason(result, is_cancelled=False))
        for result in (ANSWERED, cut)
    ]
    assert told == [("stop", "completed", "end_turn"), ("length", "incomplete", "max_tokens")]


SENTENCE = "The model's service failed."
FAILED: dict[str, Any] = {
    **ANSWERED,
    "conversation_id": "cnv_1",
    "turn_id": "trn_1",
    "reply": f"Half an\n\n{SENTENCE}",
    "outcome": "engine_failed",
    "stop_reason": "api_error",
    "tools": [],
    "steps": [
        {"type": "text", "text": "Half an"},
        {"type": "text", "text": SENTENCE, "by": "gateway"},
    ],
    "usage": {"input_tokens": 1, "output_tokens": 1},
    "finished_at": rfc3339(utc_now()),
}
TURN = Turn(
    id=TurnId("trn_1"),
    conversation_id=ConversationId("cnv_1"),
    user_id=LOCAL_USER,
    seq=1,
    state="completed",
    message="Hi.",
    created_at=utc_now(),
)


def test_the_error_of_a_failed_turn_is_its_sentence_alone() -> None:
    error = failure_of(FAILED)
    assert error is not None
    assert error.message == SENTENCE


def test_a_repeated_failure_names_what_begins_a_new_turn_whatever_the_request_was() -> None:
    """Neither the key of the request nor its count nor its turn's calls are known to it."""
    error = failure_of(FAILED, is_repeated=True)
    assert error is not None
    assert error.message == (
        f"{SENTENCE} This answers a request that was repeated; one with another body or another"
        " `Idempotency-Key` begins a new turn at once."
    )


def test_a_stream_tells_the_sentence_of_a_failure_once() -> None:
    events = [event("text.delta", text="Half an"), event("turn.completed", **FAILED)]
    for door in (
        Chunks({}, with_usage=False, request_id="req_1"),
        ResponseStream(ResponseWriter(TURN, None)),
        Run("thread", "run"),
    ):
        told = b"".join(door(events)).decode()
        assert "Half an" in told
        assert told.count(SENTENCE) == 1, type(door)


def test_the_sentence_of_a_failure_is_left_out_of_a_turn_without_events() -> None:
    pieces = pieces_of(FAILED, tells_failure=False)
    assert [piece.text for piece in pieces if isinstance(piece, Text)] == ["Half an"]
