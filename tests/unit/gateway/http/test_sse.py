"""How events are written."""

import json

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversations.model import TurnEvent
from gateway.errors import ShuttingDown
from gateway.http.sse import _Rhythm, error_event, stream_pieces
from gateway.ids import ConversationId, TurnId
from gateway.jsonsafe import json_text


def delta(text: str) -> TurnEvent:
    return TurnEvent(
        seq=7,
        conversation_id=ConversationId("cnv_1"),
        turn_id=TurnId("trn_1"),
        n=3,
        type="text.delta",
        data=json_text({"text": text}),
    )


@given(text=st.text(st.characters(codec=None)))
def test_whatever_a_text_holds_its_event_is_three_lines_and_a_blank_one(text: str) -> None:
    written = b"".join(stream_pieces([delta(text)])).decode()
    assert "\r" not in written
    first, second, third, *rest = written.split("\n")
    assert (first, second, rest) == ("id: trn_1:3", "event: text.delta", ["", ""])
    assert set(json.loads(third.removeprefix("data: "))) == {"text"}


def test_events_large_and_small_are_written_in_pieces_of_bounded_size() -> None:
    events = [delta(text) for text in ("a" * 100_000, "b", "c", "中" * 50_000, "d")]
    pieces = list(stream_pieces(events))
    assert b"".join(pieces) == b"".join(b"".join(stream_pieces([event])) for event in events)
    assert max(map(len, pieces)) < 3 * 2 * 16_384  # three bytes a Chinese character
    assert len(pieces) < 20  # small ones go together


def test_an_error_event_has_the_one_error_shape_and_no_id() -> None:
    fault = ShuttingDown("The server is shutting down.", retry_after_s=5)
    lines = error_event(fault, "req_1").decode().split("\n")
    assert lines[0] == "event: error"
    assert json.loads(lines[1].removeprefix("data: ")) == {
        "error": {
            "code": "shutting_down",
            "message": "The server is shutting down.",
            "retryable": True,
            "request_id": "req_1",
            "details": {"retry_after_s": 5},
        }
    }
    assert lines[2:] == ["", ""]


def test_a_stream_that_is_woken_for_nothing_looks_at_most_once_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its conversation may be gone, so it looks; events of other turns wake it many times."""
    now = 100.0
    monkeypatch.setattr(anyio, "current_time", lambda: now)
    rhythm = _Rhythm(keep_alive_s=10)
    assert rhythm.wait_s == 10
    assert rhythm.is_check_due()
    now = 100.25
    assert not rhythm.is_check_due()
    assert rhythm.wait_s == 0.75
    now = 101.0
    assert rhythm.is_check_due()
    assert rhythm.wait_s == 9
    assert not rhythm.is_keep_alive_due()
    now = 110.0
    assert rhythm.wait_s == 0
    assert rhythm.is_keep_alive_due()
    assert rhythm.wait_s == 10
    now = 115.0
    rhythm.sent()
    assert rhythm.wait_s == 10
