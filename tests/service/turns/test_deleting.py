"""A conversation is deleted: with all that belongs to it, and again where it did not come to its end."""

from pathlib import Path

import anyio
import pytest

from gateway.assemble import Services
from gateway.conversations.model import Turn
from gateway.conversations.sqlite.conversations import SqliteConversationStore
from gateway.conversations.sqlite.turns import SqliteTurnStore
from gateway.errors import NotFound
from gateway.ids import LOCAL_USER as ME
from gateway.ids import ConversationId
from tests.support.scripted_engine import ScriptedEngine
from tests.support.services import (
    Held,
    ask,
    begun,
    copy_as_after_a_crash,
    result_of,
    running_services,
    same_sessions,
    script,
    scripted_engine,
    send,
)

READ = {"tool": "Bash", "input": {"command": "cat a.txt"}}


async def cut_off(services: Services) -> str:
    """Return a conversation whose next prompt is to report a turn that was cut off."""
    running = await send(services, script(READ, {"text": "x"}, {"hang": True}))
    await begun(services, running)
    await services.chat.intake.interrupt(ME, running.conversation_id)
    await result_of(services, running)
    assert await waiting(services, running.conversation_id) == 1
    return running.conversation_id


async def waiting(services: Services, conversation_id: str) -> int:
    """Count what waits for a conversation's next prompt."""
    assert services.memory is not None
    return len(await services.memory.chronicle.pending(conversation_id, ME))


class Failing(ScriptedEngine):
    """Cannot forget a session, until it can."""

    is_failing = True

    async def forget_session(self, session_id: str) -> None:
        if self.is_failing:
            raise OSError("the disk failed")
        await super().forget_session(session_id)


def mend_engine(services: Services) -> None:
    engine = services.engine
    assert isinstance(engine, Failing)
    engine.is_failing = False


async def test_a_deletion_that_failed_half_way_is_made_again(tmp_path: Path) -> None:
    async with running_services(tmp_path, make_engine=Failing) as services:
        conversation_id = await cut_off(services)
        for _ in range(2):
            with pytest.raises(OSError, match="the disk failed"):
                await services.chat.conversations.delete(ME, conversation_id)
            assert (await services.chat.conversations.get(ME, conversation_id)).state == "idle"
        mend_engine(services)
        await services.chat.conversations.delete(ME, conversation_id)
        assert scripted_engine(services).sessions == {}
        assert await waiting(services, conversation_id) == 0
        with pytest.raises(NotFound):
            await services.chat.conversations.get(ME, conversation_id)


async def test_a_deletion_that_a_crash_cut_off_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    came = anyio.Event()

    async def never(*_: object) -> None:
        came.set()
        await anyio.sleep_forever()

    async with running_services(before) as services:
        conversation_id = await cut_off(services)
        with monkeypatch.context() as patched:
            patched.setattr(SqliteConversationStore, "delete", never)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(services.chat.conversations.delete, ME, conversation_id)
                with anyio.fail_after(30):
                    await came.wait()
                await copy_as_after_a_crash(services, after)
                sessions = same_sessions(services)
                tasks.cancel_scope.cancel()
    async with running_services(after, make_engine=sessions) as services:
        assert scripted_engine(services).sessions == {}
        await services.chat.conversations.delete(ME, conversation_id)
        with pytest.raises(NotFound):
            await services.chat.conversations.get(ME, conversation_id)


async def test_nothing_is_forked_that_is_being_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, fork_point = Held(), SqliteTurnStore.fork_point

    async def held_fork_point(
        self: SqliteTurnStore, conversation_id: ConversationId, until_seq: int
    ) -> Turn | None:
        await held.hold()
        return await fork_point(self, conversation_id, until_seq)

    async with running_services(tmp_path) as services:
        first = await ask(services, "hello")
        conversation_id = ConversationId(first["conversation_id"])
        monkeypatch.setattr(SqliteTurnStore, "fork_point", held_fork_point)
        refused: list[bool] = []

        async def fork() -> None:
            with pytest.raises(NotFound):
                await services.chat.conversations.fork(ME, conversation_id, first["turn_id"])
            refused.append(True)

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(fork)
                await held.came.wait()
                await services.chat.conversations.delete(ME, conversation_id)
                held.let_go.set()
        listed, _ = await services.chat.conversations.page(ME, limit=9, cursor=None, query=None)
    assert (refused, listed) == ([True], [])
