"""AG-UI's own client (`HttpAgent`, npm), unchanged, against the real server with the real agent process."""

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import pytest

from tests.support.live_server import LiveServer, bash, running_server, script
from tests.support.npm_clients import NpmClient, needs_npm, npm_client

pytestmark = [pytest.mark.e2e, needs_npm]


class Thread:
    """A thread of the client."""

    def __init__(self, client: NpmClient) -> None:
        self._client = client

    async def run(self, say: str | None = None, **more: Any) -> Any:
        """Run it with one more message, and give what came of it; the client may not warn."""
        told = await self._client.do(**more, **({} if say is None else {"say": say}))
        assert told["warnings"] == []
        return told


@asynccontextmanager
async def threads(server: LiveServer, name: str = "") -> AsyncIterator[Thread]:
    place = (f"{server.url}/ag-ui", name or str(uuid4()))
    async with npm_client("ag_ui.mjs", "@ag-ui/client/dist/index.mjs", *place) as client:
        yield Thread(client)


def kinds(told: Any) -> list[str]:
    """Return the types of a run's events, each piece of text once."""
    types = [event["type"] for event in told["events"]]
    return [kind for n, kind in enumerate(types) if n == 0 or types[n - 1] != kind]


def outcome(told: Any) -> Any:
    """Return how a run ended."""
    assert told["failure"] is None
    return told["events"][-1]["outcome"]


def place(told: Any) -> tuple[str, str]:
    return told["result"]["conversation_id"], told["result"]["turn_id"]


TEXT = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
THINKING = ["REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT"]
THINKING += ["REASONING_MESSAGE_END", "REASONING_END"]
CALL = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"]


async def test_a_run_tells_what_the_agent_thinks_does_and_says(server: LiveServer) -> None:
    (server.workspace / "shelf").mkdir()
    (server.workspace / "shelf" / "seen.txt").write_text("")
    steps = script(
        {"thinking": "Hm."},
        {"text": "Look:", "tool": "Bash", "input": {"command": "ls shelf"}},
        {"text": "Done 你好。"},
    )
    async with threads(server) as thread:
        told = await thread.run(steps)
    ran = [*CALL, "TOOL_CALL_RESULT"]
    assert kinds(told) == ["RUN_STARTED", *THINKING, *TEXT, *ran, *TEXT, "RUN_FINISHED"]
    assert outcome(told) == {"type": "success"}
    assert told["result"]["outcome"] == "answered"
    said = [
        (message["role"], message.get("content")) for message in told["messages"] if message["role"]
    ]
    assert [role for role, _ in said].count("assistant") >= 2
    assert ("reasoning", "Hm.") in said
    assert ("assistant", "Done 你好。") in said
    (returned,) = [content for role, content in said if role == "tool"]
    assert "seen" in returned


async def test_a_thread_is_one_conversation_and_a_run_one_turn(server: LiveServer) -> None:
    name = str(uuid4())
    async with threads(server, name) as thread:
        first = await thread.run(script({"text": "One."}), runId="run-1")
        second = await thread.run(script({"text": "Two."}), runId="run-2")
        assert place(first)[0] == place(second)[0]
        again = await thread.run(runId="run-2", forwardedProps={"any": 1})
        assert again["failure"]["status"] == 422, "the last message is the agent's"
    async with threads(server, name) as thread:
        repeated = await thread.run(script({"text": "One."}), runId="run-1")
    assert place(repeated) == place(first)
    assert kinds(repeated) == kinds(first)
    async with server.client() as candor:
        found = await candor.get(f"/conversations/{place(first)[0]}/messages")
    assert len(found["messages"]) == 4


async def test_an_approval_interrupts_the_run_and_the_next_one_goes_on(
    asking_server: LiveServer,
) -> None:
    steps = script(
        {"text": "Now:", "tool": "Bash", "input": {"command": "mkdir asked"}}, {"text": "Made."}
    )
    name = str(uuid4())
    async with threads(asking_server, name) as thread:
        asked = await thread.run(steps)
        assert kinds(asked) == ["RUN_STARTED", *TEXT, *CALL, "RUN_FINISHED"]
        (interrupt,) = outcome(asked)["interrupts"]
        assert "mkdir" in interrupt["message"]
        refused = await thread.run()
        assert refused["failure"]["status"] is None, "the client itself refuses"
        async with threads(asking_server, name) as other:
            twice = await other.run(steps)
            assert twice["failure"]["status"] == 409
        assert not (asking_server.workspace / "asked").exists()
        vague = await thread.run(resume=[answer(interrupt, "yes")])
        assert vague["failure"]["status"] == 422
        made = await thread.run(resume=[answer(interrupt, {"approved": True})])
    assert kinds(made) == ["RUN_STARTED", "TOOL_CALL_RESULT", *TEXT, "RUN_FINISHED"]
    assert outcome(made) == {"type": "success"}
    assert (asking_server.workspace / "asked").is_dir()


def answer(interrupt: Any, payload: Any) -> Any:
    return {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}


async def test_a_cancelled_interrupt_is_a_no_also_when_it_was_answered(
    asking_server: LiveServer,
) -> None:
    steps = script(bash("mkdir never"), {"text": "Then not."})
    for is_answered in (False, True):
        async with threads(asking_server) as thread, asking_server.client() as candor:
            asked = await thread.run(steps)
            (interrupt,) = outcome(asked)["interrupts"]
            if is_answered:
                await candor.post(f"/approvals/{interrupt['id']}", decision="deny")
            over = {"interruptId": interrupt["id"], "status": "cancelled"}
            told = await thread.run(resume=[over])
            assert outcome(told) == {"type": "success"}
            assert told["messages"][-1]["content"] == "Then not."
    assert not (asking_server.workspace / "never").exists()


async def test_an_interrupt_that_has_expired_is_cancelled_and_the_thread_goes_on(
    tmp_path: Path,
) -> None:
    """The client answers an expired one in no other way."""
    steps = script(bash("mkdir late"), {"text": "never"})
    async with (
        running_server(tmp_path, approvals="on", approval_timeout_s=2) as server,
        threads(server) as thread,
        server.client() as candor,
    ):
        asked = await thread.run(steps)
        (interrupt,) = outcome(asked)["interrupts"]
        await candor.wait_until("/conversations", lambda shown: not running(shown))
        refused = await thread.run(resume=[answer(interrupt, {"approved": True})])
        assert refused["failure"]["status"] is None, "the client itself refuses"
        told = await thread.run(resume=[{"interruptId": interrupt["id"], "status": "cancelled"}])
        assert outcome(told) == {"type": "cancelled"}, "the turn has ended without an answer"
        after = await thread.run(script({"text": "Next."}))
        assert outcome(after) == {"type": "success"}
        assert after["messages"][-1]["content"] == "Next."
        (conversation,) = (await candor.get("/conversations"))["conversations"]
        assert conversation["turns"] == 2
    assert not (server.workspace / "late").exists()


async def test_a_server_that_stops_ends_the_run_with_its_error(tmp_path: Path) -> None:
    told: list[Any] = []

    async def run(thread: Thread) -> None:
        told.append(await thread.run(script({"text": "word " * 400, "delta_delay_ms": 200})))

    async with (
        running_server(tmp_path, shutdown_grace_s=0) as server,
        threads(server) as thread,
        server.client() as candor,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(run, thread)
        await candor.wait_until("/conversations", lambda shown: bool(running(shown)))
        server.signal(signal.SIGTERM)
        await server.wait_ended()
    error = told[0]["events"][-1]
    assert (error["type"], error["code"]) == ("RUN_ERROR", "shutdown")


async def test_a_failure_of_the_models_service_is_an_error_of_the_run(server: LiveServer) -> None:
    async with threads(server) as thread:
        told = await thread.run(script({"status": 400, "times": 50}))
    error = told["events"][-1]
    assert (error["type"], error["code"]) == ("RUN_ERROR", "api_error")
    assert "refused the request as malformed" in error["message"]


async def test_a_run_that_is_stopped_elsewhere_is_cancelled(server: LiveServer) -> None:
    name = str(uuid4())
    told: list[Any] = []

    async def run(thread: Thread) -> None:
        told.append(await thread.run(script({"text": "no", "delay_ms": 50_000})))

    async with (
        threads(server, name) as thread,
        server.client() as candor,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(run, thread)
        listed = await candor.wait_until("/conversations", lambda shown: bool(running(shown)))
        async with threads(server, name) as other:
            busy = await other.run("and?")
        assert busy["failure"]["status"] == 409
        assert busy["failure"]["payload"]["error"]["code"] == "conversation_busy"
        (conversation,) = running(listed)
        await candor.post(f"/conversations/{conversation}/interrupt", status=202)
    assert outcome(told[0]) == {"type": "cancelled"}
    assert "stop" in told[0]["messages"][-1]["content"].lower()


def running(listed: Any) -> list[str]:
    return [one["id"] for one in listed["conversations"] if one["state"] == "running"]


async def test_aborting_the_run_stops_the_turn(server: LiveServer) -> None:
    steps = script({"text": "never", "delay_ms": 50_000})
    async with threads(server) as thread, server.client() as candor:
        await thread.run(steps, abort_at="RUN_STARTED")
        newest = (await candor.get("/conversations"))["conversations"][0]  # it may have stopped
        path = f"/conversations/{newest['id']}/messages"
        found = await candor.wait_until(path, lambda shown: shown["messages"][1]["result"])
    assert found["messages"][0]["text"] == steps
    assert found["messages"][1]["result"]["stop_reason"] == "user_interrupt"


async def test_a_run_after_an_aborted_one_waits_until_that_has_stopped(server: LiveServer) -> None:
    async with threads(server) as thread, server.client() as candor:
        await thread.run(script({"text": "never", "delay_ms": 50_000}), abort_at="RUN_STARTED")
        told = await thread.run(script({"text": "Next."}))
        assert outcome(told) == {"type": "success"}
        assert told["messages"][-1]["content"] == "Next."
        found = await candor.get(f"/conversations/{place(told)[0]}/messages")
    assert [one["result"]["stop_reason"] for one in found["messages"][1::2]] == [
        "user_interrupt",
        "end_turn",
    ]
