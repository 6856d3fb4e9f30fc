"""What public reports of similar systems tell, tried through the real agent process; each test names its report."""

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from gateway.demo.server import run_server
from tests.support.live_server import LiveServer, bash, running_server, script
from tests.support.raw_model import MESSAGE

pytestmark = pytest.mark.e2e

CALLS = [
    {"name": "Bash", "input": {"command": "mkdir unseen"}},
    {"name": "Bash", "input": {"command": "mkdir behind"}},
]
"""The second one stands behind the first, about which a person is asked."""
EMPTY = {"type": "text_delta", "text": ""}
SIGNS_OF_LIFE = (
    ": keepalive\n\n",
    'event: ping\ndata: {"type": "ping"}\n\n',
    'event: heartbeat\ndata: {"type": "heartbeat", "at": 7}\n\n',
    f"data: {json.dumps({'type': 'content_block_delta', 'index': 0, 'delta': EMPTY})}\n\n",
    "data:\n\n",
)


@asynccontextmanager
async def stalled_model() -> AsyncIterator[str]:
    """Serve a model that begins an answer and then sends nothing but signs of life, for ever."""
    begin = {"type": "text", "text": ""}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": MESSAGE},
        {"type": "content_block_start", "index": 0, "content_block": begin},
    ]

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        await request.body()
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        told = [f"data: {json.dumps(event)}\n\n" for event in events]
        while not await request.is_disconnected():
            for piece in told or SIGNS_OF_LIFE:
                body = {"type": "http.response.body", "body": piece.encode(), "more_body": True}
                await send(body)
                await anyio.sleep(0.05)
            told = []

    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with run_server(answer, listener):
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"


async def test_signs_of_life_do_not_hide_that_the_model_has_stalled(tmp_path: Path) -> None:
    """https://github.com/aaif-goose/goose/issues/11679"""
    async with stalled_model() as url:
        environ = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none"}
        options = {"command": None, "environ": environ, "model_silence_s": 2}
        async with running_server(tmp_path, **options) as server, server.client() as client:
            result = await client.ask("Hello.")
    assert (result["outcome"], result["stop_reason"]) == ("engine_failed", "model_timeout")


async def test_a_call_that_was_never_allowed_is_not_told_as_uncertain(tmp_path: Path) -> None:
    """https://github.com/can1357/oh-my-pi/issues/7729: another message while a person is asked."""
    async with running_server(tmp_path, approvals="on") as server, server.client() as client:
        conversation = server.new_conversation()
        async with client.stream(script({"tools": CALLS}), conversation) as events:
            await events.until("approval.requested")
            message = script({"echo": "messages"})
            later = await client.ask(message, conversation, when_busy="interrupt")
            result = (await events.until("turn.completed")).data
    reason = "the run ended before it was allowed, so it did not run"
    told = [(use["status"], use["error"]) for use in result["tools"]]
    assert told == [("interrupted", reason)] * 2
    assert f"Bash: mkdir unseen was interrupted: {reason}" in result["reply"]
    assert "what it did is not certain" not in later["reply"]
    assert not (server.workspace / "unseen").exists()


async def test_a_denial_carries_the_words_of_the_person_and_no_empty_ones(
    asking_server: LiveServer, asking_conversation: str
) -> None:
    """https://github.com/siteboon/claudecodeui/issues/1350"""
    message = script(bash("mkdir refused"), {"echo": "messages"})
    said = 'Better "archive/"\n用归档'
    replies = []
    async with asking_server.client() as client:
        for words in (said, " \n"):
            async with client.stream(message, asking_conversation) as events:
                asked = (await events.until("approval.requested")).data
                path = f"/approvals/{asked['approval_id']}"
                await client.post(path, decision="deny", message=words)
                replies.append((await events.until("turn.completed")).data["reply"])
    denied = "A person was asked and denied this call."
    assert json.dumps(f"{denied} They said: {said}", ensure_ascii=False) in replies[0]
    assert json.dumps(denied) in replies[1]


async def test_a_reply_that_leaves_a_block_open_does_not_swallow_the_rest_of_the_export(
    server: LiveServer,
) -> None:
    """https://github.com/Nano-Collective/nanocoder/issues/1347"""
    async with server.client() as client:
        first = await client.ask(script({"text": "Look:\n````md\n```sh\nls\n```"}))
        conversation = first["conversation_id"]
        await client.ask(script({"text": "A comment:\n\n<!-- to do"}), conversation)
        path = f"/conversations/{conversation}/export?format=markdown"
        exported = (await client.http.get(path)).text
    assert "````md\n```sh\nls\n```\n````\n\n*answered" in exported
    assert "<!-- to do\n-->\n\n*answered" in exported
