import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import httpx
import pytest
from starlette.types import Receive, Scope, Send

from gateway.demo.answer import cut_chunks
from gateway.demo.server import create_demo_app, run_server, serve_demo

BOUND_S = 20

ODD_STEPS = [
    {"text": "a\ud800b"},
    {"text": "a\0b"},
    {"thinking": "\udfff", "text": "a"},
    {"tool": "No\ud800pe", "input": {"\ud800": "\udc00"}},
    {"tool": "", "input": {}},
    {"status": 529, "message": "\ud800", "error_type": "\udfff"},
    {"drop": True, "after_chars": -1, "text": "\ud800ab"},
    {"echo": "messages", "text": "\ud800"},
    {"text": "a", "times": 10**400},
]


@asynccontextmanager
async def served() -> AsyncIterator[httpx.AsyncClient]:
    with anyio.fail_after(BOUND_S):
        async with (
            serve_demo(cadence_ms=0) as base_url,
            httpx.AsyncClient(base_url=base_url, verify=False) as client,
        ):
            yield client


def request_body(prompt: str, *, stream: bool = True) -> dict[str, object]:
    messages = [{"role": "user", "content": prompt}]
    return {"model": "candor-demo", "max_tokens": 1000, "stream": stream, "messages": messages}


def script(*steps: object) -> str:
    return f"```candor-script\n{json.dumps(list(steps))}\n```"


async def answer_of(client: httpx.AsyncClient, body: dict[str, object]) -> tuple[int, str]:
    """Return the status and all strings of the answer, as far as it came if it was cut off."""
    text = ""
    status = 0
    try:
        async with client.stream("POST", "/v1/messages", content=json.dumps(body)) as response:
            status = response.status_code
            async for line in response.aiter_lines():
                if line.startswith(("data: ", "{")):
                    text += str(json.loads(line.removeprefix("data: ")))
    except httpx.TransportError:
        pass
    return status, text


def test_chunks_join_to_the_text() -> None:
    for text in ("", "word " * 3000, "你好，世界。" * 50, "x" * 5000, " \n lead", "a你b 好c"):
        chunks = list(cut_chunks(text))
        assert "".join(chunks) == text
        assert len(chunks) <= 600


async def test_bad_requests_are_refused_in_the_apis_shape() -> None:
    async with served() as client:
        count = await client.post("/v1/messages/count_tokens", json=request_body("x" * 400))
        assert count.json()["input_tokens"] > 100
        lost = await client.post("/v1/complete", json={})
        assert (lost.status_code, lost.json()["error"]["type"]) == (404, "not_found_error")
        for body in (b"{", b"[]", b"{}", b'{"messages": []}', b"\xff", b"[" * 100_000):
            response = await client.post("/v1/messages", content=body)
            answer = response.json()
            assert response.status_code == 400
            assert (answer["type"], answer["error"]["type"]) == ("error", "invalid_request_error")
            assert answer["request_id"] == response.headers["request-id"]


async def test_lone_surrogates_and_other_odd_text_are_sent_as_valid_text() -> None:
    async with served() as client:
        for step in ODD_STEPS:
            for stream in (True, False):
                body = request_body(script(step) + "\ud800", stream=stream)
                for status, text in [await answer_of(client, body) for _ in range(2)]:
                    assert status in {0, 200, 529}, step
                    assert not any("\ud800" <= char <= "\udfff" for char in text), step
        odd = await answer_of(client, request_body(script({"text": "a\ud800b\U0001f600"})))
    assert "a\ufffdb\U0001f600" in odd[1]


async def test_leaving_cuts_streams_and_hanging_calls() -> None:
    prompts = [
        script({"hang": True}),
        script({"hang": True, "after_chars": 5}),
        script({"text": "word " * 500, "delta_delay_ms": 1000}),
        script({"text": "late", "delay_ms": 60_000}),
    ]
    cut: list[str] = []
    waiting: list[str] = []
    all_wait = anyio.Event()
    demo = create_demo_app(cadence_ms=0)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        waiting.append(scope["path"])
        if len(waiting) == len(prompts):
            all_wait.set()
        await demo(scope, receive, send)

    async def ask(base_url: str, prompt: str) -> None:
        async with httpx.AsyncClient(base_url=base_url, timeout=None, verify=False) as client:
            with pytest.raises(httpx.TransportError):
                await client.post("/v1/messages", json=request_body(prompt))
            cut.append(prompt)

    with anyio.fail_after(BOUND_S):
        listener = socket.create_server(("127.0.0.1", 0))
        base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with anyio.create_task_group() as tasks, run_server(app, listener):
            for prompt in prompts:
                tasks.start_soon(ask, base_url, prompt)
            await all_wait.wait()
    assert sorted(cut) == sorted(prompts)


async def test_a_cancelled_server_leaves_no_open_port() -> None:
    with anyio.fail_after(BOUND_S):
        base_url = ""
        with anyio.CancelScope() as scope:
            async with serve_demo() as base_url:
                scope.cancel()
                await anyio.sleep_forever()
        async with httpx.AsyncClient(base_url=base_url, verify=False) as client:
            with pytest.raises(httpx.ConnectError):
                await client.get("/")


async def test_what_the_block_raises_leaves_as_it_was() -> None:
    with anyio.fail_after(BOUND_S), pytest.raises(KeyError):
        async with serve_demo():
            raise KeyError("mine")
