"""The notes are read beside the loop: two thousand of them hold up nobody else."""

import threading
from pathlib import Path

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from memory.notes.notes_context import build_memory_context, build_memory_context_async
from tests.unit.memory.notes.folders import MANY, many_notes, workspace_with

ASK = "what do you remember about the deploy window?"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return many_notes(tmp_path_factory.mktemp("many"))


async def test_beside_the_loop_the_same_comes_of_it(workspace: Path) -> None:
    text = await build_memory_context_async(workspace, ASK, 5000)
    assert text == await anyio.to_thread.run_sync(build_memory_context, workspace, ASK, 5000)
    shown = text.count("\nmemory/")
    assert f"Also there, {MANY - shown} more" in text


async def test_who_stops_waiting_does_not_wait_for_the_thread(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, {"a.md": "x"})
    reading, may_go_on, gone_on = anyio.Event(), threading.Event(), threading.Event()

    def mask(text: str) -> str:
        if not may_go_on.is_set():
            anyio.from_thread.run_sync(reading.set)
        may_go_on.wait(30)
        gone_on.set()
        return text

    try:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:

                async def ask() -> None:
                    await build_memory_context_async(workspace, ASK, mask=mask)

                tasks.start_soon(ask)
                await reading.wait()
                tasks.cancel_scope.cancel()
        assert not gone_on.is_set(), "it came back before the thread could go on"
    finally:
        may_go_on.set()
    assert await anyio.to_thread.run_sync(gone_on.wait, 5), "it ends by itself"
