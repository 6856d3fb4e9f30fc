"""Requests of clients that give no keys, and which of them are one turn."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from gateway.chat import Accepted, ChatRequest
from gateway.conversations.sql.turns import TurnStore
from gateway.conversations.store import KeyedTurn
from gateway.errors import Overloaded
from gateway.ids import LOCAL_USER as ME
from gateway.ids import UserId
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


@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 100, 1000])
async def test_a_message_that_is_sent_very_often_costs_few_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    async with running_services(tmp_path) as services:
        first = await services.begin()
        asked, taken = list[str](), list[str]()

        async def find_key(_: TurnStore, __: UserId, key: str) -> KeyedTurn | None:  # noqa: RUF029
            asked.append(key)
            period, number = key.split(":")[-2:]
            is_known = period == asked[0].split(":")[-2] and int(number) < count
            return KeyedTurn(turn_id=first.turn_id, request_hash="") if is_known else None

        async def take(key: str) -> Accepted:  # noqa: RUF029  as `taking`
            taken.append(key)
            return first

        monkeypatch.setattr(TurnStore, "find_key", find_key)
        await services.chat.arrivals.accept(ME, REQUEST, 0, take)
    assert [key.rpartition(":")[2] for key in taken] == [str(count)]
    assert len(asked) <= 2 * count.bit_length() + 2
