"""A model's service that fails, met by the real agent process: told while it fails, waited out or given up.

The server runs as it does for people, `python app.py`, on a service that counts what it is asked.
"""

import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.demo.server import create_demo_app, run_server
from tests.support.live_server import (
    LiveServer,
    script,
    started_server,
)

pytestmark = pytest.mark.e2e

KEY = "sk-ant-api03-" + "k7Qz" * 22 + "AA"
RETRIES = 2
NOT_FOR_PEOPLE = ("API Error", "{", "scripted", "Invalid API key", "Please run", "issue with")


@dataclass(slots=True)
class Service:
    """The demo model with its calls counted."""

    app: ASGIApp = field(default_factory=lambda: create_demo_app(cadence_ms=0))
    calls: int = 0
    keys: set[str] = field(default_factory=set)
    url: str = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == "/v1/messages":
            self.calls += 1
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            self.keys.add(headers.get("x-api-key", ""))
        await self.app(scope, receive, send)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    service = Service()
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(run_server(service, listener)),
    ):
        service.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        yield service


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, service: Service) -> Iterator[LiveServer]:
    with started_server(
        tmp_path_factory.mktemp("model"),
        command=None,
        model="candor-demo",
        environ={
            "ANTHROPIC_BASE_URL": service.url,
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_MAX_RETRIES": str(RETRIES),
        },
    ) as server:
        yield server


@pytest.fixture(scope="module")
def conversation(server: LiveServer) -> str:
    """Return the one conversation of these tests: after each failure it goes on."""
    return server.new_conversation()


async def ask(
    server: LiveServer, conversation: str | None, message: str
) -> tuple[dict[str, Any], list[str]]:
    """Ask, and give the result and the types of the turn's events, what memory says of itself apart."""
    async with server.client() as client:
        async with client.stream(message, conversation) as events:
            told = await events.rest()
        result = told[-1].data
        assert not any(item in result["reply"] for item in NOT_FOR_PEOPLE)
        assert KEY not in str(told)
        assert KEY not in server.journal_text(result)
        return result, [item.type for item in told if item.type != "memory.injected"]


def notices(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [(notice["code"], notice["message"]) for notice in result["notices"]]


async def test_any_messages_api_can_be_the_model(
    server: LiveServer, service: Service, conversation: str | None
) -> None:
    result, _ = await ask(server, conversation, script({"text": "From afar."}))
    assert (result["outcome"], result["reply"]) == ("answered", "From afar.")
    assert service.keys == {KEY}
    assert server.said().startswith("Candor talks to the model of ANTHROPIC_API_KEY.")
    assert "demo" not in server.said()
    async with server.client() as client:
        ready = await client.get("/readyz")
    assert (ready["ready"], ready["demo"], ready["model"]) == (True, False, "candor-demo")


HOPELESS = {
    400: "The model's service refused the request as malformed (400).",
    401: "The model's service did not accept the credentials (401). Check ANTHROPIC_API_KEY",
}


@pytest.mark.parametrize("status", HOPELESS)
async def test_what_waiting_cannot_help_is_given_up_at_once(
    server: LiveServer, service: Service, conversation: str | None, status: int
) -> None:
    """By itself the agent asks again after 401 and 403 for three minutes, in growing pauses.

    Before the first pause it varies a request that was refused as malformed, at once; that is all.
    """
    before = service.calls
    steps = ({"status": status, "times": 50}, {"text": "never said"})
    result, types = await ask(server, conversation, script(*steps))
    asked = service.calls - before
    assert (result["outcome"], result["stop_reason"]) == ("engine_failed", "api_error")
    assert result["reply"].startswith(HOPELESS[status])
    assert notices(result) == []
    assert types == ["turn.started", "turn.completed"]
    assert asked <= (6 if status == 400 else 2)
    before = service.calls
    result, _ = await ask(server, conversation, script({"text": "Back.", "delay_ms": 700}))
    assert result["reply"] == "Back."
    assert service.calls == before + 1, "the request that was given up was made again"


async def test_an_overload_is_told_while_it_lasts_and_waited_out(
    server: LiveServer, service: Service, conversation: str | None
) -> None:
    before = service.calls
    result, types = await ask(
        server, conversation, script({"status": 529, "times": 2}, {"text": "After all."})
    )
    assert (result["outcome"], result["stop_reason"]) == ("answered", "end_turn")
    assert result["reply"] == "After all."
    assert service.calls == before + 3
    assert types[:3] == ["turn.started", "notice", "notice"]
    assert types.index("text.delta") == 3
    for attempt, (code, message) in enumerate(notices(result), start=1):
        assert code == "model_retrying"
        told = rf"The model's service failed \(529, overloaded\); attempt {attempt} follows in \d+\.\d s\."
        assert re.fullmatch(told, message)


CREDIT = "Your credit balance is too low to access the Anthropic API."
TOO_LONG = "prompt is too long: 215000 tokens > 200000 maximum"


@pytest.mark.parametrize(
    ("message", "stop_reason", "sentence"),
    [
        (CREDIT, "api_error", "The account of the model's service has no credit"),
        (TOO_LONG, "context_window", "The conversation with this message is longer"),
    ],
    ids=["credit", "length"],
)
async def test_a_refusal_with_a_known_reason_has_its_own_sentence(
    server: LiveServer, conversation: str | None, message: str, stop_reason: str, sentence: str
) -> None:
    step = {"status": 400, "message": message, "times": 50}
    result, _ = await ask(server, conversation, script(step))
    assert (result["outcome"], result["stop_reason"]) == ("engine_failed", stop_reason)
    assert result["reply"].startswith(sentence)


@pytest.mark.parametrize(
    ("step", "outcome", "stop_reason", "code", "reply"),
    [
        (
            {"stop_reason": "model_context_window_exceeded", "text": "So far."},
            *("answered", "context_window", ["context_window"], "So far."),
        ),
        (
            {"stop_reason": "model_context_window_exceeded", "empty": True},
            *("engine_failed", "context_window", []),
            "The conversation has filled the model's context window",
        ),
        (
            {"stop_reason": "pause_turn", "text": "A moment."},
            *("answered", "end_turn", ["pause_turn"], "A moment."),
        ),
        (
            {"stop_reason": "pause_turn", "empty": True},
            *("empty", "end_turn", [], "The model paused before it was finished."),
        ),
        (
            {"stop_reason": "a_new_reason", "text": "Well."},
            *("answered", "end_turn", ["unknown_stop_reason"], "Well."),
        ),
    ],
    ids=["full with text", "full without", "paused with text", "paused without", "unknown"],
)
async def test_why_the_model_stopped_is_told(
    server: LiveServer,
    conversation: str | None,
    step: dict[str, Any],
    outcome: str,
    stop_reason: str,
    code: list[str],
    reply: str,
) -> None:
    result, _ = await ask(server, conversation, script({**step, "times": 9}))
    assert (result["outcome"], result["stop_reason"]) == (outcome, stop_reason)
    assert [one for one, _ in notices(result)] == code
    assert result["reply"].startswith(reply)
