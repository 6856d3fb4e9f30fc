"""Readers of events: any number, from any place, none twice and none missing."""

import random
from pathlib import Path

import anyio
import pytest

from gateway.conversations.model import TurnEvent
from gateway.errors import NotFound
from gateway.ids import LOCAL_USER as ME
from gateway.ids import UserId
from gateway.turns.requests import Accepted
from tests.support.services import RunningServices, running_services, script

LS = {"tool": "Bash", "input": {"command": "ls"}}
WORDY = script({"text": "one two three four"}, LS, {"thinking": "hm", "text": "five six"})


async def read(
    services: RunningServices, conversation_id: str, after: str | None, completed: int
) -> list[TurnEvent]:
    """Read until so many turns have completed."""
    found: list[TurnEvent] = []
    with anyio.fail_after(30):
        async with await services.chat.reader.follow(ME, conversation_id, after) as subscription:
            while sum(found_item.type == "turn.completed" for found_item in found) < completed:
                found += await subscription.next(5)
    return found


async def test_from_every_event_on_the_rest_comes_once_and_in_order(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        first = await services.ask(WORDY)
        conversation_id = first["conversation_id"]
        for _ in range(3):
            await services.ask(WORDY, conversation_id)
        whole = await read(services, conversation_id, f"{first['turn_id']}:0", 4)
        assert len({event.id for event in whole}) == len(whole) > 20
        for place in range(len(whole) - 1):
            left = sum(each_event.type == "turn.completed" for each_event in whole[place + 1 :])
            rest = await read(services, conversation_id, whole[place].id, left)
            assert rest == whole[place + 1 :]


async def test_who_names_no_event_sees_only_what_comes_from_now_on(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        first = await services.ask("hello")
        conversation_id = first["conversation_id"]
        async with await services.chat.reader.follow(ME, conversation_id) as subscription:
            second = await services.ask("hello again", conversation_id)
            with anyio.fail_after(30):
                events = await subscription.next(5)
        assert {event.turn_id for event in events} == {second["turn_id"]}
        assert events[0].n == 1


async def test_readers_that_come_at_any_moment_see_the_same(tmp_path: Path) -> None:
    dice = random.Random(1)
    seen: list[list[TurnEvent]] = []

    async def follow(services: RunningServices, accepted: Accepted, moments: int) -> None:
        for _ in range(moments):
            await anyio.lowlevel.checkpoint()
        seen.append(await services.events_of(accepted))

    async with running_services(tmp_path) as services:
        words = {"text": "word " * 60, "delta_delay_ms": 1}
        accepted = await services.send(script(words, LS, {"text": "end"}))
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(follow, services, accepted, dice.randrange(400))
        services.assert_nothing_is_left()
    assert len(seen) == 20
    assert all(events == seen[0] for events in seen)
    assert [each_events.n for each_events in seen[0]] == list(range(1, len(seen[0]) + 1))


async def test_a_result_is_its_owners_alone(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        accepted = await services.send("hello")
        await services.result_of(accepted)
        with pytest.raises(NotFound):
            await services.chat.reader.result(UserId("bob"), accepted.turn_id)
        assert await services.chat.reader.owns_turn(ME, accepted.turn_id)
        assert not await services.chat.reader.owns_turn(UserId("bob"), accepted.turn_id)
