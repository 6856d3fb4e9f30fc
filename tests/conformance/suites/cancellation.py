"""Cancellation at each await of a write, in both ways in which a task can be cancelled."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

import anyio
import pytest


class CutShort(Awaitable[None]):
    """An awaitable that calls `cut` when its coroutine waits for the `at_step`th time."""

    def __init__(
        self, work: Coroutine[Any, Any, Any], at_step: int, cut: Callable[[], Any]
    ) -> None:
        self._work = work
        self._at_step = at_step
        self._cut = cut
        self.was_cut = False

    def __await__(self) -> Generator[Any, Any, None]:
        """Drive the coroutine, passing on whatever it waits for and whatever comes back."""
        step, resume, value = 0, self._work.send, None
        while True:
            try:
                waited = resume(value)
            except StopIteration:
                return
            step += 1
            if step == self._at_step:
                self.was_cut = True
                self._cut()
            try:
                value, resume = (yield waited), self._work.send
            except BaseException as exc:  # noqa: BLE001  cancellation goes in, like all else
                value, resume = exc, self._work.throw


async def cut_by_scope(work: Coroutine[Any, Any, Any], at_step: int) -> bool:
    """Run `work`, its scope cancelled at a step; False when it never came so far."""
    with anyio.CancelScope() as scope:
        cut = CutShort(work, at_step, scope.cancel)
        await cut
    return cut.was_cut


async def cut_by_task(work: Coroutine[Any, Any, Any], at_step: int) -> bool:
    """Run `work`, its task cancelled at a step, as a server does with requests at shutdown."""
    task = asyncio.current_task()
    assert task is not None, "a test is a task"
    cut = CutShort(work, at_step, task.cancel)
    try:
        await cut
    except asyncio.CancelledError:
        task.uncancel()
        return True
    if cut.was_cut:  # the last step was cut: the cancellation is still to come
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            task.uncancel()
    return cut.was_cut


Cut = Callable[[Coroutine[Any, Any, Any], int], Awaitable[bool]]
both_cuts = pytest.mark.parametrize("cut", [cut_by_scope, cut_by_task], ids=["scope", "task"])


async def cut_everywhere(cut_at: Callable[[int], Awaitable[bool]]) -> None:
    """Do `cut_at(step)` for each step from the first on until it says that it was not cut."""
    with anyio.fail_after(30):
        step = 1
        while await cut_at(step):
            step += 1
        assert step > 1, "it was cut at least once"
