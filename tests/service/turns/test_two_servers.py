"""Two servers on one database: one of them runs a conversation, and the other one may follow it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.conversations.leases import Node
from gateway.conversations.model import COMPLETED, Turn, TurnEvent
from gateway.conversations.sql.leases import LeaseStore
from gateway.conversations.sql.turns import TurnStore
from gateway.errors import Conflict, NotStored, Overloaded, ShuttingDown
from gateway.ids import LOCAL_USER, ConversationId, NodeId
from gateway.turns.ownership import Heart, HeldElsewhere
from gateway.turns.requests import Accepted
from tests.support.services import HANG, RunningServices, hold_calls, running_services, script
from tests.support.stores import open_file


@pytest.fixture(autouse=True)
def beating_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """A beat of a server that a test takes for dead would bring it back."""
    monkeypatch.setattr("gateway.nodes.LONE", Heart(beat_s=3600))


@asynccontextmanager
async def two_servers(
    root: Path,
) -> AsyncIterator[tuple[RunningServices, RunningServices, LeaseStore]]:
    """Open two servers, and their leases."""
    async with (
        running_services(root / "a", node="a") as here,
        running_services(root / "b", node="b", beside=root / "a") as there,
        open_file(here.settings.data_dir) as database,
    ):
        yield here, there, LeaseStore(database)


async def stored_in(services: RunningServices, conversation_id: str) -> list[TurnEvent]:
    subscription = await services.chat.reader.follow_all(LOCAL_USER, conversation_id)
    async with subscription:
        return await subscription.next(0)


async def logs_of(services: RunningServices) -> list[anyio.Path]:
    """List the logs of the turns that a server ran or recovered."""
    return [path async for path in anyio.Path(services.settings.log_dir).rglob("*.jsonl")]


@pytest.mark.parametrize("notices_by", ["writing", "beating"])
async def test_a_server_that_was_taken_for_dead_writes_nothing_and_stops(
    tmp_path: Path, notices_by: str
) -> None:
    async with (
        running_services(tmp_path) as here,
        open_file(here.settings.data_dir) as database,
    ):
        leases, rival = LeaseStore(database), Node(id=NodeId("rival"), incarnation="1")
        accepted = await here.begin()
        where = accepted.conversation_id
        waiting = await here.send("And then?", where)
        await here.events_of(waiting, until="turn.queued")
        await leases.join(rival, ttl_ms=3_600_000)
        await leases.beat(here.ownership.node, ttl_ms=0)
        assert await leases.take(rival, where) is not None
        before = await stored_in(here, where)
        told: list[Accepted] = []

        async def wait_for(one: Accepted) -> None:
            with pytest.raises(NotStored):
                await here.result_of(one)
            told.append(one)

        async with anyio.create_task_group() as tasks:
            for one in (accepted, waiting):
                tasks.start_soon(wait_for, one)
            await anyio.wait_all_tasks_blocked()
            if notices_by == "writing":
                await here.interrupt(where)
            else:
                await here.ownership.beat()
        assert len(told) == 2
        with pytest.raises(Overloaded):
            await here.send("And now?", where)
        await here.chat.intake.shut_down(grace_s=0)
        assert await stored_in(here, where) == before
        found = [turn.state for turn in await here.messages_of(where)]
        assert found == ["running", "queued"]
        assert not any(client.is_alive() for client in here.scripted.clients)
        here.assert_nothing_is_left()


@pytest.mark.parametrize("say", ["Please write.", "请写入。"])
async def test_what_was_allowed_for_a_conversation_ends_when_another_server_takes_it(
    tmp_path: Path, say: str
) -> None:
    """Nobody can withdraw it there; it must not count again when the conversation comes back."""
    write = {"tool": "Write", "input": {"file_path": "b.txt", "content": "x"}}
    message = f"{say}\n{script(write, {'text': 'Done.'})}"
    async with (
        running_services(tmp_path, approvals="on") as here,
        open_file(here.settings.data_dir) as database,
    ):
        accepted = await here.send(message)
        where = accepted.conversation_id
        question = await here.question_of(accepted)
        await here.answer(question, "allow", remember="conversation", reach="folder")
        await here.result_of(accepted)
        assert len(await here.chat.approvals.rules(LOCAL_USER, where)) == 1
        leases, rival = LeaseStore(database), Node(id=NodeId("rival"), incarnation="1")
        await leases.join(rival, ttl_ms=3_600_000)
        await leases.beat(here.ownership.node, ttl_ms=0)
        assert await leases.take(rival, where) is not None
        await here.ownership.beat()
        await leases.leave(rival)
        assert not await here.chat.approvals.rules(LOCAL_USER, where)
        again = await here.send(message, where)
        await here.answer(await here.question_of(again), "deny")
        await here.result_of(again)


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (HANG, "The server lost its database while this turn was running"),
        (f"请开始。\n{HANG}", "这一轮运行时服务器失去了数据库"),
    ],
    ids=["en", "zh"],
)
async def test_a_turn_that_its_own_server_let_go_is_told_as_that(
    tmp_path: Path, message: str, sentence: str
) -> None:
    """The server did not stop."""
    async with running_services(tmp_path) as here:
        accepted = await here.begin(message)
        here.ownership.let_go()
        await here.ownership.beat()
        result = await here.result_of(accepted)
        assert sentence in result["reply"]
        assert (result["outcome"], result["cause"]) == ("engine_failed", "database_lost")


async def test_a_turn_that_another_server_let_go_is_told_as_that_by_the_one_that_takes_it(
    tmp_path: Path,
) -> None:
    async with two_servers(tmp_path) as (here, there, leases):
        accepted = await here.begin()
        here.ownership.let_go()
        await leases.let_go(here.ownership.node, accepted.conversation_id)
        await there.ownership.beat()
        result = await there.result_of(accepted)
        assert (result["outcome"], result["cause"]) == ("engine_failed", "database_lost")


async def test_servers_that_were_without_the_database_leave_each_other_time_to_come_back(
    tmp_path: Path,
) -> None:
    """The one that comes first does not know whether the other one died meanwhile."""
    async with two_servers(tmp_path) as (here, there, leases):
        accepted = await here.begin()
        here.ownership.let_go()
        for services in (here, there):
            await leases.beat(services.ownership.node, ttl_ms=0)
        for services in (there, here, there):
            await services.ownership.beat()
        result = await here.result_of(accepted)
        assert (result["outcome"], result["cause"]) == ("engine_failed", "database_lost")


async def test_a_server_that_died_during_an_outage_is_taken_over_after_a_few_beats(
    tmp_path: Path,
) -> None:
    async with two_servers(tmp_path) as (here, there, leases):
        accepted = await here.begin()
        for services in (here, there):
            await leases.beat(services.ownership.node, ttl_ms=0)
        for _ in range(3):
            await there.ownership.beat()
        assert (await there.result_of(accepted))["cause"] == "crashed"


async def test_a_server_that_starts_leaves_the_turns_of_a_living_one_alone(tmp_path: Path) -> None:
    async with running_services(tmp_path / "a", node="a") as here:
        accepted = await here.begin()
        waiting = await here.send("And then?", accepted.conversation_id)
        async with running_services(tmp_path / "b", node="b", beside=tmp_path / "a") as there:
            await there.ownership.beat()
            found = await there.messages_of(accepted.conversation_id)
            assert [turn.state for turn in found] == ["running", "queued"]
            with pytest.raises(Overloaded):
                await there.send("From elsewhere.", accepted.conversation_id)
            assert not there.scripted.clients
            assert not await logs_of(there)
        assert (await here.stop(accepted))["outcome"] == "interrupted"
        assert (await here.result_of(waiting))["outcome"] == "answered"


@pytest.mark.parametrize("found_by", ["a_message", "a_beat"])
async def test_what_a_dead_server_left_is_ended_before_anything_new_and_its_queue_goes_on(
    tmp_path: Path, found_by: str
) -> None:
    async with two_servers(tmp_path) as (here, there, leases):
        accepted = await here.begin()
        where = accepted.conversation_id
        waiting = await here.send(script({"text": "Then this."}), where)
        await here.events_of(waiting, until="turn.queued")
        await leases.beat(here.ownership.node, ttl_ms=0)
        if found_by == "a_message":
            new = await there.send(script({"text": "Now this."}), where)
            assert next(turn.state for turn in await there.messages_of(where)) == "completed"
        else:
            await there.ownership.beat()
            new = waiting
        assert (await there.result_of(new))["outcome"] == "answered"
        await here.ownership.beat()
        await here.chat.intake.shut_down(grace_s=0)
        turns = await there.messages_of(where)
        results = [(turn.result or {}) for turn in turns]
        assert [result["stop_reason"] for result in results][:2] == ["engine_crash", "end_turn"]
        assert {turn.epoch for turn in turns} == {2}
        assert results[1]["reply"] == "Then this."
        ends = [event for event in await stored_in(there, where) if event.type == COMPLETED]
        assert [event.turn_id for event in ends] == [turn.id for turn in turns]


async def test_a_server_that_drains_hands_over_what_rests_at_once_and_a_queue_with_its_turns_end(
    tmp_path: Path,
) -> None:
    async with two_servers(tmp_path) as (here, there, leases):
        resting = (await here.ask(script({"text": "Done."})))["conversation_id"]
        accepted = await here.begin()
        where = accepted.conversation_id
        waiting = await here.send(script({"text": "Then this."}), where)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(here.chat.intake.shut_down, grace_s=1000))
            with anyio.fail_after(20):
                while await leases.holder(ConversationId(resting)) is not None:  # noqa: ASYNC110  nothing tells
                    await anyio.sleep(0.01)
            assert (await there.ask(script({"text": "Here."}), resting))["outcome"] == "answered"
            await there.ownership.beat()
            assert await leases.holder(where) == here.ownership.node
            with pytest.raises(ShuttingDown):
                await here.send("Too late.", where)
            assert (await here.stop(accepted))["outcome"] == "interrupted"
        with anyio.fail_after(20):
            while await leases.holder(where) is not None:  # noqa: ASYNC110  nothing tells
                await anyio.sleep(0.01)
        await there.ownership.beat()
        assert (await there.result_of(waiting))["reply"] == "Then this."


async def send_and_let_go(
    here: RunningServices, patch: pytest.MonkeyPatch, conversation_id: str
) -> Accepted:
    """Send a message to a server that lets its conversations go when it has stored it."""
    accept = TurnStore.accept

    async def accept_and_let_go(*given: Any, **more: Any) -> Turn:
        stored = await accept(*given, **more)
        here.ownership.let_go()
        await here.ownership.beat()  # it releases nothing that is being stored
        return stored

    with patch.context() as patched:
        patched.setattr(TurnStore, "accept", accept_and_let_go)
        return await here.send("Hello?", conversation_id)


async def test_a_turn_that_is_stored_while_its_server_lets_go_waits_for_the_next_taker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would run beside the turn before it, whose end nobody has stored.

    It was accepted: who is told another thing sends it again.
    """
    async with running_services(tmp_path) as here:
        before = await here.begin()
        waited = await send_and_let_go(here, monkeypatch, before.conversation_id)
        turns = await here.messages_of(before.conversation_id)
        assert [turn.state for turn in turns] == ["running", "queued"]
        assert turns[-1].id == waited.turn_id
        await here.ownership.beat()
        assert (await here.result_of(waited))["outcome"] == "answered"
        assert (await here.result_of(before))["cause"] == "database_lost"


async def test_a_turn_that_begins_while_its_server_lets_go_is_accepted_and_told_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_services(tmp_path) as here:
        conversation_id = (await here.ask("Hello."))["conversation_id"]
        begun = await send_and_let_go(here, monkeypatch, conversation_id)
        await here.ownership.beat()
        result = await here.result_of(begun)
        assert (result["outcome"], result["cause"]) == ("engine_failed", "database_lost")
        assert len(await here.messages_of(conversation_id)) == 2


async def test_the_same_key_at_two_servers_at_once_is_one_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have found the key unused when the first of them stores it."""
    came: list[Turn] = []
    accepted: list[Accepted] = []

    def hold(turn: Turn) -> bool:
        came.append(turn)
        return True

    held = hold_calls(monkeypatch, TurnStore.accept, hold)

    async def send(services: RunningServices) -> None:
        accepted.append(await services.send(HANG, idempotency_key="k"))

    async with two_servers(tmp_path) as (here, there, _):
        async with anyio.create_task_group() as tasks:
            for services in (here, there):
                tasks.start_soon(send, services)
            while len(came) < 2:  # noqa: ASYNC110  nothing tells
                await anyio.sleep(0.01)
            held.let_go.set()
        assert accepted[0] == accepted[1]
        assert len(await here.views()) == 1
        assert [turn.state for turn in await here.messages_of(accepted[0].conversation_id)] == [
            "running"
        ]


async def test_a_repeated_message_waits_for_its_answer_where_another_server_runs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.chat.reader._LOOK_S", 0.01)
    results: list[dict[str, Any]] = []
    async with two_servers(tmp_path) as (here, there, _):
        accepted = await here.send(HANG, idempotency_key="k")
        await here.begun(accepted)
        repeated = await there.send(HANG, idempotency_key="k")
        looked = anyio.Event()
        get = TurnStore.get

        async def get_and_note(*given: Any) -> Turn | None:
            found = await get(*given)
            looked.set()
            return found

        async def wait() -> None:
            results.append(await there.result_of(repeated))

        async with anyio.create_task_group() as tasks:
            monkeypatch.setattr(TurnStore, "get", get_and_note)
            tasks.start_soon(wait)
            await looked.wait()
            stopped = await here.stop(accepted)
        assert results == [stopped]


async def closed(services: RunningServices, _: Accepted) -> str | None:
    """Shut the intake down; return the conversation to name, if any."""
    await services.chat.intake.shut_down(grace_s=0)
    return None


async def full(services: RunningServices, _: Accepted) -> str | None:
    """Start a turn, where no second one may run; return the conversation to name, if any."""
    await services.begin()
    return None


async def not_the_holder(_: RunningServices, held: Accepted) -> str | None:  # noqa: RUF029
    """Leave it as it is: the other one holds the conversation."""
    return held.conversation_id


@pytest.mark.parametrize("make", [closed, full, not_the_holder])
async def test_a_message_in_doubt_that_is_refused_is_stored_by_no_other_server_either(
    tmp_path: Path, make: Callable[[RunningServices, Accepted], Awaitable[str | None]]
) -> None:
    """What the other one has stored is found; what it would store later is refused there."""
    async with (
        running_services(tmp_path / "a", node="a") as here,
        running_services(
            tmp_path / "b", node="b", beside=tmp_path / "a", max_running_turns=1
        ) as there,
    ):
        held = await here.begin()
        where = await make(there, held)
        stored = await here.send("Hello.", where, idempotency_key="stored")
        before = len(await here.views())
        doubt = partial(there.send, "Hello.", where, is_in_doubt=True)
        assert await doubt(idempotency_key="stored") == stored
        with pytest.raises((Overloaded, ShuttingDown)) as refused:
            await doubt(idempotency_key="late")
        assert not isinstance(refused.value, HeldElsewhere)
        with pytest.raises(Conflict):
            await here.send("Hello.", where, idempotency_key="late")
        with pytest.raises((Overloaded, ShuttingDown)):
            await there.send("Hello.", where, idempotency_key="certain")
        assert (await here.send("Hello.", where, idempotency_key="certain")).turn_id
        assert len(await here.views()) == before + (where is None)
        await here.stop(held)
