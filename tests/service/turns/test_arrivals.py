"""Requests of clients that give no keys, and which of them are one turn."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from gateway.chat import Accepted, ChatRequest
from gateway.errors import Overloaded
from gateway.ids import LOCAL_USER as ME
from tests.support.services import RunningServices, running_services

REQUEST = b"/v1/chat/completions next"
REPEAT_S = "gateway.chat.departures.REPEAT_S"


def taking(services: RunningServices) -> Callable[[str], Awaitable[Accepted]]:
    async def take(key: str) -> Accepted:
        asked = ChatRequest(message="next", idempotency_key=key)
        return await services.chat.intake.accept(ME, asked)

    return take


async def refuse(_: str) -> Accepted:  # noqa: RUF029  taken where `taking` is
    raise Overloaded("Too many turns are running.")


async def test_a_counted_repetition_is_the_turn_that_just_ended(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        accept, take = services.chat.arrivals.accept, taking(services)
        first = await accept(ME, REQUEST, 0, take)
        await services.result_of(first)
        assert await accept(ME, REQUEST, 1, take) == first
        assert (await accept(ME, REQUEST, 0, take)).turn_id != first.turn_id


async def test_a_counted_repetition_of_a_refused_request_is_no_earlier_turn(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        accept, take = services.chat.arrivals.accept, taking(services)
        first = await accept(ME, REQUEST, 0, take)
        await services.result_of(first)
        for attempt in (0, 1):
            with pytest.raises(Overloaded):
                await accept(ME, REQUEST, attempt, refuse)
        second = await accept(ME, REQUEST, 2, take)
        assert second.turn_id != first.turn_id
        assert await accept(ME, REQUEST, 3, take) == second


async def test_a_counted_repetition_is_no_turn_that_ended_long_ago(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_services(tmp_path) as services:
        accept, take = services.chat.arrivals.accept, taking(services)
        first = await accept(ME, REQUEST, 0, take)
        await services.result_of(first)
        monkeypatch.setattr(REPEAT_S, -1.0)
        assert (await accept(ME, REQUEST, 1, take)).turn_id != first.turn_id
