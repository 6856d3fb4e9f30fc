"""A person's login on this machine still reaches the model, though the agent has a HOME of its own."""

import json
import socket
from pathlib import Path

import anyio
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.credentials import find_credential, find_login_dir
from gateway.demo.server import create_demo_app, run_server
from tests.support.engine_talk import ask, script
from tests.support.engine_world import real_world

pytestmark = pytest.mark.e2e

TOKEN = "sk-ant-oat01-of-a-person"
FAR_AWAY_MS = 4_000_000_000_000


class Keys:
    """The demo model, with the authorisation that each request came with."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.seen: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode(): value.decode() for name, value in scope.get("headers", [])}
        self.seen.add(headers.get("authorization") or headers.get("x-api-key") or "")
        await self.app(scope, receive, send)


def log_in(home: Path) -> Path:
    login = home / ".claude"
    login.mkdir(parents=True)
    token = {
        "accessToken": TOKEN,
        "refreshToken": "sk-ant-ort01-of-a-person",
        "expiresAt": FAR_AWAY_MS,
        "scopes": ["user:inference", "user:profile"],
    }
    (login / ".credentials.json").write_text(json.dumps({"claudeAiOauth": token}), encoding="utf-8")
    return login


async def test_a_login_is_used_from_where_it_is_kept(tmp_path: Path) -> None:
    person = tmp_path / "person"
    login = await anyio.to_thread.run_sync(log_in, person)
    assert await anyio.to_thread.run_sync(find_login_dir, {}, person) == login
    assert (await anyio.to_thread.run_sync(find_credential, {}, person)).kind == "login"
    model = Keys(create_demo_app(cadence_ms=0))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with (
            run_server(model, listener),
            real_world(
                tmp_path,
                takes_login=True,
                config_dir=login,
                home=tmp_path / "data",
                model_env={"ANTHROPIC_BASE_URL": url},
            ) as world,
        ):
            told = await ask(await world.connect(), script({"text": "Known."}))
    assert told.text == "Known."
    assert model.seen == {f"Bearer {TOKEN}"}
