"""A message is taken at an awkward moment: just before its lane begins, or as the server goes down."""

from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.conversations.model import Conversation
from gateway.conversations.sqlite.conversations import SqliteConversationStore
from gateway.errors import ShuttingDown
from gateway.ids import LOCAL_USER as ME
from gateway.ids import ConversationId, UserId
from tests.support.engine_talk import until
from tests.support.services import ask, result_of, running_services, send

WAIT_S = 20


async def test_a_message_that_was_being_looked_at_when_the_server_closed_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking, goes_on = anyio.Event(), anyio.Event()
    get = SqliteConversationStore.get

    async def slow_get(
        self: SqliteConversationStore, conversation_id: ConversationId, user_id: UserId
    ) -> Conversation | None:
        looking.set()
        await goes_on.wait()
        return await get(self, conversation_id, user_id)

    async with running_services(tmp_path) as services:
        conversation_id = (await ask(services, "hello"))["conversation_id"]
        refused: list[bool] = []

        async def send_late() -> None:
            with pytest.raises(ShuttingDown):
                await send(services, "too late", conversation_id)
            refused.append(True)

        monkeypatch.setattr(SqliteConversationStore, "get", slow_get)
        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(send_late)
                await looking.wait()
                tasks.start_soon(partial(services.chat.shut_down, grace_s=0))
                await until(lambda: services.chat.is_closed)
                goes_on.set()
        messages = await services.chat.messages(ME, conversation_id, limit=9, before_seq=None)
    assert refused == [True]
    assert [one.message for one in messages] == ["hello"]


class Later:
    """Stands in for a task group: begins what it is given when a test says so."""

    def __init__(self) -> None:
        self.given: list[Any] = []

    def start_soon(self, *call: Any) -> None:
        self.given.append(call)


async def test_a_turn_that_is_about_to_run_is_interrupted_too(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        later: Any = Later()
        tasks, services.lanes._tasks = services.lanes._tasks, later  # noqa: SLF001  it begins in no time
        first = await send(services, "hello")
        second = await send(services, "stop", first.conversation_id, when_busy="interrupt")
        services.lanes._tasks = tasks  # noqa: SLF001
        for call in later.given:
            tasks.start_soon(*call)
        results = [await result_of(services, one) for one in (first, second)]
    assert [(one["outcome"], one["stop_reason"]) for one in results] == [
        ("interrupted", "user_interrupt"),
        ("answered", "end_turn"),
    ]
