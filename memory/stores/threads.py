"""Functions that run whole in a thread, whatever happens to the task that waits for them."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


async def run_to_end(threads: Executor, work: Callable[..., T], *arguments: Any) -> T:
    """Run `work` in one of the threads and return its result.

    A task that is cancelled from outside of anyio leaves the function running; this returns only
    when it has ended, so that nobody reads what is not yet decided.
    """
    running = asyncio.get_running_loop().run_in_executor(threads, work, *arguments)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        with suppress(Exception):
            await running
        raise
