"""What the relay tells of each call of the model's service, where that is wanted."""

import json
from contextlib import suppress
from typing import Any

import anyio
import httpx
import pytest
from anyio.abc import SocketStream

from gateway.relay.reports import ModelCall
from tests.support.engine_talk import until
from tests.support.relays import (
    END,
    HEAD,
    OK,
    Agent,
    answering,
    chunk,
    read_request,
    relayed,
    service,
)

START = {
    "type": "message_start",
    "message": {"model": "big-2", "usage": {"input_tokens": 7, "output_tokens": 1}},
}
DELTA = {"type": "message_delta", "usage": {"output_tokens": 9, "server_tool_use": {"a": 1}}}
STOP = {"type": "message_stop"}
ASKED = b'{"model":"big","messages":[{"model":"small"}]}'


def lines(*events: dict[str, Any]) -> bytes:
    return b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in events)


async def calls_of(agent: Agent, count: int = 1) -> list[ModelCall]:
    """Wait for what was told of so many calls."""
    calls: list[ModelCall] = []
    with anyio.fail_after(20):
        while len(calls) < count:
            await anyio.sleep(0.01)
            calls = [report for report in agent.reports if isinstance(report, ModelCall)]
    return calls


async def test_an_answer_is_told_with_its_models_figures_and_times_before_it_has_ended() -> None:
    async def handle(stream: SocketStream) -> None:
        await read_request(stream)
        await stream.send(HEAD + chunk(lines(START, DELTA)))
        await stream.send(chunk(lines(STOP)))
        await told.wait()
        await stream.send(END)

    told = anyio.Event()
    async with service(handle) as url, relayed(url, reports_calls=True) as agent:
        async with agent.ask(body=ASKED) as answer:
            (call,) = await calls_of(agent)
            told.set()
            await answer.aread()
        await until(lambda: len(agent.reports) == 1)
    assert (call.status, call.fault, call.is_whole) == (200, None, True)
    assert (call.asked_model, call.model) == ("big", "big-2")
    assert call.tokens == {"input_tokens": 7, "output_tokens": 9}
    assert call.first_s is not None
    assert 0 < call.first_s <= call.seconds


async def test_an_answer_in_one_piece_is_told_too() -> None:
    body = json.dumps({"content": [], "model": "big-2", "usage": {"output_tokens": 4}}).encode()
    async with service(answering(body)) as url, relayed(url, reports_calls=True) as agent:
        await agent.read()
        (call,) = await calls_of(agent)
    assert (call.asked_model, call.model, call.tokens) == ("", "big-2", {"output_tokens": 4})


@pytest.mark.parametrize(
    ("answer", "status", "fault", "is_whole"),
    [
        (b"HTTP/1.1 529 Busy\r\ncontent-length: 2\r\n\r\n{}", 529, "refused", True),
        (b"HTTP/1.1 302 Go\r\nlocation: http://a\r\ncontent-length: 0\r\n\r\n", 302, "redirected", False),
        (HEAD + chunk(lines(START)), 200, "cut", False),
        (b"", None, "unreachable", False),
        (OK % (2, b"{}"), 200, "not_messages", True),
    ],
)  # fmt: skip
async def test_a_call_that_failed_is_told_once_with_what_was_wrong(
    answer: bytes, status: int | None, fault: str, *, is_whole: bool
) -> None:
    async def handle(stream: SocketStream) -> None:
        await read_request(stream)
        if answer:
            await stream.send(answer)

    async with service(handle) as url, relayed(url, reports_calls=True) as agent:
        with suppress(httpx.HTTPError):  # what the answer is to its client
            await agent.read()
        (call,) = await calls_of(agent)
    assert (call.status, call.fault, call.is_whole) == (status, fault, is_whole)
    assert [report.kind for report in agent.reports if report.kind != "called"] == [fault]


async def test_nothing_is_told_where_nobody_wants_to_know_nor_of_counting() -> None:
    async with service(answering()) as url, relayed(url) as agent:
        await agent.read()
        quiet = list(agent.reports)
    async with service(answering()) as url, relayed(url, reports_calls=True) as agent:
        async with agent.ask("/v1/messages/count_tokens") as answer:
            await answer.aread()
        await agent.read()
        (call,) = await calls_of(agent)
    assert not any(isinstance(report, ModelCall) for report in quiet)
    assert call.status == 200
