"""Sending traces: what the environment says, and an endpoint that is gone or hangs."""

import socket
import threading
from contextlib import suppress

import anyio
import pytest
from opentelemetry import trace

from gateway.observability.trace_plan import plan_traces
from gateway.version import VERSION
from tests.support.trace_receivers import trace_receiver

MOST_BYTES = 64 * 1024 * 1024
SENDER = "OtelBatchSpanRecordProcessor"
"""The name of the SDK's thread."""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")


async def send_one(url: str, lost: list[int]) -> None:
    """Make a trace of one span for an endpoint, and close."""
    opener = plan_traces({"OTEL_EXPORTER_OTLP_ENDPOINT": url}).opener
    assert opener is not None
    async with opener(lost.append) as tracer:
        tracer.begin("whole", 1.0, {}).end(3.5, {"candor.turn.id": "trn_1"}, "timeout")


async def test_a_span_arrives_with_what_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc")
    lost: list[int] = []
    with trace_receiver() as receiver:
        await send_one(receiver.url, lost)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "helpdesk")
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=live")
        await send_one(receiver.url, lost)
    assert (receiver.paths, lost) == (["/v1/traces"] * 2, [])
    assert {head["authorization"] for head in receiver.headers} == {"Bearer abc"}
    assert (receiver.resource["service.name"], receiver.resource["service.version"]) == (
        "candor",
        VERSION,
    )
    second = receiver.requests[1].resource_spans[0].resource.attributes
    given = {pair.key: pair.value.string_value for pair in second}
    assert (given["service.name"], given["deployment.environment"]) == ("helpdesk", "live")
    span = receiver.spans[0]
    assert (span.took_ns, span.is_error) == (2_500_000_000, True)
    assert span.attributes == {"candor.turn.id": "trn_1", "error.type": "timeout"}
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)  # no library writes


@pytest.mark.parametrize("status", [400, 302, 308])
async def test_spans_that_nobody_takes_are_counted(status: int) -> None:
    lost: list[int] = []
    with trace_receiver() as receiver:
        receiver.status = status
        await send_one(receiver.url, lost)
    assert (lost, len(receiver.bodies)) == ([1], 1)


async def test_an_answer_without_an_end_is_not_read() -> None:
    sent = 0

    def answer(listener: socket.socket) -> None:
        nonlocal sent
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            with suppress(OSError):  # until the client hangs up
                while sent < MOST_BYTES:
                    sent += connection.send(bytes(65_536))

    lost: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answering = threading.Thread(target=answer, args=(listener,), daemon=True)
        answering.start()
        await send_one(f"http://127.0.0.1:{listener.getsockname()[1]}", lost)
        await anyio.to_thread.run_sync(answering.join, 20.0)
    assert 0 < sent < MOST_BYTES
    assert lost == []


async def test_a_header_that_cannot_be_read_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "nonsense s3cret-of-the-collector")
    with trace_receiver() as receiver:
        await send_one(receiver.url, [])
    assert receiver.paths == ["/v1/traces"]
    assert "s3cret" not in caplog.text


async def test_closing_does_not_wait_for_an_endpoint_that_hangs_and_ends_the_attempts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The SDK alone would wait for half a minute, and for an answer an hour."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3600")
    before = set(threading.enumerate())
    lost: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:  # never answers
        with anyio.fail_after(20):
            await send_one(f"http://127.0.0.1:{listener.getsockname()[1]}", lost)
            await anyio.lowlevel.checkpoint()  # closing itself cannot be cancelled
        assert lost == []
        sending = [one for one in set(threading.enumerate()) - before if one.name == SENDER]
        assert len(sending) == 1
    await anyio.to_thread.run_sync(sending[0].join, 10.0)
    assert not sending[0].is_alive()
