"""Run the work of a callback so that anyio's shields hold in it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

T = TypeVar("T")

_running: set[asyncio.Task[None]] = set()
"""The event loop itself keeps no task alive."""


async def run_shieldable(work: Callable[[], Awaitable[T]]) -> T:
    """Run `work` in a task of its own and return its result.

    When the agent program takes a question back, the SDK cancels the callback's task by asyncio,
    perhaps twice, and a shield of anyio does not keep that off. Here it becomes a cancellation by
    anyio: the callback ends at once, and `work` still finishes what it shields, such as storing
    that a question is over.
    """
    scope = anyio.CancelScope()
    results: list[T] = []

    async def run() -> None:
        with scope:
            results.append(await work())

    task = asyncio.get_running_loop().create_task(run())
    _running.add(task)
    task.add_done_callback(_running.discard)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        scope.cancel()
        raise
    (result,) = results
    return result
