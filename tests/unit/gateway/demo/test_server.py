import json
from collections.abc import AsyncIterator

import anyio
import httpx
import pytest

from gateway.demo.answer import Answer, Text, Thinking, ToolCall
from gateway.demo.server import serve_demo
from gateway.demo.wire import cut_chunks, stream_answer

BOUND_S = 20


def request_body(prompt: str, *, stream: bool = True) -> dict[str, object]:
    return {
        "model": "candor-demo",
        "max_tokens": 1000,
        "stream": stream,
        "messages": [{"role": "user", "content": prompt}],
    }


def script(*steps: object) -> str:
    return f"```candor-script\n{json.dumps(list(steps))}\n```"


async def events_of(response: httpx.Response) -> AsyncIterator[dict[str, object]]:
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


async def stream_text(client: httpx.AsyncClient, prompt: str) -> str:
    async with client.stream("POST", "/v1/messages", json=request_body(prompt)) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        words = ""
        async for event in events_of(response):
            delta = event.get("delta")
            if event["type"] == "content_block_delta" and isinstance(delta, dict):
                words += str(delta.get("text", ""))
        return words


@pytest.mark.parametrize(
    "text", ["", "word " * 3000, "你好，世界。" * 50, "x" * 5000, " \n lead", "a你b 好c"]
)
def test_chunks_join_to_the_text(text: str) -> None:
    chunks = list(cut_chunks(text))
    assert "".join(chunks) == text
    assert len(chunks) <= 600


def test_a_stream_has_the_events_that_the_api_sends() -> None:
    answer = Answer(
        blocks=(Thinking("hm"), Text("hi"), ToolCall("Bash", {"command": "ls"})),
        stop_reason="tool_use",
    )
    ids = iter(["msg_1", "sig_1", "toolu_1"])
    events = list(
        stream_answer(
            answer, model="m", input_tokens=7, new_id=lambda prefix: f"{prefix}{next(ids)}"
        )
    )
    assert [event.data["type"] for event in events] == [
        "message_start",
        "ping",
        *(
            "content_block_start",
            "content_block_delta",
            "content_block_delta",
            "content_block_stop",
        ),
        *("content_block_start", "content_block_delta", "content_block_stop"),
        *(
            "content_block_start",
            "content_block_delta",
            "content_block_delta",
            "content_block_stop",
        ),
        "message_delta",
        "message_stop",
    ]
    deltas = [
        event.data["delta"] for event in events if event.data.get("index") == 2 and event.is_delta
    ]
    joined = "".join(str(delta["partial_json"]) for delta in deltas if isinstance(delta, dict))
    assert json.loads(joined) == {"command": "ls"}
    assert events[-2].data["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}


def test_a_call_is_streamed_with_what_it_was_given_and_nothing_else() -> None:
    answer = Answer(
        blocks=(ToolCall(None, [1], id=None), ToolCall(7, {}, raw_arguments="{[", id="same"))
    )
    events = [
        event.data for event in stream_answer(answer, model="m", input_tokens=7, new_id=str.upper)
    ]
    starts = [data["content_block"] for data in events if data["type"] == "content_block_start"]
    assert starts == [
        {"type": "tool_use", "input": {}},
        {"type": "tool_use", "id": "same", "name": 7, "input": {}},
    ]
    deltas = [data["delta"] for data in events if data["type"] == "content_block_delta"]
    parts = [str(delta["partial_json"]) for delta in deltas if isinstance(delta, dict)]
    assert "".join(parts) == "[1]{["


async def test_the_neighbouring_routes_answer() -> None:
    with anyio.fail_after(BOUND_S):
        async with (
            serve_demo(cadence_ms=0) as base_url,
            httpx.AsyncClient(base_url=base_url) as client,
        ):
            assert (await client.head("/")).status_code == 200
            assert "candor-demo" in (await client.get("/")).text
            models = (await client.get("/v1/models")).json()
            assert [model["id"] for model in models["data"]] == ["candor-demo"]
            count = await client.post("/v1/messages/count_tokens", json=request_body("x" * 400))
            assert count.json()["input_tokens"] > 100
            lost = await client.post("/v1/complete", json={})
            assert (lost.status_code, lost.json()["error"]["type"]) == (404, "not_found_error")


@pytest.mark.parametrize("body", [b"{", b"[]", b"{}", b'{"messages": []}', b"\xff", b"[" * 100_000])
async def test_a_bad_body_is_refused_in_the_apis_shape(body: bytes) -> None:
    with anyio.fail_after(BOUND_S):
        async with (
            serve_demo(cadence_ms=0) as base_url,
            httpx.AsyncClient(base_url=base_url) as client,
        ):
            response = await client.post("/v1/messages", content=body)
            assert response.status_code == 400
            answer = response.json()
            assert answer["type"] == "error"
            assert answer["error"]["type"] == "invalid_request_error"
            assert answer["request_id"] == response.headers["request-id"]


async def test_an_answer_comes_whole_or_streamed() -> None:
    with anyio.fail_after(BOUND_S):
        async with (
            serve_demo(cadence_ms=0) as base_url,
            httpx.AsyncClient(base_url=base_url) as client,
        ):
            prompt = script(
                {"thinking": "hm", "text": "你好 there", "tool": "Bash", "input": {"a": 1}}
            )
            whole = (
                await client.post("/v1/messages", json=request_body(prompt, stream=False))
            ).json()
            assert [block["type"] for block in whole["content"]] == ["thinking", "text", "tool_use"]
            assert whole["stop_reason"] == "tool_use"
            assert whole["usage"]["input_tokens"] > 0
            assert await stream_text(client, prompt) == "你好 there"


async def test_errors_come_as_often_as_told_and_then_the_answer() -> None:
    with anyio.fail_after(BOUND_S):
        async with (
            serve_demo(cadence_ms=0) as base_url,
            httpx.AsyncClient(base_url=base_url) as client,
        ):
            body = request_body(
                script({"status": 529, "times": 2, "retry_after": 1}, {"text": "up"})
            )
            refused = [await client.post("/v1/messages", json=body) for _ in range(2)]
            assert [response.status_code for response in refused] == [529, 529]
            assert refused[0].json()["error"]["type"] == "overloaded_error"
            assert refused[0].headers["retry-after"] == "1"
            assert (await client.post("/v1/messages", json=body)).status_code == 200


ODD_STEPS = [
    {"text": "a\ud800b"},
    {"text": "a\0b"},
    {"thinking": "\udfff", "text": "a"},
    {"tool": "No\ud800pe", "input": {"\ud800": "\udc00"}},
    {"tool": "", "input": {}},
    {"status": 529, "message": "\ud800", "error_type": "\udfff"},
    {"drop": True, "after_chars": -1, "text": "\ud800ab"},
    {"echo": "prompt"},
    {"echo": "messages", "text": "\ud800"},
    {"text": "a", "times": 10**400},
]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("step", ODD_STEPS, ids=range(len(ODD_STEPS)))
async def test_half_characters_and_other_odd_text_are_sent_as_what_can_be_read(
    step: dict[str, object],
    stream: bool,  # noqa: FBT001
) -> None:
    prompt = script(step) + "\ud800"
    with anyio.fail_after(BOUND_S):
        async with (
            serve_demo(cadence_ms=0) as base_url,
            httpx.AsyncClient(base_url=base_url) as client,
        ):
            answers = [
                await _answer_or_cut(client, request_body(prompt, stream=stream)) for _ in range(2)
            ]
    for status, text in answers:
        assert status in {200, 529}
        assert not any("\ud800" <= one <= "\udfff" for one in text)


async def test_half_a_character_is_replaced_and_the_rest_is_said() -> None:
    with anyio.fail_after(BOUND_S):
        async with (
            serve_demo(cadence_ms=0) as base_url,
            httpx.AsyncClient(base_url=base_url) as client,
        ):
            assert (
                await stream_text(client, script({"text": "a\ud800b\U0001f600"}))
                == "a\ufffdb\U0001f600"
            )


async def _answer_or_cut(client: httpx.AsyncClient, body: dict[str, object]) -> tuple[int, str]:
    """Give the status and every string in the answer; what was cut off counts as far as it came."""
    text = ""
    try:
        async with client.stream("POST", "/v1/messages", content=json.dumps(body)) as response:
            async for line in response.aiter_lines():
                if line.startswith(("data: ", "{")):
                    text += str(json.loads(line.removeprefix("data: ")))
    except httpx.TransportError:
        return 200, text
    return response.status_code, text


@pytest.mark.parametrize("stream", [True, False])
async def test_a_dropped_connection_is_cut_and_then_answers(stream: bool) -> None:  # noqa: FBT001
    with anyio.fail_after(BOUND_S):
        async with (
            serve_demo(cadence_ms=0) as base_url,
            httpx.AsyncClient(base_url=base_url) as client,
        ):
            body = request_body(script({"drop": True}, {"text": "up"}), stream=stream)
            with pytest.raises(httpx.RemoteProtocolError):
                await client.post("/v1/messages", json=body)
            assert (await client.post("/v1/messages", json=body)).status_code == 200


async def test_a_stream_can_break_in_the_middle() -> None:
    with anyio.fail_after(BOUND_S):
        async with (
            serve_demo(cadence_ms=0) as base_url,
            httpx.AsyncClient(base_url=base_url) as client,
        ):
            body = request_body(script({"drop": True, "after_chars": 5, "text": "hello world"}))
            seen = ""
            async with client.stream("POST", "/v1/messages", json=body) as response:
                lines = response.aiter_lines()
                with pytest.raises(httpx.RemoteProtocolError):  # noqa: PT012
                    async for line in lines:
                        seen += line
            assert "hello" in seen
            assert "world" not in seen


async def test_an_error_can_come_in_the_middle_of_a_stream() -> None:
    """The status is 200 already, so the error is an event of the stream."""
    with anyio.fail_after(BOUND_S):
        async with (
            serve_demo(cadence_ms=0) as base_url,
            httpx.AsyncClient(base_url=base_url) as client,
        ):
            body = request_body(script({"status": 529, "after_chars": 5, "text": "hello world"}))
            answer = await client.post("/v1/messages", json=body)
    assert answer.status_code == 200
    *_, last = answer.text.strip().split("\n\n")
    assert last.startswith("event: error\n")
    assert "overloaded_error" in last
    assert "hello" in answer.text
    assert "world" not in answer.text


async def test_a_body_is_sent_verbatim() -> None:
    with anyio.fail_after(BOUND_S):
        async with (
            serve_demo(cadence_ms=0) as base_url,
            httpx.AsyncClient(base_url=base_url) as client,
        ):
            step = {"raw": "<html>", "content_type": "text/html", "status": 502}
            answer = await client.post("/v1/messages", json=request_body(script(step)))
    assert (answer.status_code, answer.text) == (502, "<html>")
    assert answer.headers["content-type"].startswith("text/html")


async def test_leaving_cuts_streams_and_hanging_calls_quickly() -> None:
    async def ask(base_url: str, prompt: str) -> None:
        async with httpx.AsyncClient(base_url=base_url, timeout=None) as client:
            with pytest.raises(httpx.TransportError):
                await stream_text(client, prompt)
            cut.append(prompt)

    prompts = [
        script({"hang": True}),
        script({"hang": True, "after_chars": 5}),
        script({"text": "word " * 500, "delta_delay_ms": 1000}),
        script({"text": "late", "delay_ms": 60_000}),
    ]
    cut: list[str] = []
    with anyio.fail_after(BOUND_S):
        async with anyio.create_task_group() as tasks, serve_demo(cadence_ms=0) as base_url:
            for prompt in prompts:
                tasks.start_soon(ask, base_url, prompt)
            await anyio.sleep(0.3)
    assert sorted(cut) == sorted(prompts)


async def test_a_cancelled_server_leaves_no_open_port() -> None:
    with anyio.fail_after(BOUND_S):
        base_url = ""
        with anyio.CancelScope() as scope:
            async with serve_demo() as base_url:
                scope.cancel()
                await anyio.sleep_forever()
        async with httpx.AsyncClient(base_url=base_url) as client:
            with pytest.raises(httpx.ConnectError):
                await client.get("/")


async def test_many_conversations_do_not_wait_for_each_other() -> None:
    async def ask(client: httpx.AsyncClient, number: int) -> None:
        assert (
            await stream_text(client, script({"text": f"n{number}", "delay_ms": 200}))
            == f"n{number}"
        )

    with anyio.fail_after(BOUND_S):
        limits = httpx.Limits(max_connections=None)
        async with (
            serve_demo(cadence_ms=0) as base_url,
            httpx.AsyncClient(base_url=base_url, limits=limits) as client,
        ):
            started = anyio.current_time()
            async with anyio.create_task_group() as tasks:
                for number in range(40):
                    tasks.start_soon(ask, client, number)
            assert anyio.current_time() - started < 4


async def test_what_the_block_raises_comes_out_as_it_was() -> None:
    with anyio.fail_after(BOUND_S), pytest.raises(KeyError):
        async with serve_demo():
            raise KeyError("mine")


async def test_a_taken_port_is_told() -> None:
    with anyio.fail_after(BOUND_S):
        async with serve_demo() as base_url:
            port = int(base_url.rpartition(":")[2])
            with pytest.raises(OSError, match="in use"):
                async with serve_demo(port=port):
                    pass
