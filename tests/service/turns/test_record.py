"""What was said in one conversation is found from another one, until it is deleted or switched off."""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import TaskStatus

from gateway.ids import LOCAL_USER as ME
from gateway.settings import Secret
from gateway.turns import record
from gateway.turns.conversation_memory import ConversationMemory
from memory.items.item import REPLY
from memory.items.scope import Scope
from memory.recall.query import ContextPack, QueryPack
from memory.stores.database import Engine
from memory.stores.sqlite.vacuum import IndexVacuum
from tests.service.turns.test_memory import intents_of
from tests.support.builders import codes
from tests.support.postgres import new_database_blocking
from tests.support.services import RunningServices, of_kind, running_services, script

TOLD = "My locker at the harbour gym is number 4711."
ASKED = "Which number has my locker at the harbour gym?"
QUIET: dict[str, Any] = {"learn": "off", "recall_deadline_ms": 5000}
"""Nothing but the record remembers what a person says."""
OK = script({"text": "Fine."})


@asynccontextmanager
async def services_on(engine: Engine, root: Path, **given: Any) -> AsyncIterator[RunningServices]:
    """Open services whose database is one of this engine."""
    with ExitStack() as stack:
        if engine == "postgresql":
            given["database_url"] = Secret(stack.enter_context(new_database_blocking("record")))
        async with running_services(root, **given) as services:
            yield services


async def tell(
    services: RunningServices, words: str = TOLD, conversation_id: str | None = None
) -> dict[str, Any]:
    return await services.ask(f"{words}\n{OK}", conversation_id)


async def shown(services: RunningServices, conversation_id: str | None = None) -> list[str]:
    """Ask in a conversation, by default in a new one that is deleted; return the turns that memory showed."""
    result = await services.ask(f"{ASKED}\n{script({'text': ''})}", conversation_id)
    if conversation_id is None:
        await services.delete(result["conversation_id"])
    return [entry["id"] for entry in result["memory"]["injected"] if entry["kind"] == "turn"]


async def recorded(services: RunningServices) -> set[str]:
    """Return the turns that the record holds."""
    found = await services.open_memory.items.newest(Scope(owner_id=ME), kinds=["turn"], limit=99)
    return {item.id for item in found}


async def sleep_until_stopped(
    _: object, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Replace the work in the background."""
    task_status.started()
    await anyio.sleep_forever()


async def test_a_deletion_that_a_crash_cut_off_is_finished_before_the_next_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The worker in the background must not see the deletion before the crash.
    monkeypatch.setattr(record.RecordWorker, "run", sleep_until_stopped)
    async with running_services(tmp_path, **QUIET) as services:
        told = await tell(services)
        assert await shown(services) == [told["turn_id"]]

        async def crash(_: object) -> None:
            await services.copy_as_after_a_crash(tmp_path / "later")

        monkeypatch.setattr(ConversationMemory, "changed", crash)
        await services.delete(told["conversation_id"])
        assert await recorded(services) != set()
        assert TOLD in repr(await intents_of(services))
    async with running_services(tmp_path / "later", **QUIET) as services:
        assert await recorded(services) == set()
        assert TOLD not in repr(await intents_of(services))


async def test_words_are_vacuumed_when_turns_are_deleted_and_not_when_they_are_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: set[IndexVacuum] = set()
    monkeypatch.setattr(IndexVacuum, "wake", lambda vacuum: woken.add(vacuum))  # noqa: PLW0108  bound
    async with running_services(tmp_path, **QUIET) as services:
        told = await tell(services)
        await shown(services, told["conversation_id"])
        assert told["turn_id"] in await recorded(services)
        assert services.open_memory.vacuum not in woken
        await services.delete(told["conversation_id"])
        assert services.open_memory.vacuum in woken


async def test_a_deleted_conversation_leaves_no_word_in_the_chronicle(tmp_path: Path) -> None:
    async with running_services(tmp_path, **QUIET) as services:
        told = await tell(services)
        asked = await tell(services, ASKED)
        assert told["turn_id"] in [entry["id"] for entry in asked["memory"]["injected"]]
        before = await intents_of(services)
        await services.delete(told["conversation_id"])
        after = await intents_of(services)
    assert TOLD in repr(before)
    assert after == [
        replace(old, text="", payload={}, forgotten=True)
        if old.turn_id == told["turn_id"] or old.key == "memory.injected"
        else old
        for old in before
    ]


async def test_a_fork_doubles_nothing_and_keeps_what_its_source_loses(tmp_path: Path) -> None:
    async with running_services(tmp_path, **QUIET) as services:
        told = await tell(services)
        fork = await services.fork(told["conversation_id"], told["turn_id"])
        assert await shown(services) == [told["turn_id"]]
        await services.delete(told["conversation_id"])
        (copy,) = await services.messages_of(fork)
        assert await shown(services) == [copy.id]
        assert copy.id not in await shown(services, fork), "the fork's agent has it word for word"
        await services.delete(fork)
        assert await shown(services) == []
        assert await recorded(services) == set()


async def test_memory_that_is_off_keeps_a_conversation_out(tmp_path: Path) -> None:
    async with running_services(tmp_path, **QUIET) as services:
        told = await tell(services)
        of = told["conversation_id"]
        await services.change(of, memory_enabled=False)
        assert await shown(services) == []
        secretly = await tell(services, "The locker at the harbour gym has a spare number.", of)
        await services.change(of, memory_enabled=True)
        assert await shown(services) == [told["turn_id"]]
        assert secretly["turn_id"] not in await recorded(services)


async def test_the_history_of_an_older_server_is_taken_over_and_a_switch_removes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batches are small, and the server stops after the first one."""
    monkeypatch.setattr(record, "_BATCH", 2)
    monkeypatch.setattr(record, "_REST_S", 0)
    async with running_services(tmp_path, record="off") as services:
        turns = [
            (await tell(services, f"Fact {n} about the {n}th lighthouse."))["turn_id"]
            for n in range(5)
        ]
        assert await recorded(services) == set()
    with monkeypatch.context() as patch:
        patch.setattr(record, "_REST_S", 3600)
        async with running_services(tmp_path, **QUIET) as services:
            await until(services, set(turns[3:]))
    async with running_services(tmp_path, **QUIET) as services:
        await until(services, set(turns))
    async with running_services(tmp_path, record="off") as services:
        assert await recorded(services) == set()


async def until(services: RunningServices, expected: set[str]) -> None:
    """Wait until the record holds exactly these turns."""
    with anyio.fail_after(30):
        while await recorded(services) != expected:  # noqa: ASYNC110  each look gives way
            await anyio.sleep(0.01)


async def test_what_a_conversation_has_in_its_history_is_not_shown_in_it(tmp_path: Path) -> None:
    """Not its own turns, nor those that a fork copied, nor twice what memory showed."""
    async with running_services(tmp_path, **QUIET) as services:
        told = await tell(services)
        of = told["conversation_id"]
        fork = await services.fork(of, told["turn_id"])
        for held in (of, fork, fork):
            assert told["turn_id"] not in await shown(services, held)
        elsewhere = await services.create(project_id="gym")
        assert told["turn_id"] in await shown(services, elsewhere)
        assert told["turn_id"] not in await shown(services, elsewhere)
        await services.change(of, project_id="gym")
        assert told["turn_id"] in await shown(services, elsewhere)


async def test_a_lost_session_brings_back_what_the_model_has_no_more(tmp_path: Path) -> None:
    async with running_services(tmp_path, **QUIET) as services:
        told = await tell(services)
        await services.copy_as_after_a_crash(tmp_path / "later")
    async with running_services(tmp_path / "later", **QUIET) as services:
        of = told["conversation_id"]
        await until(services, {told["turn_id"]})
        lost = await tell(services, ASKED, of)
    assert "session_lost" in codes(lost["notices"])
    assert told["turn_id"] in {entry["id"] for entry in lost["memory"]["injected"]}


async def test_a_project_is_the_scope_of_what_is_recalled_and_kept(tmp_path: Path) -> None:
    async with running_services(tmp_path, **QUIET) as services:
        create = services.create
        of = {name: await create(project_id=name) for name in ("gym", "pool")}
        turns = {
            name: (await tell(services, f"{TOLD} {name}.", conversation))["turn_id"]
            for name, conversation in of.items()
        }
        turns["none"] = (await tell(services, TOLD))["turn_id"]
        asked = {name: set(await shown(services, await create(project_id=name))) for name in of}
        assert asked == {name: {turns[name], turns["none"]} for name in of}
        assert set(await shown(services)) >= set(turns.values())
        await services.change(of["pool"], project_id="gym")
        there = set(await shown(services, await create(project_id="gym")))
        assert there >= set(turns.values())


async def test_the_agent_asks_memory_itself_within_its_project(tmp_path: Path) -> None:
    """Read-only tools; what was found is readable whole, and nobody else's is."""
    search, get = "mcp__memory__memory_search", "mcp__memory__memory_get"
    async with running_services(tmp_path, **QUIET) as services:
        create = services.create
        told = await tell(services, conversation_id=await create(project_id="gym"))

        async def call(tool: str, project_id: str, **arguments: object) -> str:
            steps = script({"tool": tool, "input": arguments}, {"echo": "tool_result"})
            accepted = await services.send(steps, await create(project_id=project_id))
            await services.result_of(accepted)
            (finished,) = of_kind(await services.events_of(accepted), "tool.finished")
            return f"{finished['status']} {finished['output']}"

        for query in ("harbour gym locker", ""):
            assert told["turn_id"] in await call(search, "gym", query=query)
        assert told["turn_id"] not in await call(search, "pool", query="harbour gym locker")
        whole = await call(get, "gym", id=told["turn_id"])
        assert "number 4711" in whole
        assert "→ Fine." in whole
        for project, item_id in [("pool", told["turn_id"]), ("gym", "trn_none")]:
            assert (await call(get, project, id=item_id)).startswith("failed There is no such")


async def test_what_is_forgotten_takes_its_turn_out_of_the_record_for_good(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        memory = services.open_memory
        told = await tell(services, f"Please remember that {TOLD}")
        (fact,) = told["memory"]["saved"]
        other = await tell(services, "The gym at the harbour opens at six.")
        said = script({"text": "You once told me 4711, I believe."})
        again = await services.ask(f"{ASKED} Ana has a form.\n{said}")
        await until(services, {result["turn_id"] for result in (told, other, again)})
        for item_id in (fact["id"], other["turn_id"]):
            assert await memory.forget(item_id, Scope(owner_id=ME))
        for result in (told, other, again):
            assert await recorded(services) == {again["turn_id"]}
            (item,) = await memory.items.get_many([again["turn_id"]], Scope(owner_id=ME))
            assert REPLY not in f"{item.body} {item.summary}"
            await services.change(result["conversation_id"], title="Renamed")
        boat = await tell(services, "Please remember that my boat is called Ada.")
        words, (named,) = "Please forget that my boat is called Ada.", boat["memory"]["saved"]
        given = {"ids": [named["id"]], "evidence": words}
        call = {"tool": "mcp__memory__memory_forget", "input": given}
        assert (await services.ask(f"{words}\n{script(call)}"))["memory"]["forgotten"]
        last = await tell(services, "The ferry leaves at noon.")
        await until(services, {again["turn_id"], last["turn_id"]})
        records = (await memory.chronicle.page(ME, limit=99)).records
        assert not any("opens at six" in record.text for record in records)


@pytest.mark.parametrize("is_copied", [False, True])
async def test_an_answer_that_found_what_is_forgotten_does_not_come_back(
    tmp_path: Path, *, is_copied: bool
) -> None:
    """When its conversation's memory is off and on again, or when a copy takes its place."""
    search = {"tool": "mcp__memory__memory_search", "input": {"query": "locker"}}
    steps = [search, {"text": "Number 4711, as you told me."}]
    given = QUIET | {"learn": "explicit"}
    async with running_services(tmp_path, **given) as services:
        told = await tell(services, f"Please remember that {TOLD}")
        services.scripted.answers["Where do shoes go?"] = {"steps": steps}
        found = await services.ask("Where do shoes go?")
        assert found["memory"]["injected"] == []
        chat, turn_id = found["conversation_id"], found["turn_id"]
        await until(services, {told["turn_id"], turn_id})
        fork = await services.fork(chat, turn_id)
        assert await services.open_memory.forget(
            told["memory"]["saved"][0]["id"], Scope(owner_id=ME)
        )
        if is_copied:
            await services.delete(chat)
            (copy,) = await services.messages_of(fork)
            turn_id = copy.id
        else:
            await services.change(chat, memory_enabled=False)
            await until(services, set())
            await services.change(chat, memory_enabled=True)
        await until(services, {turn_id})
        (item,) = await services.open_memory.items.get_many([turn_id], Scope(owner_id=ME))
        assert REPLY not in item.body


@pytest.mark.parametrize("answer", ["Number 4711, as you told me.", "是 4711 号，你说过的。"])
async def test_a_copy_forgets_what_the_deleted_turn_in_its_place_had_found(
    tmp_path: Path, answer: str
) -> None:
    async with running_services(tmp_path, **QUIET | {"learn": "explicit"}) as services:
        facts = services.open_memory.facts
        scope = Scope(owner_id=ME)
        locker = await facts.write(TOLD, scope)
        fork, turn_id = await copied_search(services, answer)
        assert (await recorded_body(services, turn_id)).endswith(answer)
        again = await services.fork(fork, turn_id)
        await services.delete(fork)
        fork = again
        (turn_id,) = [turn.id for turn in await services.messages_of(fork)]
        await until(services, {turn_id})
        assert (await recorded_body(services, turn_id)).endswith(answer)
        assert answer not in repr(await intents_of(services))

        assert await services.open_memory.forget(locker.id, scope)

        for is_on in (True, False, True):
            await services.change(fork, memory_enabled=is_on)
            await until(services, {turn_id} if is_on else set())
            if is_on:
                assert REPLY not in await recorded_body(services, turn_id)


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
async def test_a_copy_follows_a_correction_of_what_the_deleted_turn_had_found(
    tmp_path: Path, engine: Engine
) -> None:
    async with services_on(engine, tmp_path, **QUIET | {"learn": "explicit"}) as services:
        facts = services.open_memory.facts
        locker = await facts.write(TOLD, Scope(owner_id=ME))
        _, turn_id = await copied_search(services, "Number 4711. It is blue.")
        await facts.edit(locker.id, Scope(owner_id=ME), text=TOLD.replace("4711", "4712"))
        assert (await recorded_body(services, turn_id)).endswith(f"{REPLY}It is blue.")


async def test_a_copy_brings_nothing_back_after_a_deletion_that_a_crash_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = QUIET | {"learn": "explicit"}
    with monkeypatch.context() as patch:
        async with running_services(tmp_path, **given) as services:
            scope = Scope(owner_id=ME)
            locker = await services.open_memory.facts.write(TOLD, scope)
            found = await search_turn(services, "Number 4711, as you told me.")
            await until(services, {found["turn_id"]})
            fork = await services.fork(found["conversation_id"], found["turn_id"])
            (copy,) = await services.messages_of(fork)
            assert await services.open_memory.forget(locker.id, scope)

            async def crash(_: object) -> None:
                await services.copy_as_after_a_crash(tmp_path / "later")

            patch.setattr(record.RecordWorker, "wake", lambda _: None)
            patch.setattr(ConversationMemory, "changed", crash)
            await services.delete(found["conversation_id"])
    async with running_services(tmp_path / "later", **given) as services:
        await until(services, {copy.id})
        assert REPLY not in await recorded_body(services, copy.id)


async def search_turn(services: RunningServices, answer: str) -> dict[str, Any]:
    """Run a turn whose agent searches memory for the locker, which was not shown to it."""
    search = {"tool": "mcp__memory__memory_search", "input": {"query": "locker"}}
    services.scripted.answers["Where do shoes go?"] = {"steps": [search, {"text": answer}]}
    found = await services.ask("Where do shoes go?")
    assert found["memory"]["injected"] == []
    return found


async def copied_search(services: RunningServices, answer: str) -> tuple[str, str]:
    """Fork the conversation of such a turn and delete it; return the fork and the copied turn."""
    found = await search_turn(services, answer)
    fork = await services.fork(found["conversation_id"], found["turn_id"])
    await services.delete(found["conversation_id"])
    (copy,) = await services.messages_of(fork)
    await until(services, {copy.id})
    return fork, copy.id


async def recorded_body(services: RunningServices, turn_id: str) -> str:
    (item,) = await services.open_memory.items.get_many([turn_id], Scope(owner_id=ME))
    return item.body


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
async def test_what_is_forgotten_does_not_come_back_with_a_copy(
    tmp_path: Path, engine: Engine
) -> None:
    async with services_on(engine, tmp_path) as services:
        memory = services.open_memory
        for by_fact in (True, False):
            told = await tell(services, f"Please remember that {TOLD}")
            one, two = [
                await services.fork(told["conversation_id"], told["turn_id"]) for _ in range(2)
            ]
            if not by_fact:  # the copy that took the place is forgotten, not the turn itself
                await services.delete(told["conversation_id"])
            (copy,) = await services.messages_of(one)
            forgotten = told["memory"]["saved"][0]["id"] if by_fact else copy.id
            assert await memory.forget(forgotten, Scope(owner_id=ME))
            for conversation_id in (told["conversation_id"], one):
                if by_fact or conversation_id == one:
                    await services.delete(conversation_id)
                assert await recorded(services) == set()
            await services.delete(two)


async def test_a_copy_follows_its_conversation_though_it_is_not_known_why_the_first_went(
    tmp_path: Path,
) -> None:
    """As on a memory from before deleted and forgotten turns were told apart."""
    async with running_services(tmp_path, **QUIET) as services:
        memory = services.open_memory
        told = await tell(services)
        fork = await services.fork(told["conversation_id"], told["turn_id"])
        await services.delete(told["conversation_id"])
        (copy,) = await services.messages_of(fork)
        await until(services, {copy.id})
        await memory.database.execute("UPDATE forgotten_items SET was_deleted = 0")
        await services.change(fork, project_id="gym")
        await shown(services)
        (item,) = await memory.items.get_many([copy.id], Scope(owner_id=ME))
        assert item.scope.labels == {"project_id": "gym"}


async def test_a_turn_does_not_repeat_its_conversations_first_message(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        told = await tell(services, f"Please remember that {TOLD}")
        (fact,) = told["memory"]["saved"]
        later = await services.ask(
            f"The gym opens at six.\n{script({'text': ''})}", told["conversation_id"]
        )
        assert await services.open_memory.forget(fact["id"], Scope(owner_id=ME))
        await until(services, {later["turn_id"]})
        (item,) = await services.open_memory.items.get_many([later["turn_id"]], Scope(owner_id=ME))
        assert TOLD not in repr(item)


class SlowReader:
    """Answers a question about memory after the usual deadline, and nothing else at all."""

    async def recall(self, query: QueryPack) -> ContextPack:
        assert query.deadline_s is not None
        if query.deadline_s < 1:
            await anyio.sleep_forever()
        return ContextPack(text="A summary of memory.")


async def test_silence_is_told_and_a_question_about_memory_waits_longer(tmp_path: Path) -> None:
    echo = script({"echo": "context"})
    async with running_services(tmp_path, memory=SlowReader(), recall_deadline_ms=20) as services:
        silent = await services.ask(echo)
        asked = await services.ask(f"What is in your memory about me?\n{echo}")
    assert silent["memory"]["degraded"] == ["memory_timeout"]
    assert "memory_silent" in codes(silent["notices"])
    assert silent["reply"].startswith("Memory backend degraded: memory_timeout.")
    assert (asked["reply"], asked["notices"]) == ("A summary of memory.", [])


async def test_a_question_about_memory_that_fits_nothing_lists_the_newest(tmp_path: Path) -> None:
    async with running_services(tmp_path, **QUIET) as services:
        told = await services.ask(TOLD)
        result = await services.ask("What is in your memory?")
    listed = {entry["turn_id"]: entry["why"] for entry in result["memory"]["injected"]}
    assert "newest" in listed[told["turn_id"]]
