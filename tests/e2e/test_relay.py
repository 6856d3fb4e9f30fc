"""The relay between real agent processes and a model's service."""

import shutil
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import certifi
import psutil
import pytest
from anyio.from_thread import start_blocking_portal
from anyio.streams.buffered import BufferedByteReceiveStream

from gateway.demo.server import create_demo_app, run_server
from tests.support.engine_talk import until
from tests.support.live_server import LiveServer, bash, running_server, script, started_server
from tests.support.program import ROOT, environment

pytestmark = pytest.mark.e2e

KEY = "sk-ant-api03-" + "k7Qz" * 22 + "AA"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Serve the demo model as any service."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(run_server(create_demo_app(cadence_ms=40), listener)),
    ):
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def environ(url: str) -> dict[str, str]:
    headers = "X-Team-Key: blue-secret-of-the-team"
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_CUSTOM_HEADERS": headers,
        "HTTP_PROXY": "http://me:pa@ss-of-the-proxy@127.0.0.1:9",
        "NO_PROXY": "127.0.0.1",
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, url: str) -> Iterator[LiveServer]:
    with started_server(
        tmp_path_factory.mktemp("relay"), command=None, model="candor-demo", environ=environ(url)
    ) as server:
        yield server


def relay_of(server: LiveServer) -> psutil.Process:
    """Return the process of the server's relay."""
    found = []
    for child in psutil.Process(server.process.pid).children():
        with suppress(psutil.NoSuchProcess):  # an agent that has just ended
            found += [child] if "gateway.relay.program" in " ".join(child.cmdline()) else []
    (relay,) = found
    return relay


def environments_of(server: LiveServer) -> dict[str, str]:
    """Return what the agents and their commands know, by program; some of them end meanwhile."""
    found = {}
    for process in server.agents().values():
        with suppress(psutil.NoSuchProcess):
            found[process.name()] = str(process.environ())
    return found


async def test_no_agent_and_no_command_of_one_has_the_key(server: LiveServer) -> None:
    async with server.client() as client:
        pipe = server.make_pipe("pipe")
        async with client.stream(script(bash(f"cat {pipe.name}"), {"text": "Done."})) as events:
            await events.until("tool.started")
            await until(lambda: "cat" in environments_of(server), pause_s=0.05)
            environments = environments_of(server)
            pipe.write_text("through")
            (*_, last) = await events.rest()
    assert last.data["outcome"] == "answered"
    for held in (
        *environments.values(),
        str(relay_of(server).cmdline()),
        str(relay_of(server).environ()),
    ):
        assert KEY not in held
        assert "blue-secret" not in held
        assert "ss-of-the-proxy" not in held
    assert "'HTTP_PROXY': 'http://127.0.0.1:9'" in environments["claude"]


async def test_a_forced_summary_is_offered_no_tools(server: LiveServer) -> None:
    """The turn after it has them again."""
    listed = {"text": "Offered:", "echo": "tools"}
    silent = {"empty": True, "times": 9}
    async with server.client() as client:
        asked = script(bash("ls memory"), silent, {"on_followup": [listed]})
        summed_up = await client.ask(asked)
        again = await client.ask(script(listed), summed_up["conversation_id"])
    assert [notice["code"] for notice in summed_up["notices"]] == ["forced_summary"]
    assert (summed_up["outcome"], summed_up["reply"]) == ("answered", "Offered:")
    assert {"Bash", "Read"} <= set(again["reply"].split())


async def test_a_relay_lost_in_an_answer_is_told_and_the_answer_is_whole(
    server: LiveServer,
) -> None:
    text = "The whole answer, from its beginning to its end, in many pieces. " * 4
    relay = relay_of(server)
    async with server.client() as client:
        async with client.stream(script({"text": text, "delta_delay_ms": 250})) as events:
            await events.until("text.delta")
            relay.send_signal(signal.SIGKILL)
            (*_, last) = await events.rest()
        assert (last.data["outcome"], last.data["reply"]) == ("answered", text.strip())
        (notice,) = last.data["notices"]
        assert "failed (the server's own connection to it was lost)" in notice["message"]
        result = await client.ask(script({"text": "Again."}), last.data["conversation_id"])
        assert (result["outcome"], result["reply"], result["notices"]) == ("answered", "Again.", [])


async def test_a_relay_that_does_not_come_back_is_a_silence_of_the_service(tmp_path: Path) -> None:
    file = Path(shutil.copy(certifi.where(), tmp_path))
    more = environ("https://127.0.0.1:9") | {"NODE_EXTRA_CA_CERTS": str(file)}
    options = {"command": None, "model": "any", "model_silence_s": 8, "turn_timeout_s": 30}
    async with (
        running_server(tmp_path, environ=more, **options) as server,
        server.client() as client,
    ):
        file.unlink()
        relay_of(server).kill()
        result = await client.ask("hello")
        assert "not run" in (await client.http.get("/readyz")).json()["parts"]["relay"]["message"]
    assert (result["outcome"], result["stop_reason"]) == ("engine_failed", "model_timeout")
    assert [notice["code"] for notice in result["notices"]] == ["model_silent"]
    assert result["reply"].startswith("The server's own connection to the model's service kept")


async def test_without_the_relay_the_agent_has_the_key(tmp_path: Path, url: str) -> None:
    async with running_server(
        tmp_path, command=None, model="candor-demo", relay="off", environ=environ(url)
    ) as server:
        async with server.client() as client:
            assert (await client.ask(script({"text": "Hello."})))["reply"] == "Hello."
            assert "relay" not in (await client.get("/readyz"))["parts"]
        (agent,) = server.agents().values()
        assert agent.environ()["ANTHROPIC_API_KEY"] == KEY


async def test_a_turn_runs_again_without_the_model(tmp_path: Path, server: LiveServer) -> None:
    """The same calls run on other files; a secret of the model's, sent in pieces, is masked."""
    steps = (bash("ls notes"), {"text": f"The key is {KEY}.", "delta_delay_ms": 5})
    server.workspace.joinpath("notes").mkdir()
    async with server.client() as client:
        first = await client.ask(script(*steps))
    command = [sys.executable, str(ROOT / "app.py"), "replay", first["turn_id"]]
    env = environment(tmp_path, {"log_dir": server.log_dir}, {})
    async with await anyio.open_process(command, env=env, cwd=tmp_path) as replay:
        assert replay.stdout is not None
        said = (await BufferedByteReceiveStream(replay.stdout).receive_until(b"\n", 999)).decode()
        address = said.removeprefix("ANTHROPIC_BASE_URL=")
        options = {"command": None, "model": "any", "environ": {"ANTHROPIC_BASE_URL": address}}
        async with running_server(tmp_path, **options) as again, again.client() as client:
            again.workspace.joinpath("notes").mkdir()
            second = await client.ask("the same again")
        replay.kill()
    same = ("reply", "outcome", "stop_reason", "steps")
    assert [second[key] for key in same] == [first[key] for key in same]
    calls = [
        [(call["summary"], call["status"]) for call in turn["tools"]] for turn in (first, second)
    ]
    assert calls == [[("ls notes", "ok")]] * 2
    assert KEY not in server.journal_text(first)
    assert KEY not in str(second)
