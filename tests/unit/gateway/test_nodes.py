"""Whether another server has ended, and what a server needs of its own."""

import sys
from pathlib import Path

import anyio
import pytest

from gateway.errors import StartError
from gateway.ids import NodeId
from gateway.nodes import has_ended, join, own_process_blocking
from tests.support.services import settings_below
from tests.support.stores import open_file

SAY = "from gateway.nodes import own_process_blocking; print(own_process_blocking(), flush=True)"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
async def test_a_process_of_this_machine_is_known_to_have_ended() -> None:
    own = await anyio.to_thread.run_sync(own_process_blocking)
    assert own is not None
    assert not await has_ended(own)
    command = [sys.executable, "-c", f"{SAY}; input()"]
    async with await anyio.open_process(command) as process:
        assert process.stdout is not None
        other = (await process.stdout.receive()).decode().strip()
        assert not await has_ended(other)
        process.kill()
        await process.wait()
        assert await has_ended(other)
    place, pid, started = own.rsplit(" ", 2)
    assert await has_ended(f"{place} {pid} {float(started) - 1}"), "its id was given anew"
    assert not await has_ended(f"elsewhere {pid} {started}"), "nothing is known of other machines"
    assert not await has_ended(f"elsewhere 1 {started}")


async def test_a_server_does_not_start_at_the_url_of_another_one(tmp_path: Path) -> None:
    settings = settings_below(tmp_path, node_url="http://10.0.0.5:8000")
    async with open_file(tmp_path) as database:
        await join(settings, database, NodeId("a"))
        with pytest.raises(StartError, match=r"CANDOR_NODE_URL .* each needs its own"):
            await join(settings, database, NodeId("b"))
        await join(settings, database, NodeId("a"))  # after a restart
        await join(settings_below(tmp_path, node_url="http://10.0.0.6:8000"), database, NodeId("b"))
