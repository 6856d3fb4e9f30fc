"""Waiting for the first of several things."""

from collections.abc import Awaitable, Callable

import anyio


async def until_any(*waits: Callable[[], Awaitable[object]]) -> None:
    """Wait until one of these ends; the others are cancelled."""
    async with anyio.create_task_group() as tasks:

        async def wait(one: Callable[[], Awaitable[object]]) -> None:
            await one()
            tasks.cancel_scope.cancel()

        for one in waits:
            tasks.start_soon(wait, one)
