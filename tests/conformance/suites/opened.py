"""What the suites' tests are given: what a subclass opens, open, or the way to open it once more."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest


class OpenedSuite:
    """A suite whose subclass supplies the fixture `opens`."""

    @pytest.fixture
    async def opened(
        self, opens: Callable[[], AbstractAsyncContextManager[Any]]
    ) -> AsyncIterator[Any]:
        """Return what is open while the test runs."""
        async with opens() as one:
            yield one


def named(part: str, *suites: object) -> Callable[..., Awaitable[None]]:
    """Return the one test of the suites whose name has this part."""
    (found,) = [
        getattr(suite, name)
        for suite in suites
        for name in dir(suite)
        if name.startswith("test_") and part in name
    ]
    return found  # type: ignore[no-any-return]


async def run_test(
    test: Callable[..., Awaitable[None]],
    opens: Callable[[], AbstractAsyncContextManager[Any]],
    **case: Any,
) -> None:
    """Run a single test of a suite on what `opens` opens."""
    if "opens" in inspect.signature(test).parameters:
        await test(opens=opens, **case)
    else:
        async with opens() as opened:
            await test(opened, **case)
