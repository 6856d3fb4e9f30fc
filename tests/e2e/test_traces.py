"""Traces from real turns to a real receiver: whole, without a word of the conversation, never in the way."""

import socket
from collections import Counter
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from tests.e2e.test_subagents import hand_over
from tests.support.engine_talk import until
from tests.support.live_server import LiveServer, bash, running_server, script, started_server
from tests.support.ports import lasting_port
from tests.support.program import run_app
from tests.support.trace_receivers import SeenSpan, TraceReceiver, trace_receiver

pytestmark = pytest.mark.e2e

CALLER, ABOVE = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SECRET = "Quetzalcoatl-7391"
HEADER = "header-secret-0815"
ROOT, CHAT = "invoke_agent candor", "chat candor-demo"
STOP_S = 20.0
"""Sooner than the SDK alone gives up."""


def environ(url: str, **more: str) -> dict[str, str]:
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": url,
        "OTEL_EXPORTER_OTLP_HEADERS": f"x-key={HEADER}",
        **more,
    }


def below(spans: list[SeenSpan], parent: SeenSpan) -> Counter[str]:
    return Counter(span.name for span in spans if span.parent_id == parent.id)


def turns_of(receiver: TraceReceiver) -> set[str]:
    return {str(span.attributes.get("candor.turn.id")) for span in receiver.spans}


async def stop(server: LiveServer) -> None:
    """Stop a server whose endpoint does not work; the SDK says so in its own words."""
    assert await to_thread.run_sync(partial(server.stop, STOP_S)) == 0
    server.tolerated += [
        row["event"] for row in server.log() if row["logger"].startswith("opentelemetry.")
    ]


async def test_a_real_turn_is_one_trace_that_goes_on_with_its_callers(tmp_path: Path) -> None:
    """What waited when the server was stopped is sent."""
    helper = hand_over(bash(f"echo {SECRET}"), {"text": SECRET}, what=SECRET)
    message = script(
        {"thinking": SECRET, "text": SECRET} | bash(f"ls {SECRET}"),
        bash("curl a.example"),
        helper,
        {"text": f"{SECRET} is told."},
        say=SECRET,
    )
    with trace_receiver() as receiver:
        async with (
            running_server(tmp_path, environ=environ(receiver.url)) as server,
            server.client() as client,
        ):
            answer = await client.http.post(
                "/chat",
                json={"message": message},
                headers={"traceparent": f"00-{CALLER}-{ABOVE}-01"},
            )
            result = answer.json()
            again = await client.ask(script({"text": "Hello."}), result["conversation_id"])
            assert HEADER not in server.journal_text(result)
            logged = [server.journal(each)[0]["trace_id"] for each in (result, again)]
    heard = b"".join(receiver.bodies)
    assert SECRET not in heard.decode("latin-1")
    assert HEADER not in heard.decode("latin-1")
    assert {head["x-key"] for head in receiver.headers} == {HEADER}
    first, second = ([span for span in receiver.spans if span.trace_id == id_] for id_ in logged)
    assert logged[0] == CALLER
    (root,) = [span for span in first if span.name == ROOT]
    assert root.parent_id == ABOVE
    assert below(first, root) == {
        **dict.fromkeys(("request", "recall", "client", "reply", "execute_tool Agent"), 1),
        "execute_tool Bash": 2,
        CHAT: 6,
    }
    (agent,) = [span for span in first if span.name == "execute_tool Agent"]
    assert below(first, agent) == {"execute_tool Bash": 1}
    assert root.attributes["candor.turn.outcome"] == result["outcome"] == "answered_with_failures"
    assert root.attributes["candor.turn.id"] == result["turn_id"]
    assert root.attributes["gen_ai.usage.output_tokens"] == result["usage"]["output_tokens"]
    calls = [span for span in first if span.name == CHAT]
    assert {call.kind for call in calls} == {"CLIENT"}
    assert all(call.attributes["gen_ai.usage.input_tokens"] > 0 for call in calls)
    assert all(call.attributes["gen_ai.response.time_to_first_chunk"] > 0 for call in calls)
    assert {call.attributes["http.response.status_code"] for call in calls} == {200}
    told = {
        span.attributes["gen_ai.tool.call.id"]: (
            span.attributes["candor.tool.status"],
            span.attributes["candor.tool.verdict"],
        )
        for span in first
        if span.name.startswith("execute_tool")
    }
    verdicts = {"denied": "deny", "ok": "allow", "failed": "allow"}
    assert told == {
        use["tool_use_id"]: (use["status"], verdicts[use["status"]]) for use in result["tools"]
    }
    origins = [
        span.attributes["candor.client.origin"] for span in receiver.spans if span.name == "client"
    ]
    assert origins == ["connected", "reused"]
    assert Counter(span.name for span in second) == Counter(
        [ROOT, "request", "recall", "client", CHAT, "reply"]
    )


async def test_turns_and_the_stop_do_not_wait_for_a_receiver_that_hangs(tmp_path: Path) -> None:
    never = {"OTEL_EXPORTER_OTLP_TIMEOUT": "3600", "OTEL_BSP_SCHEDULE_DELAY": "10"}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with (
            running_server(tmp_path, environ=environ(url, **never)) as server,
            server.client() as client,
        ):
            first = await client.ask(script(bash("ls"), {"text": "One."}))
            connection, _ = await to_thread.run_sync(listener.accept)  # it waits for an answer
            with connection:
                second = await client.ask(script({"text": "Two."}), first["conversation_id"])
                await stop(server)
    assert (first["outcome"], second["reply"]) == ("answered", "Two.")


async def test_a_receiver_that_is_gone_costs_the_spans_of_that_time_alone(tmp_path: Path) -> None:
    quick = {"OTEL_EXPORTER_OTLP_TIMEOUT": "1", "OTEL_BSP_SCHEDULE_DELAY": "10"}
    no_loss = "candor_trace_spans_lost_total 0.0\n"
    with ExitStack() as first_receiver:
        receiver = first_receiver.enter_context(trace_receiver(port := lasting_port()))
        async with (
            running_server(tmp_path, environ=environ(receiver.url, **quick)) as server,
            server.client() as client,
        ):
            first = await client.ask(script({"text": "One."}))
            await until(lambda: first["turn_id"] in turns_of(receiver))
            first_receiver.close()
            second = await client.ask(script({"text": "Two."}), first["conversation_id"])
            while no_loss in (await client.http.get("/metrics")).text:  # noqa: ASYNC110
                await anyio.sleep(0.05)
            with trace_receiver(port) as later:
                third = await client.ask(script({"text": "Three."}), first["conversation_id"])
                await until(lambda: third["turn_id"] in turns_of(later))
            await stop(server)
    assert [turn["reply"] for turn in (first, second, third)] == ["One.", "Two.", "Three."]


def test_where_traces_go_is_told_and_what_cannot_be_used_stops_no_server(tmp_path: Path) -> None:
    url = "http://127.0.0.1:9"
    told = run_app("doctor", directory=tmp_path, environ=environ(url)).stdout
    assert f"   ok  A trace of each turn goes to {url}/v1/traces.\n" in told
    grpc = environ(url, OTEL_EXPORTER_OTLP_PROTOCOL="grpc")
    told = run_app("doctor", directory=tmp_path, environ=grpc).stdout
    assert " note  Traces are sent by http/protobuf alone; set OTEL_EXPORTER_OTLP_PROTOCOL" in told
    never = environ(url, OTEL_BSP_SCHEDULE_DELAY="0")
    told = run_app("doctor", directory=tmp_path, environ=never).stdout
    assert " note  No traces are sent: OTEL_BSP_SCHEDULE_DELAY must be a whole number" in told
    with started_server(tmp_path, environ=never) as server:
        (row,) = [row for row in server.log() if row["event"] == "traces_off"]
    assert row["reason"] in told
