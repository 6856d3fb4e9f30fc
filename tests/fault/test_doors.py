"""The doors under load, with clients that vanish, and with a server that stops, dies and comes back."""

import json
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx
import httpx2
import pytest
from anyio.abc import TaskStatus
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.support.live_server import DEADLINE_S, LiveServer, running_server, script

pytestmark = pytest.mark.fault

Json = Any
WORDS = " ".join(f"word{number}" for number in range(60))
SPOKEN = script({"text": WORDS, "delta_delay_ms": 40})
ENDLESS = {"text": "word " * 2000, "delta_delay_ms": 100}
DONE = "[DONE]"
TEXT = "TEXT_MESSAGE_CONTENT"


class Stream:
    """The events of one response: what stands behind `data:`."""

    def __init__(self, response: httpx.Response) -> None:
        self.seen: list[Json] = []
        self.last_id = ""
        self.response = response
        self._lines = response.aiter_lines()

    async def until(self, fits: Callable[[Json], bool]) -> Json:
        """Read on to the next event that fits."""
        async for line in self._lines:
            name, _, text = line.partition(": ")
            if name == "id":
                self.last_id = text
            if name == "data":
                self.seen.append(event := DONE if text == DONE else json.loads(text))
                if fits(event):
                    return event
        raise EOFError(f"the stream ended: {self.seen[-2:]}")

    async def rest(self) -> list[Json]:
        """Read to the end; the connection may break."""
        try:
            await self.until(lambda _: False)
        except (EOFError, httpx.RemoteProtocolError, httpx.ReadError):
            return self.seen
        raise AssertionError


@asynccontextmanager
async def open_stream(
    http: httpx.AsyncClient, method: str, path: str, body: Json = None, **headers: str
) -> AsyncIterator[Stream]:
    async with http.stream(method, path, json=body, headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        yield Stream(response)


def completion(message: str) -> Json:
    return {"model": "candor", "stream": True, "messages": [{"role": "user", "content": message}]}


def run(message: str, name: str = "run") -> Json:
    said = {"id": "m", "role": "user", "content": message}
    return {"threadId": name, "runId": name, "messages": [said]}


def says(message: str) -> Json:
    return {"type": "user.message", "content": [{"type": "text", "text": message}]}


async def post(http: httpx.AsyncClient, path: str, body: Json) -> Json:
    answer = await http.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def new_session(http: httpx.AsyncClient) -> str:
    agent = await post(http, "/anthropic/v1/agents", {"name": "a", "model": "candor"})
    place = await post(http, "/anthropic/v1/environments", {"name": "e"})
    names = {"agent": agent["id"], "environment_id": place["id"]}
    return str((await post(http, "/anthropic/v1/sessions", names))["id"])


async def response_in_background(http: httpx.AsyncClient, message: str) -> str:
    body = {"model": "candor", "input": message, "background": True}
    return str((await post(http, "/openai/v1/responses", body))["id"])


def text_of(events: Sequence[Json]) -> str:
    """Return the text that a stream of any door showed."""
    found = []
    for event in events:
        if event != DONE and event.get("object") == "chat.completion.chunk":
            found += [choice["delta"].get("content") or "" for choice in event["choices"]]
        elif event != DONE and event.get("type") in {"response.output_text.delta", TEXT}:
            found.append(event["delta"])
        elif event != DONE and event.get("type") == "agent.message":
            found += [part["text"] for part in event["content"]]
    return "".join(found)


def is_text(event: Json) -> bool:
    return bool(text_of([event]))


def is_idle(event: Json) -> bool:
    return bool(event["type"] == "session.status_idle")


def told(session: Sequence[Json]) -> list[Json]:
    """Return the events of a session without previews."""
    return [event for event in session if not event["type"].startswith("event_")]


class Crowd:
    """Clients that read at the same time."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self.texts: list[str] = []
        self.gone = 0

    async def read(
        self,
        *request: Json,
        task_status: TaskStatus[None],
        vanishes: bool = False,
        until: Callable[[Json], bool] = lambda _: False,
        **headers: str,
    ) -> None:
        """Read one stream, to its end or into its midst."""
        async with open_stream(self._http, *request, **headers) as stream:
            task_status.started()
            if vanishes:
                await stream.until(is_text)
                self.gone += 1
                return
            with suppress(EOFError):
                await stream.until(until)
            self.texts.append(text_of(stream.seen))

    async def search(self, server: LiveServer) -> None:
        """Ask memory."""
        async with httpx2.AsyncClient(timeout=DEADLINE_S, trust_env=False) as http:
            transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
            async with Client(transport, cache=None) as client:
                found = await client.call_tool("memory_search", {"query": "word1"})
                assert not found.is_error


async def test_fifty_clients_at_once_get_all_of_it_though_some_of_them_vanish(
    tmp_path: Path,
) -> None:
    """Ten at each door that streams and ten at memory's, on five conversations."""
    again = {"x-stainless-retry-count": "1"}  # the same request is the same turn
    async with running_server(tmp_path, max_live_clients=4, demo_cadence_ms=0) as server:
        async with server.client() as candor, anyio.create_task_group() as tasks:
            crowd = Crowd(candor.http)
            session = f"/anthropic/v1/sessions/{await new_session(candor.http)}/events"
            streamed = partial(crowd.read, "GET", f"{session}/stream", until=is_idle)
            name = await response_in_background(candor.http, SPOKEN)
            response = partial(crowd.read, "GET", f"/openai/v1/responses/{name}?stream=true")
            for door in (streamed, response, partial(crowd.read, "POST", "/ag-ui", run(SPOKEN))):
                for number in range(10):
                    await tasks.start(partial(door, vanishes=number == 1))
            await post(candor.http, session, {"events": [says(SPOKEN)]})
            for body in (completion(SPOKEN), {**completion(SPOKEN), "seed": 2}):
                ask = partial(crowd.read, "POST", "/openai/v1/chat/completions", body)
                await tasks.start(ask)
                for number in range(4):
                    await tasks.start(partial(ask, vanishes=number == 1, **again))
            for _ in range(10):
                tasks.start_soon(crowd.search, server)
        async with server.client() as candor:
            listed = (await candor.get("/conversations"))["conversations"]
            while "candor_sse_readers 0.0" not in (await candor.http.get("/metrics")).text:  # noqa: ASYNC110
                await anyio.sleep(0.05)
    assert crowd.texts == [WORDS] * 35
    assert crowd.gone == 5
    assert [one["turns"] for one in listed] == [1] * 5


async def test_a_stopped_server_ends_each_stream_in_its_own_error_and_the_next_goes_on(
    tmp_path: Path,
) -> None:
    async with running_server(tmp_path, shutdown_grace_s=0) as server, server.client() as candor:
        async with four_streams(candor.http, "first") as streams:
            server.signal(signal.SIGTERM)
            chat, response, agent_run, session = [await stream.rest() for stream in streams]
        assert await server.wait_ended() == 0
    assert chat[-1]["error"]["code"] == "shutdown"
    assert response[-1]["type"] == "response.failed"
    assert response[-1]["response"]["error"]["type"] == "shutdown"
    assert (agent_run[-1]["type"], agent_run[-1]["code"]) == ("RUN_ERROR", "shutdown")
    assert session[-1]["error"]["type"] == "overloaded_error"
    async with running_server(tmp_path) as server, server.client() as candor:
        http = candor.http
        assert await resumed(http, response[:5]) == response[5:]
        await Crowd(http).search(server)
        async with open_stream(http, "POST", "/ag-ui", run(script(ENDLESS), "first")) as stream:
            assert await stream.rest() == agent_run
        session_id = streams[3].response.url.path.split("/")[4]
        listed = await candor.get(f"/anthropic/v1/sessions/{session_id}/events")
        assert listed["data"] == told(session[:-1])
        more = completion(script({"text": "Next."}))
        more["messages"] = [*completion(script(ENDLESS))["messages"], *more["messages"]]
        more["messages"].insert(1, {"role": "assistant", "content": text_of(chat)})
        async with open_stream(http, "POST", "/openai/v1/chat/completions", more) as stream:
            assert text_of(await stream.rest()) == "Next."
            place = "x-candor-conversation"
            assert stream.response.headers[place] == streams[0].response.headers[place]


async def test_what_a_killed_server_leaves_open_is_read_to_its_end_at_the_next_one(
    tmp_path: Path,
) -> None:
    async with (
        running_server(tmp_path) as server,
        server.client() as candor,
        four_streams(candor.http, "second") as streams,
    ):
        await anyio.to_thread.run_sync(server.kill)
        chat, response, agent_run, session = [await stream.rest() for stream in streams]
    assert DONE not in chat
    async with running_server(tmp_path) as server, server.client() as candor:
        http = candor.http
        rest = await resumed(http, response)
        numbers = [event["sequence_number"] for event in [*response, *rest]]
        assert numbers == list(range(len(numbers)))
        assert rest[-1]["response"]["error"]["type"] == "engine_crash"
        async with open_stream(http, "POST", "/ag-ui", run(script(ENDLESS), "second")) as stream:
            whole = await stream.rest()
        assert whole[: len(agent_run)] == agent_run
        assert (whole[-1]["type"], whole[-1]["code"]) == ("RUN_ERROR", "engine_crash")
        path, seen = streams[3].response.url.path, {"Last-Event-ID": streams[3].last_id}
        async with open_stream(http, "GET", path, **seen) as stream:
            await stream.until(is_idle)
        listed = await candor.get(path.removesuffix("/stream"))
        assert listed["data"] == [*told(session), *stream.seen]
        assert [event["type"] for event in stream.seen] == [
            "agent.message",
            "session.error",
            "session.status_idle",
        ]


@asynccontextmanager
async def four_streams(http: httpx.AsyncClient, name: str) -> AsyncIterator[list[Stream]]:
    """Open a stream at each door, and read each into its midst."""
    session = f"/anthropic/v1/sessions/{await new_session(http)}/events"
    response = await response_in_background(http, script(ENDLESS))
    requests: list[Any] = [
        ("POST", "/openai/v1/chat/completions", completion(script(ENDLESS))),
        ("GET", f"/openai/v1/responses/{response}?stream=true"),
        ("POST", "/ag-ui", run(script(ENDLESS), name)),
        ("GET", f"{session}/stream?event_deltas[]=agent.message"),
    ]
    async with AsyncExitStack() as stack:
        streams = [
            await stack.enter_async_context(open_stream(http, *request)) for request in requests
        ]
        await post(http, session, {"events": [says(script(ENDLESS))]})
        for stream in streams[:3]:
            await stream.until(is_text)
        await streams[3].until(lambda event: event["type"] == "event_delta")
        yield streams


async def resumed(http: httpx.AsyncClient, seen: Sequence[Json]) -> list[Json]:
    """Read a response on behind what was seen of it."""
    path = f"/openai/v1/responses/{seen[0]['response']['id']}"
    query = f"?stream=true&starting_after={seen[-1]['sequence_number']}"
    async with open_stream(http, "GET", path + query) as stream:
        return await stream.rest()
