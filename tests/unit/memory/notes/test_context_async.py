"""The notes are read beside the loop: two thousand of them hold up nobody else."""

import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from time import perf_counter

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest
from blockbuster import BlockBuster

from memory.notes.notes_context import build_memory_context, build_memory_context_async
from tests.unit.memory.notes.folders import MANY, many_notes, workspace_with

ASK = "what do you remember about the deploy window?"
BOUND = 0.5
"""Of the time that the notes take, the loop may stand still for this share at most in one piece."""
RUNS = 7
"""What else the machine does can only make the loop's lag longer: the best run is the one that tells."""


@dataclass(frozen=True, slots=True)
class Lag:
    """How a task that does nothing but take its turn fared while something was done."""

    turns: int
    longest_s: float
    took_s: float

    @property
    def share(self) -> float:
        return self.longest_s / self.took_s


async def lag_during(work: Callable[[], Awaitable[str]]) -> Lag:
    moments: list[float] = []

    async def take_turns() -> None:
        while True:
            await anyio.lowlevel.checkpoint()
            moments.append(perf_counter())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take_turns)
        await anyio.lowlevel.checkpoint()
        began = perf_counter()
        text = await work()
        ended = perf_counter()
        tasks.cancel_scope.cancel()
    assert "> # " in text
    turns = [moment for moment in moments if began < moment < ended]
    gaps = [after - before for before, after in pairwise([began, *turns, ended])]
    return Lag(len(turns), max(gaps), ended - began)


async def best_lag(work: Callable[[], Awaitable[str]]) -> Lag:
    return min([await lag_during(work) for _ in range(RUNS)], key=lambda number: number.share)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return many_notes(tmp_path_factory.mktemp("many"))


async def test_two_thousand_notes_leave_the_loop_to_others(workspace: Path) -> None:
    lag = await best_lag(lambda: build_memory_context_async(workspace, ASK))
    assert lag.turns > 0
    assert lag.share < BOUND


@pytest.fixture
def may_block(_blocking_calls_fail: BlockBuster) -> None:
    """Let a test call on the loop what must never be called there."""
    _blocking_calls_fail.deactivate()


@pytest.mark.usefixtures("may_block")
async def test_read_on_the_loop_itself_they_would_not(workspace: Path) -> None:
    async def on_the_loop() -> str:  # noqa: RUF029  that is what is wrong with it
        return build_memory_context(workspace, ASK)

    lag = await best_lag(on_the_loop)
    assert lag.turns == 0
    assert lag.share > BOUND


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
        may_go_on.wait(10)
        gone_on.set()
        return text

    try:
        with anyio.fail_after(5):
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
