"""The examples do what they show, on one real server that all of them share."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.http.tokens import make_token
from tests.support.live_server import DEADLINE_S, LiveServer, bash, script, started_server
from tests.support.program import ROOT

pytestmark = pytest.mark.e2e

EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with started_server(
        tmp_path_factory.mktemp("examples"),
        approvals="on",
        policy_file=EXAMPLES / "policy.toml",
        demo_cadence_ms=0,
    ) as server:
        yield server


def run(server: LiveServer, *command: str, **variables: str) -> str:
    done = subprocess.run(
        command,
        env={
            "PATH": os.environ["PATH"],
            "GATEWAY_URL": server.url,
            "ANTHROPIC_BASE_URL": f"{server.url}/anthropic",
            "ANTHROPIC_API_KEY": "any",
            "PYTHONWARNINGS": "error",
            **variables,
        },
        cwd=server.workspace.parent,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=DEADLINE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_curl_takes_a_turn_and_reads_it_back(server: LiveServer) -> None:
    out = run(server, "sh", str(EXAMPLES / "chat.sh"))

    assert '"ready": true' in out.replace('":', '": ').replace("  ", " ")
    assert out.count("event: turn.completed") == 1
    _, _, messages = out.partition("== Its messages")
    assert "list the files" in messages
    assert "hello" in messages


def test_the_python_client_approves_and_prints_how_the_turn_ended(server: LiveServer) -> None:
    out = run(server, sys.executable, str(EXAMPLES / "client.py"), "write hello to greeting.txt")

    assert "[allowing: Write " in out
    assert "[answered]" in out
    assert "[ok: Write " in out
    assert "hello" in (server.workspace / "greeting.txt").read_text("utf-8")


def test_a_server_with_tokens_serves_the_clients_with_theirs(tmp_path: Path) -> None:
    token, line = make_token("ada")
    file = tmp_path / "tokens"
    file.touch(mode=0o600)
    file.write_text(line, encoding="utf-8")
    with started_server(tmp_path / "server", tokens_file=file, demo_cadence_ms=0) as server:
        told = run(server, "sh", str(EXAMPLES / "chat.sh"), GATEWAY_TOKEN=token)
        client = (sys.executable, str(EXAMPLES / "client.py"), "hello")
        answered = run(server, *client, GATEWAY_TOKEN=token)

    assert told.count("event: turn.completed") == 1
    assert answered.endswith("[answered]\n")


def test_the_python_client_loses_no_event_when_its_connection_breaks(server: LiveServer) -> None:
    """The first connection ends after some events; the text is printed once and whole."""
    words = " ".join(f"word{number}" for number in range(40))
    program = f"""if True:
        import sys
        sys.path.insert(0, {str(EXAMPLES)!r})
        import client, httpx
        read_events, connections = client.read_events, []
        def breaking(response):
            connections.append(response)
            for number, event in enumerate(read_events(response)):
                if len(connections) == 1 and number == 4:
                    raise httpx.ReadError("cut")
                yield event
        client.read_events, client.RETRY_S = breaking, 0
        client.main()
        print(len(connections), "connections")
    """
    out = run(server, sys.executable, "-c", program, script({"text": words, "delta_delay_ms": 15}))

    assert out.splitlines() == [words, "[answered]", "2 connections"]


def test_a_program_for_the_vendors_managed_agents_runs_with_another_base_url(
    server: LiveServer,
) -> None:
    program = str(EXAMPLES / "managed_agents.py")
    out = run(server, sys.executable, program, "write salut to managed.txt")

    assert "[allowing: Write " in out
    assert out.endswith("[end_turn]\n")
    assert "salut" in (server.workspace / "managed.txt").read_text("utf-8")


async def test_the_policy_file_switches_commands_on_and_off(server: LiveServer) -> None:
    (server.workspace / "three.txt").write_text("1\n2\n3\n", encoding="utf-8")
    async with server.client() as client:
        result = await client.ask(
            script(bash("wc -l three.txt"), bash("rm three.txt"), {"text": "Done."})
        )
    assert [call["status"] for call in result["tools"]] == ["ok", "denied"]
    assert (server.workspace / "three.txt").exists()
