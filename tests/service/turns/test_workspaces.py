"""Where the agent of a turn starts, and when it must not."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.to_thread import run_sync

from gateway.conversations.sql.work_trees import WorkTreeStore
from gateway.engine.protocol import ClientSpec, SessionOrigin
from gateway.errors import Busy, NotFound
from gateway.ids import LOCAL_USER
from gateway.turns.workspaces import OpenWorkspaces
from gateway.turns.worktrees import Worktrees
from memory.errors import StoreDamaged, StoreUnavailable
from tests.support.engine_talk import until
from tests.support.repositories import git, lay_repository
from tests.support.scripted_engine import ScriptedClient, ScriptedEngine
from tests.support.services import hold_calls, running_services, script


class WatchedEngine(ScriptedEngine):
    """Notes where its agents start."""

    def __init__(self, workspace: Path) -> None:
        super().__init__(workspace)
        self.started_in: list[Path | None] = []

    async def connect(self, spec: ClientSpec, origin: SessionOrigin) -> ScriptedClient:
        self.started_in.append(spec.work_tree)
        return await super().connect(spec, origin)


async def test_a_work_tree_that_is_not_known_yet_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the conversation may happen in the workspace itself meanwhile."""
    monkeypatch.setattr("gateway.turns.runner._READ_AGAIN_S", 0.01)
    await run_sync(lay_repository, tmp_path / "ws")
    async with running_services(tmp_path, make_engine=WatchedEngine, worktrees="on") as services:
        away = StoreUnavailable("The database cannot be read.")
        held = hold_calls(monkeypatch, WorkTreeStore.has, failure=away, once=True)
        held.let_go.set()
        result = await services.ask("hello")
        tree = tmp_path / "ws/.candor-worktrees" / result["conversation_id"]
        assert held.came.is_set()
        assert result["outcome"] == "answered"
        assert isinstance(services.scripted, WatchedEngine)
        assert services.scripted.started_in == [tree]


@pytest.mark.parametrize("message", ["hello", "你好"])
@pytest.mark.parametrize(
    ("method", "fault"),
    [
        (WorkTreeStore.has, StoreDamaged("The database is damaged.")),
        (OpenWorkspaces.at, RuntimeError("broken")),
    ],
)
async def test_no_agent_starts_where_the_workspace_is_not_known_and_the_turn_says_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    message: str,
    method: Callable[..., Any],
    fault: Exception,
) -> None:
    await run_sync(lay_repository, tmp_path / "ws")
    async with running_services(tmp_path, make_engine=WatchedEngine, worktrees="on") as services:
        held = hold_calls(monkeypatch, method, failure=fault, once=True)
        held.let_go.set()
        result = await services.ask(message)
        assert isinstance(services.scripted, WatchedEngine)
        assert services.scripted.started_in == []
        services.assert_nothing_is_left()
    assert (result["outcome"], result["cause"]) == ("engine_failed", "unavailable")


async def test_a_work_tree_that_cannot_be_filled_ends_the_turn(tmp_path: Path) -> None:
    """The repository has a link in the place of the folder of notes."""
    ws = tmp_path / "ws"

    def lay() -> None:
        lay_repository(ws)
        (ws / "memory").symlink_to("notes")
        git(ws, "add", "-A")
        git(ws, "commit", "-q", "-m", "a link")

    await run_sync(lay)
    async with running_services(tmp_path, make_engine=WatchedEngine, worktrees="on") as services:
        result = await services.ask("hello")
        assert isinstance(services.scripted, WatchedEngine)
        assert services.scripted.started_in == []
        services.assert_nothing_is_left()
    assert (result["outcome"], result["cause"]) == ("engine_failed", "unavailable")


async def test_only_messages_to_its_conversation_wait_while_a_work_tree_is_thrown_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git may have much to do there, and another merge to wait for."""
    await run_sync(lay_repository, tmp_path / "ws")
    async with running_services(tmp_path, worktrees="on") as services:
        begun = await services.ask("hello")
        where, accepted = begun["conversation_id"], []
        held = hold_calls(monkeypatch, Worktrees.discard)

        async def send() -> None:
            accepted.append(await services.send(script({"text": "In a new tree."}), where))

        async def discard() -> None:
            with suppress(NotFound):  # of two at once the second finds nothing
                await services.chat.work_trees.discard(LOCAL_USER, where)

        def waiting() -> int:
            occupation = services.chat.work_trees._access.occupation(where)  # noqa: SLF001
            return 0 if occupation is None else occupation.statistics().tasks_waiting

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for _ in range(2):
                    tasks.start_soon(discard)
                await until(lambda: waiting() == 1)
                tasks.start_soon(send)
                await until(lambda: waiting() == 2)
                assert (await services.ask("hello"))["outcome"] == "answered"
                assert accepted == []
                held.let_go.set()
        assert (await services.result_of(accepted[0]))["reply"] == "In a new tree."


async def test_no_agent_is_woken_in_a_work_tree_while_it_is_thrown_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next turn would work in a folder that is gone, behind the name of the new one."""
    monkeypatch.setattr("gateway.engine.pool._STAYS_S", 0)
    await run_sync(lay_repository, tmp_path / "ws")
    async with running_services(
        tmp_path, make_engine=WatchedEngine, worktrees="on", prewarmed_clients=1
    ) as services:
        where = (await services.ask("hello"))["conversation_id"]
        held = hold_calls(monkeypatch, Worktrees.discard)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(services.chat.work_trees.discard, LOCAL_USER, where)
            await held.came.wait()
            await services.messages_of(where)
            await anyio.wait_all_tasks_blocked()
            assert not services.pool.is_hot(where)
            held.let_go.set()


async def test_a_work_tree_in_which_a_turn_runs_is_not_thrown_away_and_takes_messages(
    tmp_path: Path,
) -> None:
    await run_sync(lay_repository, tmp_path / "ws")
    async with running_services(tmp_path, worktrees="on") as services:
        running = await services.begin()
        with pytest.raises(Busy):
            await services.chat.work_trees.discard(LOCAL_USER, running.conversation_id)
        queued = await services.send("hello", running.conversation_id)
        await services.stop(running)
        assert (await services.result_of(queued))["outcome"] == "answered"


async def test_a_conversation_is_deleted_although_its_work_tree_cannot_be_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No commit takes the files of a repository along that is in the tree, so they stay there."""
    ws = tmp_path / "ws"
    await run_sync(lay_repository, ws)
    async with running_services(tmp_path, worktrees="on") as services:
        where = (await services.ask("hello"))["conversation_id"]
        nested = ws / ".candor-worktrees" / where / "nested"
        await run_sync(partial(lay_repository, nested, b_txt="b"))
        await services.chat.conversations.delete(LOCAL_USER, where)
        with pytest.raises(NotFound):
            await services.chat.conversations.get(LOCAL_USER, where)
    monkeypatch.setattr("gateway.turns.worktrees._UNSURE", timedelta())
    async with running_services(tmp_path, worktrees="on") as services:
        assert (await services.ask("你好"))["outcome"] == "answered"
        assert (nested / "b.txt").read_text() == "b"
    await run_sync(shutil.rmtree, nested / ".git")
    async with running_services(tmp_path, worktrees="on"):
        assert not nested.parent.exists()
    assert git(ws, "show", f"candor/{where}:nested/b.txt") == "b"
