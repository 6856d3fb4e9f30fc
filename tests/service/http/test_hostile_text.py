"""Ordinary and hostile text in every field of every route keeps the event loop for a moment only."""

import gc
import json
from base64 import b64encode
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from urllib.parse import quote

import anyio
import anyio.from_thread
import anyio.to_thread
import httpx
import pytest

from gateway.application import create_app
from tests.service.http.every_route import BODIES, QUERIES, UNKNOWN, body_of
from tests.support.asgi import served
from tests.support.hostile_text import UNITS, text_of
from tests.support.loop_heartbeat import Heartbeat, most_s
from tests.support.services import running_services
from tests.support.text_fields import TextField, text_fields, with_text

MAX_BODY_BYTES = 1_000_000
"""A little less than a body may have."""
MAX_ADDRESS_BYTES = 20_000
LONGEST_CHARS = 1_000_000
MANY_CHARS = 6_000
TIMEOUT_S = 60
ENDLESS = {
    "/conversations/{conversation_id}/events",
    "/anthropic/v1/sessions/{conversation_id}/events/stream",
}


@dataclass(frozen=True, slots=True)
class Live:
    """A server on a loop of another thread."""

    client: httpx.Client
    fields: list[TextField]
    ids: dict[str, str]
    portal: anyio.from_thread.BlockingPortal
    heartbeat: Heartbeat
    bound_s: float

    def longest_s(self) -> float:
        """Return how long the loop computed at most since the last call."""
        return self.portal.call(self.heartbeat.longest_s)

    def send(self, field: TextField, text: str) -> int:
        """Send a request with a text in one field; return the status."""
        ids, params = {**UNKNOWN, **self.ids}, dict(QUERIES.get(field.template, {}))
        content = b""
        if field.place == "path":
            ids[str(field.steps[0])] = quote(text, safe="")
        elif field.place == "query":
            params[str(field.steps[0])] = text
        else:
            body = with_text(body_of(field.template, ids), field, text)
            content = json.dumps(body, ensure_ascii=False).encode()
        headers = {"Content-Length": str(len(content))}
        if content:
            headers["Content-Type"] = "application/json"
        request = self.client.build_request(
            field.method,
            field.template.format(**ids),
            params=params,
            content=iter([content]),
            headers=headers,
        )
        del content  # the sent text would be garbage that the loop collects
        response = self.client.send(request, stream=True)
        if field.template not in ENDLESS:
            response.read()
        response.close()
        return response.status_code


@asynccontextmanager
async def serving(directory: Path) -> AsyncIterator[tuple[str, Heartbeat]]:
    """Run the gateway with a heartbeat on its loop."""
    heartbeat = Heartbeat()
    async with running_services(directory) as services, anyio.create_task_group() as tasks:
        app = await anyio.to_thread.run_sync(partial(create_app, services))
        async with served(app) as port:
            tasks.start_soon(heartbeat.run)
            yield f"http://127.0.0.1:{port}", heartbeat
            tasks.cancel_scope.cancel()


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    directory = tmp_path_factory.mktemp("hostile")
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serving(directory)) as (url, heartbeat),
        httpx.Client(base_url=url, timeout=TIMEOUT_S, trust_env=False) as client,
    ):
        description = client.get("/openapi.json").json()
        fields = list(text_fields(description, BODIES))
        done = client.post("/chat", json={"message": "hi"}).json()
        case = client.post("/memory/cases", json=BODIES["/memory/cases"]).json()
        ids = {name: done[name] for name in ("conversation_id", "turn_id", "log_file")}
        gc.collect()
        gc.freeze()  # as the server does
        yield Live(client, fields, {**ids, "case_id": case["case_id"]}, portal, heartbeat, most_s())
        gc.unfreeze()


def fitting_text(field: TextField, unit: str, chars: int) -> str:
    """Return a text of a shape, as long as wanted unless its field or its place in the request takes less."""
    if field.place == "body":
        unit_bytes = len(json.dumps(unit, ensure_ascii=False).encode()) - 2
        max_bytes = MAX_BODY_BYTES
    else:
        unit_bytes, max_bytes = len(quote(unit, safe="")), MAX_ADDRESS_BYTES
    fitting = max_bytes // field.copies * len(unit) // unit_bytes
    return text_of(unit, min(field.max_chars, fitting, chars))


def blocked(live: Live, field: TextField, units: Iterable[str], chars: int) -> dict[str, float]:
    """Send texts in a field; return those that kept the loop too long, with the seconds."""
    took: dict[str, float] = {}
    for name in units:
        live.longest_s()
        live.send(field, fitting_text(field, UNITS[name], chars))
        longest_s = live.longest_s()
        if longest_s > live.bound_s:
            took[f"{field}: {name}"] = longest_s
    return took


def test_long_text_of_some_shape_in_any_field_leaves_the_loop_free(live: Live) -> None:
    """Each shape is in some field; `make soak` tries each in each."""
    found: dict[str, float] = {}
    for field, name in zip(live.fields, cycle(UNITS), strict=False):
        found |= blocked(live, field, [name], LONGEST_CHARS)
    assert found == {}, live.bound_s


def test_text_of_any_shape_in_a_long_field_leaves_the_loop_free(live: Live) -> None:
    """Enough for what grows faster than its text; of fields of one object that take as much, in the first."""
    long = [field for field in live.fields if field.place == "body" and field.chars > MANY_CHARS]
    firsts = {(field.template, field.steps[:-1], field.max_chars): field for field in long[::-1]}
    assert ("/chat", (), 200_000) in firsts
    found: dict[str, float] = {}
    for field in firsts.values():
        found |= blocked(live, field, UNITS, MANY_CHARS)
    assert found == {}, live.bound_s


PICTURE = f"data:image/png;base64,{b64encode(bytes(3_000_000)).decode()}"
SHOWN = [{"type": "image_url", "image_url": {"url": PICTURE}}] * 5
LAST = {"role": "assistant", "content": "很长 long " * 30_000}
"""So long that no history is quoted in the message, which is as short as another one then."""
TOLD = [*({"role": "user", "content": "很长 long " * 300} for _ in range(5000)), LAST]
ASKED = {"role": "user", "content": "hi"}
PARTS = {"role": "user", "content": [{"type": "text"}] * 100_000}
LARGE = {
    "pictures": (
        "/openai/v1/chat/completions",
        {"model": "candor", "messages": [{"role": "user", "content": SHOWN}]},
    ),
    "history": (
        "/openai/v1/chat/completions",
        {"model": "candor", "messages": [*TOLD, ASKED]},
    ),
    "input": ("/openai/v1/responses", {"input": [*TOLD, ASKED]}),
    "thread": ("/ag-ui", {"threadId": "t", "runId": "long", "messages": [*TOLD, ASKED]}),
    "parts": ("/ag-ui", {"threadId": "t", "runId": "parts", "messages": [PARTS, LAST, ASKED]}),
}


@pytest.mark.parametrize("name", LARGE)
def test_what_a_client_sends_with_its_message_leaves_the_loop_free(live: Live, name: str) -> None:
    path, body = LARGE[name]
    content = json.dumps(body, ensure_ascii=False).encode()
    live.longest_s()
    answer = live.client.post(path, content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200, answer.text
    assert live.longest_s() < live.bound_s


def test_a_long_reply_that_a_client_sends_back_leaves_the_loop_free(live: Live) -> None:
    path, said = "/openai/v1/chat/completions", {"role": "user", "content": "说长一点"}
    assert live.client.post(path, json={"model": "candor", "messages": [said]}).status_code == 200
    reply = {"role": "assistant", "content": "a " * 5_000_000}
    content = json.dumps({"model": "candor", "messages": [said, reply, ASKED]}).encode()
    live.longest_s()
    answer = live.client.post(path, content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200, answer.text
    assert live.longest_s() < live.bound_s


@pytest.mark.soak
def test_long_text_of_any_shape_in_any_field_leaves_the_loop_free(live: Live) -> None:
    found: dict[str, float] = {}
    for field in live.fields:
        found |= blocked(live, field, UNITS, LONGEST_CHARS)
    assert found == {}, live.bound_s
