"""The vendors' own clients for JavaScript and the official library of ACP, unchanged, on the real server."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from tests.support.live_server import LiveServer, bash, script
from tests.support.npm_clients import NpmClient, needs_npm, npm_client
from tests.support.program import ROOT

pytestmark = [pytest.mark.e2e, needs_npm]


def openai(server: LiveServer) -> AbstractAsyncContextManager[NpmClient]:
    return npm_client("call.mjs", "openai/index.mjs", f"{server.url}/openai/v1")


async def value(client: NpmClient, path: str, *args: Any, **more: Any) -> Any:
    """Call a method and give what it returned."""
    told = await client.do(path=path, args=args, **more)
    assert "error" not in told, told
    return told["value"]


def types(events: Sequence[Mapping[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


async def test_openais_client_reads_a_completion_whole_and_as_a_stream(server: LiveServer) -> None:
    steps = script({"text": "Hello 你好."})
    body = {"model": "candor", "messages": [{"role": "user", "content": steps}]}
    async with openai(server) as client:
        whole = await value(client, "chat.completions.create", body)
        chunks = await value(client, "chat.completions.create", {**body, "stream": True})
    assert whole["choices"][0]["message"]["content"] == "Hello 你好."
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    assert "".join(delta.get("content") or "" for delta in deltas) == "Hello 你好."
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"


async def test_openais_client_goes_on_reading_a_response_where_it_broke_off(
    server: LiveServer,
) -> None:
    body = {"model": "candor", "background": True, "stream": True}
    body["input"] = script({"text": "One.", "delay_ms": 500}, {"text": "Two."})
    async with openai(server) as client:
        begun = await value(client, "responses.create", body, until="response.in_progress")
        name, last = begun[0]["response"]["id"], begun[-1]["sequence_number"]
        after = {"stream": True, "starting_after": last}
        rest = await value(client, "responses.retrieve", name, after)
        final = await value(client, "responses.retrieve", name)
    numbers = [event["sequence_number"] for event in [*begun, *rest]]
    assert numbers == list(range(len(numbers)))
    assert rest[-1]["type"] == "response.completed"
    assert rest[-1]["response"]["output"] == final["output"]


async def test_openais_client_raises_its_own_errors_and_repeats_nothing_in_vain(
    server: LiveServer,
) -> None:
    failing = script({"status": 400, "times": 50})
    body = {"model": "candor", "messages": [{"role": "user", "content": failing}]}
    async with openai(server) as client:
        unknown = await client.do(path="responses.retrieve", args=["resp_x"])
        failed = await client.do(path="chat.completions.create", args=[body])
        invalid = await client.do(path="chat.completions.create", args=[{**body, "messages": []}])
    told = [(one["error"]["name"], one["error"]["status"]) for one in (unknown, failed, invalid)]
    assert told == [
        ("NotFoundError", 404),
        ("InternalServerError", 502),
        ("UnprocessableEntityError", 422),
    ]
    assert failed["error"]["code"] == "api_error"
    assert "refused the request as malformed" in failed["error"]["message"]
    assert [one["requests"] for one in (unknown, failed, invalid)] == [1, 1, 1]


async def test_anthropics_client_sends_streams_lists_answers_and_interrupts(
    asking_server: LiveServer,
) -> None:
    place = f"{asking_server.url}/anthropic"
    async with npm_client("call.mjs", "@anthropic-ai/sdk/index.mjs", place) as client:
        agent = await value(client, "beta.agents.create", {"name": "Ada", "model": "candor"})
        where = await value(client, "beta.environments.create", {"name": "here"})
        names = {"agent": agent["id"], "environment_id": where["id"]}
        session = (await value(client, "beta.sessions.create", names))["id"]

        async def told(until: str, *events: Any) -> list[Any]:
            sent = {"path": "beta.sessions.events.send", "args": [session, {"events": events}]}
            stream = "beta.sessions.events.stream"
            found = await value(client, stream, session, {}, until=until, meanwhile=sent)
            assert isinstance(found, list)
            return found

        steps = script({"text": "Look:", **bash("mkdir by_script")}, {"text": "Made."})
        asked = await told("session.status_idle", says(steps))
        assert types(asked) == [
            "user.message",
            "session.status_running",
            "agent.message",
            "agent.tool_use",
            "session.status_idle",
        ]
        (call,) = asked[-1]["stop_reason"]["event_ids"]
        answer = {"type": "user.tool_confirmation", "tool_use_id": call, "result": "allow"}
        done = await told("session.status_idle", answer)
        assert [*types(done)[:2], *types(done)[-2:]] == [
            "user.tool_confirmation",
            "session.status_running",
            "agent.message",
            "session.status_idle",
        ]
        assert (asking_server.workspace / "by_script").is_dir()
        slow = await told(
            "session.status_running", says(script({"text": "no", "delay_ms": 50_000}))
        )
        stopped = await told("session.status_idle", {"type": "user.interrupt"})
        assert "user.interrupt" in types(stopped)
        listed = await value(client, "beta.sessions.events.list", session, {"limit": 3})
        assert [event["id"] for event in listed] == [
            event["id"] for event in [*asked, *done, *slow, *stopped]
        ]
        again = await client.do(
            path="beta.sessions.events.send", args=[session, {"events": [answer]}]
        )
        assert (again["error"]["name"], again["requests"]) == ("BadRequestError", 1)
        assert again["error"]["type"] == "invalid_request_error"


def says(text: str) -> Any:
    return {"type": "user.message", "content": [{"type": "text", "text": text}]}


async def test_an_editor_on_the_official_library_prompts_answers_cancels_and_loads(
    asking_server: LiveServer,
) -> None:
    workspace = str(asking_server.workspace)
    library = "@agentclientprotocol/sdk/dist/v1/stable/acp.js"
    command = (sys.executable, str(ROOT / "app.py"), "acp", "--url", asking_server.url)
    environ = {"CANDOR_WORKSPACE": workspace}
    async with npm_client("editor.mjs", library, *command, environ=environ) as editor:
        hello = await editor.do(
            method="initialize", params={"protocolVersion": 1, "clientCapabilities": {}}
        )
        assert hello["value"]["protocolVersion"] == 1
        assert hello["value"]["agentCapabilities"]["loadSession"]
        place = {"cwd": workspace, "mcpServers": []}
        session = (await editor.do(method="session/new", params=place))["value"]["sessionId"]

        async def prompt(*steps: Any, **more: Any) -> Any:
            blocks = [{"type": "text", "text": script(*steps)}]
            params = {"sessionId": session, "prompt": blocks}
            return await editor.do(method="session/prompt", params=params, **more)

        made = await prompt(bash("mkdir by_editor"), {"text": "Made."}, answer="allow")
        assert made["value"]["stopReason"] == "end_turn"
        assert [one["toolCall"]["title"] for one in made["asked"]] == ["Bash: mkdir -- by_editor"]
        assert (asking_server.workspace / "by_editor").is_dir()
        denied = await prompt(bash("mkdir not_by_editor"), {"text": "Not made."})
        said = [
            update["content"]["text"]
            for update in denied["updates"]
            if update["sessionUpdate"] == "agent_message_chunk"
        ]
        assert "".join(said).strip() == "Not made."
        assert not (asking_server.workspace / "not_by_editor").exists()
        begun = {"thinking": "Begun."}
        slow = await prompt(
            begun, {"text": "no", "delay_ms": 50_000}, cancel_at="agent_thought_chunk"
        )
        assert slow["value"]["stopReason"] == "cancelled"
        loaded = await editor.do(method="session/load", params={"sessionId": session, **place})
        kinds = [update["sessionUpdate"] for update in loaded["updates"]]
        assert kinds.count("user_message_chunk") == 3
        assert kinds.index("tool_call") < kinds.index("agent_message_chunk")
        resumed = await editor.do(method="session/resume", params={"sessionId": session, **place})
        assert (resumed.get("error"), resumed["updates"]) == (None, [])
        assert "error" not in await editor.do(method="session/close", params={"sessionId": session})
        unknown = await editor.do(method="session/load", params={"sessionId": "cnv_x", **place})
        assert unknown["error"]["code"] == -32002
