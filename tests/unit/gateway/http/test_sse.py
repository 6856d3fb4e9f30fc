"""Event streams and views of turns."""

import asyncio
import json
from dataclasses import replace
from typing import Any, Self, cast

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Gauge
from starlette.types import Receive

from gateway.conversations.feed import Subscription
from gateway.conversations.model import TurnEvent
from gateway.http.sse import EventStream, StreamPlan, stream_pieces
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


def test_an_announcement_has_no_id_so_that_a_client_resumes_after_the_event_before() -> None:
    announcement = replace(delta("x"), n=0, seq=0, type="conversation.changed")
    written = b"".join(stream_pieces([delta("x"), announcement])).decode()
    assert [line for line in written.split("\n") if line.startswith("id:")] == ["id: trn_1:3"]
    assert "\n\nevent: conversation.changed\ndata: " in written


def test_events_large_and_small_are_written_in_pieces_of_bounded_size() -> None:
    events = [delta(text) for text in ("a" * 100_000, "b", "c", "中" * 50_000, "d")]
    pieces = list(stream_pieces(events))
    assert b"".join(pieces) == b"".join(b"".join(stream_pieces([event])) for event in events)
    assert max(map(len, pieces)) < 3 * 2 * 16_384  # three bytes a Chinese character
    assert len(pieces) < 20  # small ones go together


class Woken:
    """A subscription that is woken for nothing, at given moments, and then completes."""

    def __init__(self, clock: list[float], moments: list[float]) -> None:
        self.clock, self.moments, self.waits = clock, moments, list[float]()

    async def __aenter__(self) -> Self:
        await anyio.lowlevel.checkpoint()
        return self

    async def __aexit__(self, *_: object) -> None:
        await anyio.lowlevel.checkpoint()

    async def next(self, wait_s: float) -> list[TurnEvent]:
        await anyio.lowlevel.checkpoint()
        self.waits.append(wait_s)
        if not self.moments:
            return [replace(delta("end"), type="turn.completed")]
        self.clock[0] = self.moments.pop(0)
        return []


async def test_a_stream_that_is_woken_for_nothing_checks_at_most_once_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its conversation may be gone, so it checks; events of other turns wake it many times."""
    clock, checked, sent = [100.0], list[float](), list[bytes]()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: clock[0])
    woken = Woken(clock, [100.5, 100.75, 101.5, 110.0])

    async def check() -> None:
        await anyio.lowlevel.checkpoint()
        checked.append(clock[0])

    async def send(message: Any) -> None:
        await anyio.lowlevel.checkpoint()
        sent.append(message.get("body", b""))

    plan = StreamPlan(
        subscription=cast("Subscription", woken),
        until_completed=True,
        check=check,
        wait_stopped=anyio.sleep_forever,
        wait_revoked=anyio.sleep_forever,
        keep_alive_s=10,
        request_id="req_1",
    )
    stream = EventStream(plan, Gauge("readers", "", registry=None))
    await stream({"type": "http"}, cast("Receive", anyio.sleep_forever), send)
    assert checked == [100.5, 101.5, 110.0]
    assert woken.waits == [10, 9.5, 0.75, 8.5, 10]
    assert sent.count(b": keep-alive\n\n") == 1


@pytest.mark.parametrize("is_over", [False, True])
async def test_a_client_that_closes_a_stream_that_is_over_has_not_left_its_turn(
    *, is_over: bool
) -> None:
    """Clients close at the last event, which may be before the server has ended the response."""
    left, told = list[str](), anyio.Event()

    async def receive() -> Any:
        await told.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message.get("body"):
            told.set()
            await anyio.sleep_forever()

    async def on_left() -> None:
        await anyio.lowlevel.checkpoint()
        left.append("left")

    plan = StreamPlan(
        subscription=cast("Subscription", Woken([0.0], [])),
        until_completed=False,
        check=anyio.lowlevel.checkpoint,
        wait_stopped=anyio.sleep_forever,
        wait_revoked=anyio.sleep_forever,
        keep_alive_s=10,
        request_id="req_1",
        is_over=lambda: is_over,
        on_left=on_left,
    )
    stream = EventStream(plan, Gauge("readers", "", registry=None))
    await stream({"type": "http"}, cast("Receive", receive), send)
    assert left == ([] if is_over else ["left"])
