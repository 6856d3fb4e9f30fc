"""A turn begins: its start is stored, its prompt sent, and memory asked beside it."""

import json
from pathlib import Path

import anyio
import pytest

from gateway.conversations.sql.turns import TurnStore
from gateway.engine.protocol import Prompt
from gateway.ids import ConversationId
from gateway.turns.requests import Accepted
from memory.errors import StoreUnavailable
from memory.recall.query import ContextPack, QueryPack
from tests.support.builders import REMEMBERED, Memory
from tests.support.engine_talk import until
from tests.support.scripted_engine import ScriptedClient, ScriptedRun
from tests.support.services import (
    HANG,
    Held,
    RunningServices,
    hold_calls,
    kinds,
    of_kind,
    running_services,
    script,
)

ECHO = script({"echo": "context"})
FULL = StoreUnavailable("The database cannot be written: the disk is full.")


class SlowMemory(Memory):
    """A memory that is held up."""

    def __init__(self, pack: ContextPack) -> None:
        super().__init__(pack)
        self.held = Held()

    async def recall(self, query: QueryPack) -> ContextPack:
        await self.held.hold()
        return await super().recall(query)


@pytest.fixture
def prompts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the texts that are sent to agents."""
    sent: list[str] = []
    real = ScriptedClient.start_run

    async def start_run(client: ScriptedClient, prompt: Prompt) -> ScriptedRun:
        sent.append(prompt.text)
        return await real(client, prompt)

    monkeypatch.setattr(ScriptedClient, "start_run", start_run)
    return sent


async def reached(event: anyio.Event) -> None:
    with anyio.fail_after(30):
        await event.wait()
    await anyio.wait_all_tasks_blocked()


async def send_into_queue(services: RunningServices, prompts: list[str]) -> Accepted:
    """Send a message behind a running turn, then end that one: the message's start is stored by itself."""
    running = await services.begin()
    accepted = await services.send("hello", running.conversation_id)
    await services.stop(running)
    prompts.clear()
    return accepted


async def test_a_message_into_a_free_lane_is_accepted_and_started_in_one(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        accepted = await services.send(HANG)
        (stored,) = await services.messages_of(accepted.conversation_id)
        async with services.chat.reader.follow_turn(accepted) as events:
            first = (await events.next(0))[0]
        result = await services.stop(accepted)
    assert (stored.state, stored.started_at) == ("running", stored.created_at)
    assert (first.type, first.id) == ("turn.started", f"{accepted.turn_id}:1")
    assert json.loads(first.data)["log_file"] == result["log_file"]


async def test_the_prompt_does_not_wait_for_the_commit_and_the_model_and_the_person_do(
    tmp_path: Path, prompts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_services(tmp_path) as services:
        conversation_id = (await services.ask("hello"))["conversation_id"]
        for known in (conversation_id, None):
            prompts.clear()
            held = hold_calls(monkeypatch, TurnStore.accept, once=True)
            taken: list[Accepted] = []

            async def take(known: str | None = known, taken: list[Accepted] = taken) -> None:
                taken.append(await services.send(HANG, known))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(take)
                await reached(held.came)
                await until(lambda: bool(prompts))
                await anyio.wait_all_tasks_blocked()
                running = services.scripted.clients[-1]._run  # noqa: SLF001
                assert running is not None
                before = (list(taken), running.asks_model)
                held.let_go.set()
            assert before == ([], False)
            told = kinds(await services.events_of(taken[0], until="text.delta"))
            assert (told[0], told[-1]) == ("turn.started", "text.delta")
            await services.interrupt(taken[0].conversation_id)
            await services.result_of(taken[0])


async def test_a_message_whose_commit_is_refused_leaves_nothing_and_ends_its_client(
    tmp_path: Path, prompts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_services(tmp_path) as services:
        conversation_id = (await services.ask("hello"))["conversation_id"]
        prompts.clear()
        held = hold_calls(monkeypatch, TurnStore.accept, failure=FULL, once=True)

        async def refused() -> None:
            with pytest.raises(StoreUnavailable):
                await services.send("lost", conversation_id)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(refused)
            await until(lambda: bool(prompts))
            held.let_go.set()
        await until(lambda: services.lanes.is_empty)
        services.assert_nothing_is_left()
        alive = list(services.scripted.clients)
        after = await services.ask(script({"echo": "messages"}), conversation_id)
        messages = await services.messages_of(conversation_id)
        events = await services.log.feed.read(ConversationId(conversation_id), 0, None, 1000)
        sessions = [session.prompts for session in services.scripted.sessions.values()]
    assert (prompts[0], alive, after["outcome"]) == ("lost", [], "answered")
    assert messages[0].message == "hello"
    assert {event.turn_id for event in events} == {message.id for message in messages}
    assert not any("lost" in texts for texts in sessions)


async def test_a_message_whose_commit_a_kill_forestalled_was_never_accepted(
    tmp_path: Path, prompts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    async with running_services(before) as services:
        conversation_id = (await services.ask("hello"))["conversation_id"]
        prompts.clear()
        held = hold_calls(monkeypatch, TurnStore.accept, once=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(services.send, "again", conversation_id)
            await until(lambda: bool(prompts))
            await services.copy_as_after_a_crash(after)
            sessions = services.same_sessions()
            held.let_go.set()
    prompts.clear()
    async with running_services(after, make_engine=sessions) as services:
        messages = await services.messages_of(conversation_id)
        result = await services.ask("and now", conversation_id)
    assert [message.message for message in messages] == ["hello"]
    assert (prompts, result["outcome"]) == (["and now"], "answered")


async def test_no_prompt_is_sent_before_the_start_is_stored(
    tmp_path: Path, prompts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn that was killed there runs after the next start of the server."""
    before, after = tmp_path / "before", tmp_path / "after"
    async with running_services(before) as services:
        held = hold_calls(monkeypatch, TurnStore.start, once=True)
        accepted = await send_into_queue(services, prompts)
        await reached(held.came)
        sent_before = list(prompts)
        await services.copy_as_after_a_crash(after)
        sessions = services.same_sessions()
        held.let_go.set()
        result = await services.result_of(accepted)
    assert sent_before == []
    assert (prompts, result["outcome"]) == (["hello"], "answered")
    prompts.clear()
    async with running_services(after, make_engine=sessions) as services:
        result = await services.result_of(accepted)
    assert (prompts, result["outcome"]) == (["hello"], "answered")


async def test_a_start_that_cannot_be_stored_sends_nothing(
    tmp_path: Path, prompts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_services(tmp_path) as services:
        held = hold_calls(monkeypatch, TurnStore.start, failure=FULL)
        held.let_go.set()
        result = await services.result_of(await send_into_queue(services, prompts))
        services.assert_nothing_is_left()
    assert (prompts, result["outcome"]) == ([], "engine_failed")


async def test_the_prompt_does_not_wait_for_memory_and_the_model_does(
    tmp_path: Path, prompts: list[str]
) -> None:
    """A stop while the model waits is told, and nothing was shown."""
    memory = SlowMemory(REMEMBERED)
    async with running_services(tmp_path, memory=memory, recall_deadline_ms=60_000) as services:
        accepted = await services.send(ECHO)
        await reached(memory.held.came)
        await until(lambda: bool(prompts))
        memory.held.let_go.set()
        result = await services.result_of(accepted)
        told = kinds(await services.events_of(accepted))
        services.assert_nothing_is_left()
        assert result["reply"] == REMEMBERED.text
        assert told.index("memory.injected") < told.index("text.delta")
        memory.held = Held()
        accepted = await services.send(ECHO)
        await reached(memory.held.came)
        await until(lambda: len(prompts) == 2)
        result = await services.stop(accepted)
        events = await services.events_of(accepted)
        services.assert_nothing_is_left()
        memory.held.let_go.set()
        after = await services.ask(ECHO, accepted.conversation_id)
    assert prompts == [ECHO] * 3
    assert (result["outcome"], result["stop_reason"]) == ("interrupted", "user_interrupt")
    assert (result["memory"]["injected"], of_kind(events, "memory.injected")) == ([], [])
    assert after["reply"] == REMEMBERED.text


async def test_a_live_client_has_the_prompt_before_memory_is_asked(
    tmp_path: Path, prompts: list[str]
) -> None:
    memory = Memory(REMEMBERED)
    order: list[str] = []
    real = memory.recall

    async def recall(query: QueryPack) -> ContextPack:
        order.extend(["sent"] * (len(prompts) - 1) + ["asked"])
        return await real(query)

    async with running_services(tmp_path, memory=memory, recall_deadline_ms=60_000) as services:
        first = await services.ask(ECHO)
        memory.recall = recall  # type: ignore[method-assign]
        second = await services.ask(ECHO, first["conversation_id"])
    assert order == ["sent", "asked"]
    assert second["reply"] == REMEMBERED.text
