"""The relay's process: restarted when it dies, gone when the server is."""

import asyncio
import errno
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import httpx
import psutil
import pytest
from anyio.abc import SocketStream

from gateway.relay.reports import ServiceReport
from gateway.relay.supervisor import RelayProcess
from gateway.relay.upstream import Target
from tests.support.engine_talk import until
from tests.support.relays import HEAD, OK, Agent, answering, chunk, read_request, relayed, service

ROOT = Path(__file__).resolve().parents[3]
SERVER = """
import anyio, os, sys
from gateway.relay.supervisor import open_relay
from gateway.relay.upstream import Target

async def main():
    async with open_relay(Target(url="http://127.0.0.1:9"), {}) as relay:
        while relay.pid is None:
            await anyio.sleep(0.01)
        print(relay.pid, flush=True)
        await anyio.sleep(60)

anyio.run(main)
"""


def kill(agent: Agent, sent: signal.Signals = signal.SIGKILL) -> int:
    """Send the relay a signal; return its number."""
    pid = agent.relay.pid
    assert pid is not None
    os.kill(pid, sent)
    return pid


async def test_a_killed_relay_costs_the_running_answer_and_nothing_else() -> None:
    async def handle(stream: SocketStream) -> None:
        while True:
            head, _ = await read_request(stream)
            if "long" in head:
                await stream.send(HEAD + chunk(b"data: 1\n\n"))
                await anyio.sleep_forever()
            await stream.send(OK % (2, b"ok"))

    async with service(handle) as url, relayed(url) as agent:
        other = Agent(agent.relay, "agent-2")
        async with agent.ask("/v1/messages?long") as answer:
            pieces = answer.aiter_raw()
            await anext(pieces)
            killed = kill(agent)
            with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
                await anext(pieces)
        for one in (agent, other):  # asked while it starts again
            assert await one.read() == b"ok"
        assert agent.relay.pid not in {None, killed}


async def test_it_outlives_a_service_managers_signal() -> None:
    async with service(answering()) as url, relayed(url) as agent:
        await agent.read()
        pid = kill(agent, signal.SIGTERM)
        assert await agent.read() == b"ok"
        assert agent.relay.pid == pid


async def test_it_ends_with_its_server() -> None:
    async with relayed("http://127.0.0.1:9") as agent:
        await until(lambda: agent.relay.pid is not None)
        pid = agent.relay.pid
    assert pid is not None
    assert not psutil.pid_exists(pid)


@pytest.mark.fault
def test_it_ends_when_its_server_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], cwd=ROOT, stdout=subprocess.PIPE
    ) as server:
        assert server.stdout is not None
        relay = psutil.Process(int(server.stdout.readline()))
        server.kill()
        relay.wait(10)


async def test_a_held_agent_waits_until_it_is_free() -> None:
    asked: list[str] = []
    async with service(answering(heard=asked)) as url, relayed(url) as agent:
        for _ in range(20):  # what is asked after an order must not overtake it
            agent.relay.hold("agent-1", is_held=True)
            with anyio.move_on_after(0.05):
                await agent.read()
        assert asked == []
        kill(agent)
        async with anyio.create_task_group() as tasks:
            answered = anyio.Event()

            async def ask() -> None:
                assert await agent.read() == b"ok"
                answered.set()

            tasks.start_soon(ask)
            with anyio.move_on_after(2):
                await answered.wait()
            assert (asked, answered.is_set()) == ([], False), "the new process knows of no hold"
            agent.relay.hold("agent-1", is_held=False)
        assert len(asked) == 1


TOOLS = [{"name": "Bash"}]
WITH_TOOLS = {"model": "m", "messages": [], "tools": TOOLS, "tool_choice": {"type": "auto"}}
NOT_CHANGED = (b"{}", b"no JSON", b"[" * 60_000, b"[]", b'{"tools": []}', b"\xff")


async def test_a_model_without_tools_is_told_so_in_its_request() -> None:
    """Also by a new process; a service that does not know how is asked as the agent asked."""
    asked: list[bytes] = []
    refuses = False

    async def handle(stream: SocketStream) -> None:
        while True:
            _, body = await read_request(stream)
            asked.append(body)
            is_refused = refuses and b'"none"' in body
            await stream.send(OK.replace(b"200", b"400" if is_refused else b"200") % (2, b"ok"))

    async def send(body: bytes) -> list[bytes]:
        asked.clear()
        async with agent.ask(body=body) as answer:
            assert (answer.status_code, await answer.aread()) == (200, b"ok")
        return list(asked)

    body = json.dumps(WITH_TOOLS).encode()
    async with service(handle) as url, relayed(url) as agent:
        assert await send(body) == [body]
        agent.relay.offer_tools("agent-1", has_tools=False)
        changed = await send(body)
        assert list(map(json.loads, changed)) == [WITH_TOOLS | {"tool_choice": {"type": "none"}}]
        for other in NOT_CHANGED:
            assert await send(other) == [other]
        kill(agent)
        assert await send(body) == changed
        refuses = True
        assert await send(body) == [*changed, body]
        agent.relay.offer_tools("agent-1", has_tools=True)
        assert await send(body) == [body]


async def test_a_relay_that_does_not_start_is_started_less_and_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []

    async def sleep(delay: float) -> None:
        pauses.append(delay)
        await anyio.lowlevel.checkpoint()
        if len(pauses) == 7:
            raise EOFError

    monkeypatch.setattr(anyio, "sleep", sleep)
    monkeypatch.setattr(sys, "executable", "nowhere")
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(EOFError):
        await RelayProcess(Target(url="http://127.0.0.1:9"), {}, listener).run()
    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 5, 5]


WRONG_LINES = b"".join(
    [
        b"x" * 70_000 + b"\n",
        b"x" * 200_000 + b"\n",
        b'{"client": "agent-1", "kind": "refused", "retry_after_s": Infinity}\n',
        b"[" * 60_000 + b"\n\n\xff\xfe\n7\n",
        b'{"client": "agent-1", "kind": "cut"}\n',
    ]
)


async def test_no_line_of_the_relay_and_no_failure_of_a_reader_ends_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "lines"
    file.write_bytes(WRONG_LINES)
    write = f"sys.stdout.buffer.write(open({str(file)!r}, 'rb').read()); sys.stdout.flush()"
    program = f"import sys; {write}; exec(sys.argv[-1])"
    spawn = asyncio.create_subprocess_exec

    async def spawn_noisy(*command: str, **options: Any) -> asyncio.subprocess.Process:
        return await spawn(*command[:-1], program, command[-1], **options)

    def fail(report: ServiceReport) -> None:
        failed.append(report.kind)
        raise LookupError

    failed: list[str] = []
    monkeypatch.setattr(asyncio, "create_subprocess_exec", spawn_noisy)
    async with service(answering(b'{"content": []}')) as url, relayed(url) as agent:
        agent.relay.admit("agent-2", fail)
        assert await agent.read() == b'{"content": []}'
        assert [report.kind for report in agent.reports] == ["cut"]
        killed = kill(agent)
        assert await agent.read() == b'{"content": []}'
        assert agent.relay.pid not in {None, killed}
        assert [report.kind for report in agent.reports] == ["cut", "relay_lost", "cut"]
    assert failed == ["relay_lost"]
    assert "a line that is too long" in {getattr(each, "line", "") for each in caplog.records}


async def test_a_reader_that_fails_costs_one_relay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pipe itself may fail, too."""
    readline, fails = asyncio.StreamReader.readline, [True]

    async def fail_once(reader: asyncio.StreamReader) -> bytes:
        line = await readline(reader)
        if line == b"{}\n" and fails:
            fails.clear()
            raise OSError(errno.EIO, "")
        return line

    monkeypatch.setattr(asyncio.StreamReader, "readline", fail_once)
    async with service(answering(b'{"content": []}')) as url, relayed(url) as agent:
        await until(lambda: agent.reports != [])
        assert [report.kind for report in agent.reports] == ["relay_lost"]
        assert await agent.read() == b'{"content": []}'


async def test_a_hung_relay_is_replaced_and_the_agents_are_told() -> None:
    async with service(answering(b'{"content": []}')) as url, relayed(url) as agent:
        await agent.read()
        hung = kill(agent, signal.SIGSTOP)
        assert await agent.read() == b'{"content": []}'  # the connection waits for the new process
        assert agent.relay.pid not in {None, hung}
        assert [report.kind for report in agent.reports] == ["relay_lost"]
