"""A secret that the agent comes across reaches no client and no log: not in any event, answer or file.

What a person wrote themself is theirs: their own message is kept and shown to them as they wrote
it, for the agent was sent it so; in the log it is masked like everything.
"""

from functools import partial
from pathlib import Path
from typing import Any

import anyio

from gateway.application import create_app
from tests.service.http.client import Client
from tests.service.http.reading import streaming
from tests.support.asgi import served
from tests.support.services import running_services, script
from tests.unit.policies.fabricated import PROVIDERS, fake, key_block

KNOWN = "known-secret-4711"
"""What `running_services` says that the server knows."""
KEY = PROVIDERS["anthropic"]()
HIDDEN = [
    KEY,
    PROVIDERS["github"](),
    PROVIDERS["aws"](),
    KNOWN,
    fake(24),
    *key_block("").split("\n")[1:3],
]


def _file() -> str:
    key, github, aws, known, password, *block = HIDDEN
    lines = ["-----BEGIN PRIVATE KEY-----", *block, "-----END PRIVATE KEY-----"]
    return "\n".join(
        [f"key {key}", f"GITHUB={github}", f"{aws},{known}", f"密码：{password}", *lines]
    )


STEPS: list[dict[str, Any]] = [
    {"thinking": f"I see {KEY} and {KNOWN}"},
    {"text": f"The key is {KEY}, the other one {KNOWN}.\n密码是{HIDDEN[4]}，请保密。"},
    {"tool": "Read", "input": {"file_path": "a.txt"}},
    {"tool": "Bash", "input": {"command": f"cat missing-{KEY} {KNOWN}"}},
    {"tool": "Login", "input": {"user": "bob", "password": HIDDEN[4], "a": [{"token": HIDDEN[1]}]}},
    {"tools": [{"name": KEY, "input": {}, "id": KEY}, {"name": KNOWN, "input": {}, "id": KNOWN}]},
    {"text": f"Authorization: Bearer {HIDDEN[1]}"},
]


def assert_hidden(text: str, where: str) -> None:
    for secret in HIDDEN:
        assert secret not in text, where
        assert secret[6:20] not in text, where


async def test_no_secret_leaves_by_any_way_out(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        await anyio.Path(services.settings.workspace / "a.txt").write_text(_file())
        app = await anyio.to_thread.run_sync(partial(create_app, services))
        async with served(app) as port, _client(port) as client:
            gone = {"file_path": f"{services.settings.workspace}/gone.txt"}
            message = script({"tool": "Read", "input": gone}, *STEPS)
            async with streaming(client, message) as stream:
                events = await stream.rest()
            kinds = {event.type for event in events}
            assert {"text.delta", "tool.finished", "turn.completed"} <= kinds
            for event in events:
                assert_hidden(str(event.data), f"event {event.type}")
                assert str(tmp_path) not in str(event.data), "a path of the server"
            result = events[-1].data
            assert "…[masked]" in result["reply"]
            assert result["tools"][0]["summary"] == "gone.txt"
            assert "…[masked]" in str(
                [event.data for event in events if event.type == "tool.finished"]
            )
            await _assert_stored_nowhere(client, result)
        journal = services.settings.log_dir / result["log_file"]
        assert_hidden(await anyio.Path(journal).read_text(encoding="utf-8"), "journal")


async def _assert_stored_nowhere(client: Client, result: dict[str, Any]) -> None:
    place = f"/conversations/{result['conversation_id']}"
    log = await client.get(f"/logs/{result['log_file']}")
    assert log.status_code == 200
    assert_hidden(log.text, "log")
    told = (await client.read(f"{place}/messages"))["messages"]
    own = [entry for entry in told if entry.get("role") == "user"]
    assert KEY in str(own), "one's own message is shown as it was written"
    assert_hidden(str([entry for entry in told if entry not in own]), "messages")
    for path in ("/logs", "/readyz", "/metrics", "/approvals"):
        assert_hidden((await client.get(path)).text, path)


def _client(port: int) -> Client:
    return Client(base_url=f"http://127.0.0.1:{port}", timeout=20, trust_env=False, verify=False)


async def test_an_error_never_repeats_what_was_sent(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        app = await anyio.to_thread.run_sync(partial(create_app, services))
        async with served(app) as port, _client(port) as client:
            answers = [
                await client.post("/chat", json={"message": 7, "conversation_id": KEY}),
                await client.post("/chat", json={"message": "a", "conversation_id": KEY}),
                await client.post("/chat", json={"message": "a", "when_busy": KEY}),
                await client.get(f"/conversations/{KEY}"),
                await client.get("/logs", params={"cursor": KEY}),
                await client.get(f"/{KEY}", params={"token": KEY}),
                await client.get("/conversations", headers={"Authorization": f"Bearer {KEY}"}),
            ]
        for answer in answers:
            assert KEY not in answer.text
            assert KEY not in str(answer.headers)
