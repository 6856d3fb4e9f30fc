"""The places of messages whose clients send their history."""

from pathlib import Path

import pytest

from gateway.chat.threads import ClientMessage, Place, Said
from gateway.ids import LOCAL_USER as ME
from gateway.turns.requests import Accepted
from tests.support.services import HANG, RunningServices, running_services


async def note(services: RunningServices, message: ClientMessage, accepted: Accepted) -> None:
    await services.chat.threads.note(ME, message, accepted)


@pytest.mark.parametrize("thread", ["", "chat-1"])
@pytest.mark.parametrize("texts", [("two", "three"), ("第二条", "第三条")])
async def test_a_history_goes_on_behind_a_message_that_was_taken_back(
    tmp_path: Path, thread: str, texts: tuple[str, str]
) -> None:
    """On the page, or by another client; this one still has the message in its history."""
    second, third = texts
    async with running_services(tmp_path) as services:
        first = await services.begin()
        await note(services, ClientMessage(text=HANG, before=[], thread=thread), first)
        before = [Said("user", HANG), Said("assistant", "I begin")]
        queued = await services.send(second, first.conversation_id)
        await note(services, ClientMessage(text=second, before=before, thread=thread), queued)
        await services.chat.intake.take_back(ME, queued.conversation_id, queued.turn_id)
        told = await services.result_of(queued)
        await services.stop(first)
        before = [*before, Said("user", second), Said("assistant", told["reply"])]
        message = ClientMessage(text=third, before=before, thread=thread)
        assert await services.chat.threads.place(ME, message) == Place(first.conversation_id)


@pytest.mark.parametrize("text", ["two", "第二条"])
async def test_a_response_that_was_taken_back_is_gone_on_behind(tmp_path: Path, text: str) -> None:
    """A client names it as its previous one, as one of OpenAI's responses may be."""
    async with running_services(tmp_path) as services:
        threads, reader = services.chat.threads, services.chat.reader
        first = await services.begin()
        where = first.conversation_id
        queued = await services.send(text, where)
        await services.chat.intake.take_back(ME, where, queued.turn_id)
        behind = await reader.turn(ME, queued.turn_id)
        assert await threads.go_on(ME, behind) == where
        await services.stop(first)
        assert await threads.go_on(ME, behind) == where
        await services.ask("hello", where)
        fork = await threads.go_on(ME, behind)
        told = await services.chat.conversations.messages(ME, fork, limit=9, before_seq=None)
        assert [turn.message for turn in told] == [HANG]
