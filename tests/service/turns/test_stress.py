"""Many conversations and random operations: every turn ends once, and nothing is left behind."""

import contextlib
import random
from collections import Counter
from pathlib import Path

import anyio
import pytest

from gateway.errors import Busy, Conflict, NotFound, Overloaded
from gateway.ids import LOCAL_USER as ME
from gateway.turns.requests import Accepted
from tests.support.services import RunningServices, kinds, running_services, script

LS = {"tool": "Bash", "input": {"command": "ls"}}
MESSAGES = [
    "hello",
    script({"text": "some words to say", "delta_delay_ms": 2}),
    script(LS, {"text": "Done."}),
    script(LS, {"empty": True}, {"on_followup": [{"text": "Listed."}]}),
    script(LS, {"empty": True}, {"on_followup": [{"status": 401, "times": 20}]}),
    script({"tool": "Bash", "input": {"command": "curl x"}}, {"text": "No."}),
    script({"repeat": LS, "times": 9}),
    script({"status": 401, "times": 20}),
    script({"status": 529, "times": 1}, {"text": "Recovered."}),
    script({"text": "partial", "delta_delay_ms": 5}, {"hang": True}),
]


class Client:
    """Somebody who does random things to one conversation."""

    def __init__(self, services: RunningServices, seed: int, turns: list[Accepted]) -> None:
        self.services = services
        self.dice = random.Random(seed)
        self.turns = turns
        self.conversation_id: str | None = None

    async def live(self) -> None:
        await self.say()
        for _ in range(self.dice.randrange(3, 9)):
            rarer = (self.interrupt, self.take_back, self.leave, self.fork, self.kill)
            try:
                await self.dice.choice((self.say, self.say, *rarer))()
            except (Busy, Conflict, NotFound, Overloaded):
                continue
            for _ in range(self.dice.randrange(40)):
                await anyio.lowlevel.checkpoint()
        if self.dice.random() < 0.2:
            await self.delete()

    async def say(self) -> None:
        accepted = await self.services.send(
            self.dice.choice(MESSAGES),
            self.conversation_id,
            when_busy=self.dice.choice(["enqueue", "reject", "interrupt"]),
            new_conversation=self.conversation_id is not None and self.dice.random() < 0.1,
        )
        self.conversation_id = accepted.conversation_id
        self.turns.append(accepted)

    async def interrupt(self) -> None:
        await self.services.interrupt(str(self.conversation_id))

    async def take_back(self) -> None:
        turn = self.dice.choice(self.turns)
        await self.services.chat.intake.take_back(ME, turn.conversation_id, turn.turn_id)

    async def leave(self) -> None:
        self.conversation_id = await self.services.create(leaving=self.conversation_id)

    async def fork(self) -> None:
        history = await self.services.messages_of(str(self.conversation_id), limit=5)
        if history:
            self.conversation_id = await self.services.fork(
                str(self.conversation_id), self.dice.choice(history).id
            )

    async def kill(self) -> None:
        clients = self.services.scripted.clients
        if clients and self.dice.random() < 0.3:
            await self.dice.choice(clients).kill()

    async def delete(self) -> None:
        await self.services.delete(str(self.conversation_id))


async def end_all(services: RunningServices) -> None:
    """Interrupt what hangs until nothing runs or waits."""
    while not services.lanes.is_empty:
        for view in await services.views():
            if view.state == "running":
                with contextlib.suppress(Conflict, NotFound):
                    await services.interrupt(view.conversation.id)


@pytest.mark.parametrize(
    ("seed", "count"), [(0, 20), *(pytest.param(n, 60, marks=pytest.mark.soak) for n in range(10))]
)
async def test_conversations_with_random_operations_leave_nothing_behind(
    tmp_path: Path, seed: int, count: int
) -> None:
    turns: list[Accepted] = []
    async with running_services(
        tmp_path, max_live_clients=6, interrupt_grace_s=5, prewarmed_clients=1
    ) as services:
        with anyio.fail_after(120):
            async with anyio.create_task_group() as clients:
                for n in range(count):
                    clients.start_soon(Client(services, seed * 1000 + n, turns).live)
            await end_all(services)
        ended = 0
        for accepted in turns:
            try:
                result = await services.chat.reader.result(ME, accepted.turn_id)
            except NotFound:
                continue  # deleted with its conversation
            ended += 1
            async with services.chat.reader.follow_turn(accepted) as subscription:
                events = await subscription.next(5)
            assert events[-1].type == "turn.completed"
            assert Counter(kinds(events))["turn.completed"] == 1
            assert [event.n for event in events] == list(range(1, len(events) + 1))
            tools = [tool["status"] for tool in result["tools"]]
            assert set(tools) <= {"ok", "failed", "denied", "interrupted", "unknown"}
            assert Counter(kinds(events))["tool.started"] == len(tools)
            assert Counter(kinds(events))["tool.finished"] == len(tools)
            assert result["reply"].strip()
        assert ended > count
        assert services.log.backlog == 0
        assert len(services.scripted.clients) <= 6 + 6, "of conversations, and prewarmed"
        services.assert_nothing_is_left()
