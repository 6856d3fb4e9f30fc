"""What turns cost, each by itself and together, when the server is killed and when a session is renewed."""

import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.demo.server import create_demo_app, run_server
from tests.support.live_server import LiveClient, LiveServer, bash, running_server, script

pytestmark = [
    pytest.mark.fault,
    pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes of POSIX"),
]

FIRST = script({"text": "A grey bird."}, say="My word is heron.")
REFUSED = {"status": 400, "while_earlier": "My word is heron", "message": "messages.1: bad block"}
OUTPUT_FACTOR = 5
"""How much more the agent program counts for a token that is written than for one that is read."""


@asynccontextmanager
async def charging_service() -> AsyncIterator[str]:
    """Serve the demo model as a service that costs something."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with run_server(create_demo_app(cadence_ms=0), listener):
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@asynccontextmanager
async def served(directory: Path, url: str) -> AsyncIterator[tuple[LiveServer, LiveClient]]:
    environ = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-ant-none-at-all"}
    async with (
        running_server(directory, command=None, model="candor-demo", environ=environ) as server,
        server.client() as client,
    ):
        yield server, client


def read_and_written(result: dict[str, Any]) -> int:
    """Return a turn's tokens, those weighted that the model wrote."""
    usage = result["usage"]
    weighted: int = usage["input_tokens"] + OUTPUT_FACTOR * usage["output_tokens"]
    return weighted


async def test_each_turn_has_its_own_cost_after_kills_and_in_a_renewed_session(
    tmp_path: Path,
) -> None:
    """An agent of a killed server may have written what its session had cost, or not."""
    async with charging_service() as url:
        await _compare_costs(tmp_path, url)


async def _compare_costs(tmp_path: Path, url: str) -> None:
    results = []
    async with served(tmp_path, url) as (server, client):
        results.append(await client.ask(FIRST))
        conversation: str = results[0]["conversation_id"]
        steps = bash("ls"), {"text": "some words " * 50}
        results.append(await client.ask(script(*steps), conversation))
        server.kill()
    async with served(tmp_path, url) as (server, client):
        results.append(await client.ask(script({"text": "After a kill."}), conversation))
        server.make_pipe("pipe")
        steps = bash("cat pipe"), {"text": "never said"}
        async with client.stream(script(*steps), conversation) as events:
            await events.until("tool.started")
            server.kill()
        cut_off = events.seen[0].data["turn_id"]
    async with served(tmp_path, url) as (server, client):
        lost = (await client.replay(conversation, cut_off))[-1].data
        results.append(await client.ask(script({"text": "After another."}), conversation))
        healed = await client.ask(script(REFUSED, {"text": "In a new session."}), conversation)
        results += [healed, await client.ask(script({"text": "Still there."}), conversation)]
        server.kill()
    async with served(tmp_path, url) as (_, client):
        results.append(await client.ask(script({"text": "The last."}), conversation))
        total = await client.get(f"/conversations/{conversation}/usage")

    assert [notice["code"] for notice in healed["notices"]] == ["session_renewed"]
    assert {result["outcome"] for result in results} == {"answered"}
    price = results[0]["cost_usd"] / read_and_written(results[0])
    assert price > 0
    costs = [result["cost_usd"] for result in results]
    assert costs == pytest.approx([price * read_and_written(result) for result in results])
    assert (lost["outcome"], lost["cost_usd"]) == ("engine_failed", 0)
    assert (total["turns"], total["cost_usd"]) == (len(results) + 1, pytest.approx(sum(costs)))
