"""Calls of a service: bounded in time and in size."""

import threading
from typing import Any

import anyio
import pytest

from memory.outbox.backend import BackendUnavailable
from memory.outbox.json_service import Answer, JsonService
from tests.unit.memory.backends.memu_services import Reply, served

WAIT_S = 20


def service(address: str, *, timeout_s: float = WAIT_S) -> JsonService:
    return JsonService(address, name="It", timeout_s=timeout_s, max_bytes=1000, api_key="k")


@pytest.mark.parametrize("chars", [0, 1, 1000 - len('""')])
async def test_an_answer_within_the_bound_is_read(chars: int) -> None:
    with served(lambda *_: (200, "x" * chars)) as address:
        one = service(address)
        assert await one.call("GET", "/") == Answer(status=200, body="x" * chars)
        await one.close()


@pytest.mark.parametrize("chars", [1000 - len('""') + 1, 5_000_000])
async def test_an_answer_beyond_it_is_not(chars: int) -> None:
    with served(lambda *_: (200, "x" * chars)) as address:
        one = service(address)
        with pytest.raises(BackendUnavailable, match="too much"):
            await one.call("GET", "/")
        await one.close()


async def test_a_service_that_does_not_answer_is_given_up() -> None:
    given_up = threading.Event()

    def wait(*_: Any) -> Reply:
        given_up.wait(WAIT_S)
        return 200, {}

    with served(wait) as address, anyio.fail_after(WAIT_S):
        one = service(address, timeout_s=0.1)
        with pytest.raises(BackendUnavailable, match="in time"):
            await one.call("GET", "/")
        given_up.set()
        await one.close()


async def test_a_closed_service_can_be_closed_again() -> None:
    one = service("http://127.0.0.1:9")
    await one.close()
    await one.close()
