"""A message is taken at an awkward moment: just before its lane begins, or as the server goes down."""

from functools import partial
from pathlib import Path

import anyio
import pytest

from gateway.conversations.model import Conversation
from gateway.conversations.sqlite.conversations import SqliteConversationStore
from gateway.errors import ShuttingDown
from gateway.ids import ConversationId, UserId
from tests.support.engine_talk import until
from tests.support.services import ask, messages_of, running_services, send

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
                tasks.start_soon(partial(services.chat.intake.shut_down, grace_s=0))
                await until(lambda: services.chat.intake.is_closed)
                goes_on.set()
        messages = await messages_of(services, conversation_id)
    assert refused == [True]
    assert [message.message for message in messages] == ["hello"]
