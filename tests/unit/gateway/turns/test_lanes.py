from dataclasses import replace
from typing import cast

import anyio

from gateway.conversations.event_log import TurnEvents
from gateway.conversations.model import Turn
from gateway.ids import ConversationId, TurnId, UserId
from gateway.turns.control import TurnControl
from gateway.turns.lanes import Lanes, Ticket
from tests.support.builders import NOON

HERE, THERE = ConversationId("cnv_here"), ConversationId("cnv_there")


def ticket(n: int, conversation_id: ConversationId = HERE) -> Ticket:
    turn = Turn(
        id=TurnId(f"trn_{n}"),
        conversation_id=conversation_id,
        user_id=UserId("ann"),
        seq=n,
        state="queued",
        message="hello",
        created_at=NOON,
    )
    return Ticket(turn=turn, events=cast("TurnEvents", None), control=TurnControl())


class Runs:
    """Turns that run until they are told to stop."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.broken = False

    async def run(self, one: Ticket) -> None:
        self.begun.append(one.turn.id)
        if self.broken:
            raise RuntimeError("broken")
        await one.control.wait_stop()


async def test_places_are_told_and_what_is_about_to_run_counts_as_running() -> None:
    runs = Runs()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            lanes = Lanes(runs.run, tasks)
            tickets = [ticket(n) for n in range(3)]
            assert [lanes.join(each_ticket) for each_ticket in tickets] == [0, 1, 2]
            assert lanes.running(HERE) is None
            assert lanes.current(HERE) is tickets[0]
            assert lanes.waiting(HERE) == tickets[1:]
            await anyio.wait_all_tasks_blocked()
            assert lanes.running(HERE) is lanes.current(HERE) is tickets[0]
            assert lanes.waiting(HERE) == tickets[1:]
            assert lanes.join(ticket(3)) == 3
            assert lanes.join(ticket(4, THERE)) == 0
            await anyio.wait_all_tasks_blocked()
            assert (lanes.running_count, lanes.queued_count) == (2, 3)
            for item in (*tickets, *lanes.waiting(HERE)):
                item.control.stop("user_interrupt")
            running = lanes.running(THERE)
            assert running is not None
            running.control.stop("user_interrupt")
    assert lanes.is_empty
    assert runs.begun == ["trn_0", "trn_4", "trn_1", "trn_2", "trn_3"]


async def test_a_turn_that_raises_does_not_stop_those_behind_it() -> None:
    runs = Runs()
    runs.broken = True
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            lanes = Lanes(runs.run, tasks)
            for n in range(3):
                lanes.join(ticket(n))
    assert runs.begun == ["trn_0", "trn_1", "trn_2"]
    assert lanes.is_empty


async def test_only_what_has_not_begun_is_taken_back() -> None:
    runs = Runs()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            lanes = Lanes(runs.run, tasks)
            tickets = [ticket(n) for n in range(4)]
            for each_ticket in tickets:
                lanes.join(each_ticket)
            await anyio.wait_all_tasks_blocked()
            assert lanes.take_back(HERE, TurnId("trn_0")) is None
            assert lanes.take_back(THERE, TurnId("trn_1")) is None
            assert lanes.take_back(HERE, TurnId("trn_2")) is tickets[2]
            assert lanes.take_back(HERE, TurnId("trn_2")) is None
            assert lanes.take_all_back(HERE) == [tickets[1], tickets[3]]
            assert lanes.take_all_back(THERE) == []
            assert lanes.is_busy(HERE)
            tickets[0].control.stop("user_interrupt")
    assert runs.begun == ["trn_0"]
    assert lanes.is_empty


async def test_closing_starts_nothing_more_and_stops_what_runs_after_the_grace() -> None:
    runs = Runs()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            lanes = Lanes(runs.run, tasks)
            first, second = ticket(0), ticket(1)
            lanes.join(first)
            lanes.join(second)
            await anyio.wait_all_tasks_blocked()
            await lanes.close(grace_s=0)
            assert (first.control.reason, first.control.cause) == ("user_interrupt", "shutdown")
            assert not second.control.is_stopping
            assert lanes.join(replace(second, turn=ticket(2, THERE).turn)) == 0
            assert lanes.current(THERE) is None
            await lanes.close(grace_s=0)
    assert runs.begun == ["trn_0"]
    assert lanes.waiting(HERE) == [second]
