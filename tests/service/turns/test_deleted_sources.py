"""The record of a turn when a conversation that it was shown, or copied from, is deleted."""

from pathlib import Path

import pytest

from gateway.ids import LOCAL_USER as ME
from memory.items.item import REPLY
from memory.items.scope import Scope
from memory.stores.database import Engine
from tests.service.turns.test_memory import intents_of
from tests.service.turns.test_record import (
    ASKED,
    QUIET,
    TOLD,
    recorded,
    recorded_body,
    search_turn,
    services_on,
    tell,
    until,
)
from tests.support.services import RunningServices, running_services

FORM = "Bring the form to the desk. 请把表格带到前台。"


async def shown_turn(services: RunningServices, question: str, answer: str) -> tuple[str, str]:
    """Ask what another conversation tells; return the conversation and the turn."""
    services.scripted.answers[question] = {"steps": [{"text": answer}]}
    asked = await services.ask(question)
    assert "turn" in [entry["kind"] for entry in asked["memory"]["injected"]]
    return asked["conversation_id"], asked["turn_id"]


async def test_a_reply_stays_recorded_when_a_conversation_that_it_was_shown_is_deleted(
    tmp_path: Path,
) -> None:
    async with running_services(tmp_path, **QUIET) as services:
        told = await tell(services)
        question = f"{ASKED} Ana has a form."
        chat, turn_id = await shown_turn(services, question, f"{TOLD} {FORM}")
        await until(services, {told["turn_id"], turn_id})
        assert await recorded_body(services, turn_id) == f"{question}\n{REPLY}{FORM}"
        await services.delete(told["conversation_id"])

        await services.change(chat, project_id="gym")
        later = await tell(services, "The ferry leaves at noon.")
        await until(services, {turn_id, later["turn_id"]})
        (item,) = await services.open_memory.items.get_many([turn_id], Scope(owner_id=ME))
        assert (item.scope.project_id, item.body) == ("gym", f"{question}\n{REPLY}{FORM}")

        for is_on in (False, True):
            await services.change(chat, memory_enabled=is_on)
            await until(services, {turn_id, later["turn_id"]} if is_on else {later["turn_id"]})
        assert await recorded_body(services, turn_id) == question, "it may repeat what is deleted"


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
async def test_a_reply_follows_what_else_it_was_shown_after_such_a_deletion(
    tmp_path: Path, engine: Engine
) -> None:
    async with services_on(engine, tmp_path, **QUIET | {"learn": "explicit"}) as services:
        scope = Scope(owner_id=ME)
        key = await services.open_memory.facts.write("The gym locker has a copper key", scope)
        told = await tell(services)
        question = f"{ASKED} Which key?"
        _, turn_id = await shown_turn(services, question, "You need the brazen one. 是黄铜的。")
        await until(services, {told["turn_id"], turn_id})
        await services.delete(told["conversation_id"])
        assert "brazen" in await recorded_body(services, turn_id)

        assert await services.open_memory.forget(key.id, scope)

        assert await recorded_body(services, turn_id) == question
        assert "brazen" not in repr(await intents_of(services))


@pytest.mark.parametrize("answer", ["You need the brazen one.", "要用黄铜的那把。"])
async def test_a_reply_follows_what_else_it_was_shown_after_a_deletion_while_it_ran(
    tmp_path: Path, answer: str
) -> None:
    mkdir = {"tool": "Bash", "input": {"command": "mkdir otters"}}
    given = QUIET | {"learn": "explicit", "approvals": "on"}
    async with running_services(tmp_path, **given) as services:
        scope = Scope(owner_id=ME)
        key = await services.open_memory.facts.write("The gym locker has a copper key", scope)
        told = await tell(services)
        question = f"{ASKED} Which key?"
        services.scripted.answers[question] = {"steps": [mkdir, {"text": answer}]}
        accepted = await services.send(question)
        asked = await services.question_of(accepted)
        await services.delete(told["conversation_id"])
        await services.answer(asked, "allow")
        result = await services.result_of(accepted)
        assert {"turn", "fact"} <= {entry["kind"] for entry in result["memory"]["injected"]}
        assert answer in repr(await intents_of(services))

        assert await services.open_memory.forget(key.id, scope)

        assert answer not in repr(await intents_of(services))


@pytest.mark.parametrize("answer", ["Number 4711, as you told me.", "是 4711 号，你说过的。"])
async def test_a_copy_without_memory_forgets_what_the_deleted_turn_in_its_place_had_found(
    tmp_path: Path, answer: str
) -> None:
    async with running_services(tmp_path, **QUIET | {"learn": "explicit"}) as services:
        scope = Scope(owner_id=ME)
        locker = await services.open_memory.facts.write(TOLD, scope)
        found = await search_turn(services, answer)
        fork = await services.fork(found["conversation_id"], found["turn_id"])
        await services.change(fork, memory_enabled=False)
        await services.delete(found["conversation_id"])
        (copy,) = await services.messages_of(fork)
        assert await recorded(services) == set()
        assert await services.open_memory.forget(locker.id, scope)

        await services.change(fork, memory_enabled=True)

        await until(services, {copy.id})
        assert REPLY not in await recorded_body(services, copy.id)


@pytest.mark.parametrize("answer", ["You said so, and it is warm.", "您说过，那里很暖和。"])
async def test_a_reply_is_cut_when_a_copy_of_what_it_was_shown_is_forgotten(
    tmp_path: Path, answer: str
) -> None:
    async with running_services(tmp_path, **QUIET) as services:
        told = await tell(services)
        question = f"{ASKED} And the gym?"
        _, turn_id = await shown_turn(services, question, answer)
        await until(services, {told["turn_id"], turn_id})
        fork = await services.fork(told["conversation_id"], told["turn_id"])
        await services.delete(told["conversation_id"])
        (copy,) = await services.messages_of(fork)
        await until(services, {copy.id, turn_id})
        assert await recorded_body(services, turn_id) == f"{question}\n{REPLY}{answer}"

        assert await services.open_memory.forget(copy.id, Scope(owner_id=ME))

        assert await recorded_body(services, turn_id) == question
        assert answer not in repr(await intents_of(services))
