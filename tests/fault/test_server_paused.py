"""The real server stopped for a while in the middle of a turn, which another one ends meanwhile."""

import os
import signal
import sys
from pathlib import Path

import anyio
import pytest

from gateway.lost_data import DATABASE
from tests.support.live_server import LiveServer, bash, opened_pipe, running_server, script

pytestmark = [
    pytest.mark.fault,
    pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes of POSIX"),
]


async def until_without_agents(server: LiveServer) -> None:
    while server.agents():  # noqa: ASYNC110  nothing tells
        await anyio.sleep(0.05)


async def test_a_paused_server_that_another_has_followed_writes_nothing_and_ends_its_agent(
    tmp_path: Path,
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    async with running_server(one, prewarmed_clients=0) as first, first.client() as client:
        pipe = first.make_pipe("pipe")
        steps = (bash("cat pipe"), {"text": "never said"})
        async with client.stream(script(*steps)) as events:
            started = await events.until("tool.started")
            where = started.data["conversation_id"]
            call = await opened_pipe(pipe)
            first.signal(signal.SIGSTOP)
            data = two / first.data_dir.relative_to(one)
            data.mkdir(parents=True)
            (data / DATABASE).symlink_to(first.data_dir / DATABASE)
            async with (
                running_server(two, prewarmed_clients=0) as second,
                second.client() as other,
            ):
                ended = await other.replay(where, started.data["turn_id"])
                assert ended[-1].data["stop_reason"] == "engine_crash"
                os.write(call, b"through\n")
                os.close(call)  # the agent goes on, and has to tell something
                first.signal(signal.SIGCONT)
                await until_without_agents(first)
                again = await other.replay(where, started.data["turn_id"])
                assert [event.id for event in again] == [event.id for event in ended]
                after = await other.ask(script({"text": "Here."}), where)
                assert (after["outcome"], after["reply"]) == ("answered", "Here.")
        found = {line["event"] for line in first.log()}
        assert found & {"conversation_lost", "heart_beat_late"}
