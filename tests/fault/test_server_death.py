"""The real server or its agents ended at the worst moment: what is told, what is left, and that it goes on."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from gateway.engine.processes import MARK, owner_of
from tests.support.live_server import (
    LiveClient,
    LiveServer,
    agents_of,
    bash,
    let_go,
    opened_pipe,
    running_server,
    script,
    started_server,
)
from tests.support.program import START_S, environment, start_app

pytestmark = [
    pytest.mark.fault,
    pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes of POSIX"),
]

SLOWLY = {"text": "word " * 400, "delta_delay_ms": 200}
"""Longer than any look at the agents takes."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    directory = tmp_path_factory.mktemp("death")
    with started_server(directory, prewarmed_clients=0, interrupt_grace_s=5) as server:
        yield server


@contextmanager
def marked_process(mark: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that looks like an agent with this mark."""
    env = {**os.environ, MARK: mark}
    process = subprocess.Popen(["sleep", "300"], env=env, start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def statuses(result: Mapping[str, Any]) -> list[str]:
    return [entry["status"] for entry in result["tools"]]


async def is_over(client: LiveClient, conversation_id: str) -> None:
    """Assert that a conversation accepts a message at once: no turn is stuck."""
    result = await client.ask(script({"text": "Here again."}), conversation_id, when_busy="reject")
    assert (result["outcome"], result["reply"]) == ("answered", "Here again.")


async def test_a_killed_server_leaves_nothing_in_between(tmp_path: Path) -> None:
    """One turn running with a tool, one queued. Its own agents end; another owner's live on."""
    async with running_server(tmp_path) as first, first.client() as client:
        owner = first.owner
        first.make_pipe("pipe")
        conversation_id = (await client.ask("my codeword is wren"))["conversation_id"]
        steps = (bash("ls memory"), bash("cat pipe"), {"text": "never said"})
        async with client.stream(script(*steps), conversation_id) as running:
            await running.until("tool.started", lambda entry: entry.data["summary"] == "cat pipe")
            async with client.stream("what is my codeword?", conversation_id) as waiting:
                queued = await waiting.until("turn.queued")
                first.kill()
        cut_off, last_seen = running.seen[0].data["turn_id"], running.seen[-1].id
    with marked_process(f"{owner}:left"), marked_process("0123456789abcdef:other") as foreign:
        async with running_server(tmp_path) as second, second.client() as client:
            assert foreign.pid in _running(foreign)
            left = [agent for agent in second.agents().values() if _started_before(agent, second)]
            assert left == []
            events = await client.replay(conversation_id, cut_off, last_seen)
            result = events[-1].data
            assert (result["outcome"], result["stop_reason"]) == ("engine_failed", "engine_crash")
            assert [(item["summary"], item["status"]) for item in result["tools"]] == [
                ("ls memory", "ok"),
                ("cat pipe", "unknown"),
            ]
            assert result["reply"].startswith("The server stopped unexpectedly")
            assert "Bash: cat pipe never reported back" in result["reply"]
            *_, last = second.journal(result)
            assert (last["kind"], last["outcome"]) == ("response", "engine_failed")
            whole = await client.replay(conversation_id, cut_off)
            numbers = [
                int(item.id.split(":")[1]) for item in whole if item.data["turn_id"] == cut_off
            ]
            assert numbers == list(range(1, len(numbers) + 1))
            (answered,) = (await client.replay(conversation_id, queued.data["turn_id"]))[-1:]
            assert "wren" in answered.data["reply"]
            await is_over(client, conversation_id)
            told = await client.get(f"/conversations/{conversation_id}/messages")
            assert [entry.get("state") for entry in told["messages"][1::2]] == ["completed"] * 4
        assert foreign.poll() is None


def _running(process: subprocess.Popen[bytes]) -> list[int]:
    return [process.pid] if process.poll() is None else []


def _started_before(process: psutil.Process, server: LiveServer) -> bool:
    return process.create_time() < psutil.Process(server.process.pid).create_time()


async def test_a_terminated_server_lets_turns_finish_and_tells_the_rest(tmp_path: Path) -> None:
    """One turn ends in the grace, one does not; one waits and is answered after the next start."""
    ended: dict[str, dict[str, Any]] = {}

    async def follow(name: str, message: str, begun: anyio.Event) -> None:
        async with client.stream(message) as events:
            await events.until("tool.started")
            begun.set()
            ended[name] = (await events.until("turn.completed")).data

    async def ask_plainly(conversation_id: str) -> None:
        body = {"message": script({"text": "Late."}), "conversation_id": conversation_id}
        answer = await client.http.post("/chat", json=body)
        ended["waiting"] = {"status": answer.status_code, **answer.json()}

    messages = {
        "quick": script(bash("cat quick"), {"text": "Just in time."}),
        "slow": script(bash("cat slow"), {"text": "never said"}),
    }
    async with running_server(tmp_path, shutdown_grace_s=10) as first, first.client() as client:
        async with anyio.create_task_group() as tasks:
            for name, message in messages.items():
                first.make_pipe(name)
                begun = anyio.Event()
                tasks.start_soon(follow, name, message, begun)
                await begun.wait()
            listed = (await client.get("/conversations"))["conversations"]
            slow = listed[0]["id"]
            tasks.start_soon(ask_plainly, slow)
            await client.wait_until(f"/conversations/{slow}", lambda entry: entry["queue"])
            first.signal(signal.SIGTERM)
            await _refuses(client, slow)
            await let_go(first.workspace / "quick")
        assert await first.wait_ended() == 0
        assert not first.agents()
    assert (ended["quick"]["outcome"], ended["quick"]["reply"]) == ("answered", "Just in time.")
    assert ended["slow"]["outcome"] == "interrupted"
    assert ended["slow"]["stop_reason"] == "shutdown"
    assert statuses(ended["slow"]) == ["interrupted"]
    assert ended["slow"]["reply"].startswith("The server was shut down")
    error = ended["waiting"]["error"]
    assert (ended["waiting"]["status"], error["code"]) == (503, "shutting_down")
    assert not error["retryable"]  # the message is kept
    async with running_server(tmp_path, prewarmed_clients=0) as second, second.client() as client:
        path = f"/conversations/{slow}/messages"
        told = await client.wait_until(path, lambda entry: entry["messages"][-1]["result"])
        assert told["messages"][-1]["result"]["reply"] == "Late."


async def _refuses(client: LiveClient, busy: str) -> None:
    """Wait until the server takes nothing new; a busy conversation takes nothing before that either."""
    body = {"message": script({"text": "x"}), "conversation_id": busy, "when_busy": "reject"}
    while True:
        answer = await client.http.post("/chat", json=body)
        if answer.status_code == 503:
            assert answer.json()["error"]["code"] == "shutting_down"
            assert int(answer.headers["Retry-After"]) > 0
            return
        assert answer.status_code == 409


async def test_a_second_signal_cuts_the_waiting_short(tmp_path: Path) -> None:
    """Every bound is a minute longer than this test may take; a frozen agent obeys nobody."""
    long = {"shutdown_grace_s": 120, "interrupt_grace_s": 120, "prewarmed_clients": 0}
    async with running_server(tmp_path, **long) as server, server.client() as client:
        async with client.stream(script(bash("ls memory"), {"hang": True})) as events:
            await events.until("tool.finished")
            for process in server.agents().values():
                process.suspend()
            server.signal(signal.SIGTERM)
            await _refuses(client, events.seen[0].data["conversation_id"])
            server.signal(signal.SIGTERM)
            result = (await events.until("turn.completed")).data
        assert (result["outcome"], result["stop_reason"]) == ("interrupted", "shutdown")
        assert result["reply"].startswith("The server was shut down")
        assert statuses(result) == ["ok"]
        assert await server.wait_ended(30) == 0
        assert not server.agents()


@pytest.mark.parametrize("begun", ["server.lock", "candor.sqlite3-wal"])
def test_a_signal_while_it_starts_leaves_nothing(tmp_path: Path, begun: str) -> None:
    """As soon as a file shows how far it has come; before it minds signals, the system ends it."""
    env = environment(tmp_path, {"prewarmed_clients": 2}, {})
    with (tmp_path / "err").open("wb") as err:
        process = start_app("demo", env=env, out=err.fileno(), err=err.fileno())
    until = time.monotonic() + START_S
    while not (tmp_path / "data" / begun).exists():
        assert time.monotonic() < until
        time.sleep(0.001)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) in {0, -signal.SIGTERM}
    assert "Traceback" not in (tmp_path / "err").read_text("utf-8")
    owner = owner_of(tmp_path / "data")
    until = time.monotonic() + 30
    while agents_of(owner) and time.monotonic() < until:
        time.sleep(0.05)
    assert not agents_of(owner)


def kill_agents(server: LiveServer, number: signal.Signals = signal.SIGKILL) -> None:
    """Send all agents a signal; a deadly one has done its work when this returns."""
    found = server.agents()
    assert found
    for process in found.values():
        process.send_signal(number)
    if number == signal.SIGKILL:
        _, alive = psutil.wait_procs(found.values(), timeout=30)
        assert not alive


@pytest.fixture(scope="module")
def conversation() -> dict[str, str]:
    """Keep one conversation that outlives all its agents and remembers what it was told."""
    return {}


async def remembered(server: LiveServer, conversation: dict[str, str], client: LiveClient) -> str:
    """Return the conversation, with an agent at work in it that knows the word."""
    if not conversation:
        conversation["word"] = f"bittern{secrets.token_hex(3)}"
        told = await client.ask(f"my codeword is {conversation['word']}")
        conversation["id"] = told["conversation_id"]
    assert server.agents()
    return conversation["id"]


async def test_an_agent_killed_while_the_next_message_comes_is_told_or_replaced(
    server: LiveServer, conversation: dict[str, str]
) -> None:
    """Nobody can know whether the message still reached it: it is not sent twice, and nothing sticks."""
    async with server.client() as client:
        conversation_id = await remembered(server, conversation, client)
        for process in server.agents().values():
            process.send_signal(signal.SIGKILL)
        answer = await client.ask("what is my codeword?", conversation_id)
        assert answer["outcome"] in {"answered", "engine_failed"}
        again = await client.ask("what is my codeword?", conversation_id, when_busy="reject")
        assert conversation["word"] in again["reply"]


MOMENTS: dict[str, tuple[str, tuple[dict[str, Any], ...], list[str]]] = {
    "in a tool": ("tool.started", (bash("cat {pipe}"), {"text": "never said"}), ["unknown"]),
    "in the answer": ("text.delta", (bash("ls memory"), SLOWLY), ["ok"]),
}


@pytest.mark.parametrize("moment", MOMENTS)
async def test_an_agent_killed_in_mid_turn_is_told_and_the_next_one_remembers(
    server: LiveServer, conversation: dict[str, str], moment: str
) -> None:
    kind, steps, ended = MOMENTS[moment]
    pipe = server.make_pipe(secrets.token_hex(4))
    message = script(*steps).replace("{pipe}", pipe.name)
    async with server.client() as client:
        conversation_id = await remembered(server, conversation, client)
        async with client.stream(message, conversation_id) as events:
            await events.until(kind)
            with ExitStack() as held:
                if moment == "in a tool":  # earlier the gate may not have let the call pass yet
                    held.callback(os.close, await opened_pipe(pipe))
                kill_agents(server)
            result = (await events.until("turn.completed")).data
        assert (result["outcome"], result["stop_reason"]) == ("engine_failed", "engine_crash")
        assert statuses(result) == ended
        assert "The agent's process ended unexpectedly" in result["reply"]
        lost = [entry for entry in server.journal(result) if entry["kind"] == "error"]
        assert lost[-1]["where"] == "agent"
        await is_over(client, conversation_id)
        answer = await client.ask("what is my codeword?", conversation_id)
        assert conversation["word"] in answer["reply"]


async def test_an_agent_that_obeys_nobody_is_killed_and_told(
    server: LiveServer, conversation: dict[str, str]
) -> None:
    """Frozen in mid-turn: the interrupt is asked for, waited for, and then forced."""
    async with server.client() as client:
        conversation_id = await remembered(server, conversation, client)
        async with client.stream(
            script(bash("ls memory"), {"hang": True}), conversation_id
        ) as events:
            await events.until("tool.finished")
            kill_agents(server, signal.SIGSTOP)
            asked = await client.post(f"/conversations/{conversation_id}/interrupt", status=202)
            assert asked == {"state": "stopping"}
            state = await client.get(f"/conversations/{conversation_id}")
            assert state["state"] == "stopping"
            result = (await events.until("turn.completed")).data
        assert (result["outcome"], result["stop_reason"]) == ("interrupted", "user_interrupt")
        assert "kill" in [entry["code"] for entry in result["notices"]]
        await is_over(client, conversation_id)
        assert (
            conversation["word"]
            in (await client.ask("what is my codeword?", conversation_id))["reply"]
        )


async def test_prewarmed_agents_that_died_are_not_handed_out(tmp_path: Path) -> None:
    async with running_server(tmp_path, prewarmed_clients=1) as server, server.client() as client:
        await client.wait_for_agents(1)
        kill_agents(server)
        answer = await client.ask(script({"text": "Fresh."}))
        assert (answer["outcome"], answer["reply"]) == ("answered", "Fresh.")


async def test_a_killed_server_tells_what_a_call_kept_before_it(tmp_path: Path) -> None:
    """The call's fact is stored when it returns; the turn never ends."""
    text = "the tern nests at the pier"
    keep = {"text": text, "evidence": text}
    steps = ({"tool": "mcp__memory__memory_remember", "input": keep}, {"hang": True})
    async with running_server(tmp_path) as first, first.client() as client:
        async with client.stream(script(*steps, say=f"remember that {text}")) as running:
            await running.until("tool.finished")
            first.kill()
        begun, last_seen = running.seen[0].data, running.seen[-1].id
    async with running_server(tmp_path) as second, second.client() as client:
        events = await client.replay(begun["conversation_id"], begun["turn_id"], last_seen)
        result = events[-1].data
        assert result["outcome"] == "engine_failed"
        assert [fact["title"] for fact in result["memory"]["saved"]] == [text]
        assert "kept_verbatim" not in [notice["code"] for notice in result["notices"]]
        found = await client.get("/memory/search?q=tern&kinds=fact")
        assert [item["title"] for item in found["items"]] == [text]
