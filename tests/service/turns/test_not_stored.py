"""Messages and conversations that cannot be stored: nothing else changes because of them."""

import sqlite3
from pathlib import Path

import pytest

from gateway.conversations.sql import conversations, turns
from memory.errors import StoreUnavailable
from tests.support.services import running_services


def full(*_: object) -> None:
    """Fail as a disk does that is full in the middle of a transaction."""
    raise sqlite3.OperationalError("database or disk is full")


async def test_the_project_is_not_changed_for_a_message_that_is_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_services(tmp_path) as services:
        conversation_id = await services.create(project_id="gym")
        with monkeypatch.context() as patch:
            patch.setattr(turns, "insert_events", full)
            with pytest.raises(StoreUnavailable):
                await services.send("hello", conversation_id, project_id="pool")
        before = (await services.view(conversation_id)).conversation
        await services.ask("hello", conversation_id, project_id="pool")
        after = (await services.view(conversation_id)).conversation
    assert (before.project_id, before.turns) == ("gym", 0)
    assert (after.project_id, after.turns) == ("pool", 1)


async def test_a_turn_is_not_interrupted_for_a_message_that_is_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_services(tmp_path) as services:
        running = await services.begin()
        with monkeypatch.context() as patch:
            patch.setattr(turns, "insert_events", full)
            with pytest.raises(StoreUnavailable):
                await services.send("hello", running.conversation_id, when_busy="interrupt")
        assert (await services.view(running.conversation_id)).state == "running"
        answered = await services.ask("hello", running.conversation_id, when_busy="interrupt")
        stopped = await services.result_of(running)
    assert stopped["stop_reason"] == "user_interrupt"
    assert answered["outcome"] == "answered"


async def test_a_conversation_is_not_left_for_one_that_is_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_services(tmp_path) as services:
        running = await services.begin()
        with monkeypatch.context() as patch:
            patch.setattr(conversations, "insert_conversation", full)
            with pytest.raises(StoreUnavailable):
                await services.create(leaving=running.conversation_id)
        assert (await services.view(running.conversation_id)).state == "running"
        await services.create(leaving=running.conversation_id)
        stopped = await services.result_of(running)
    assert stopped["cause"] == "left"
