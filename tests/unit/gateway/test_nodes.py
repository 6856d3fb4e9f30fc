"""Whether the process of another server on this machine has ended."""

import sys

import anyio
import pytest

from gateway.nodes import has_ended, own_process_blocking

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
