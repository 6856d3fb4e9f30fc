"""Which conversations work in a work tree, whichever server of the database runs them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.to_thread import run_sync

from gateway.conversations.leases import Node
from gateway.conversations.model import Conversation
from gateway.conversations.sql.conversations import ConversationStore
from gateway.conversations.sql.leases import LeaseStore
from gateway.conversations.sql.work_trees import WorkTreeStore
from gateway.conversations.work_trees import KeptTree
from gateway.errors import Conflict, NotFound, WorkspaceUnavailable
from gateway.ids import ConversationId, NodeId, UserId
from gateway.observability.paths import make_path_view_blocking
from gateway.skills import WorkspaceSkills
from gateway.turns.workspace_lock import LocksOfServers
from gateway.turns.workspaces import OpenWorkspaces
from gateway.turns.worktrees import Worktrees
from gateway.workspaces import Workspaces
from gateway.worktrees.git import GitFailed, WorkTree
from gateway.worktrees.worktrees import ConversationTrees
from memory.clock import utc_now
from policies.rules import shipped_rules
from policies.tools import ToolGate
from tests.conformance.suites.conversation_values import ANN, conversation
from tests.support.repositories import commit_in_box, git, git_in_box, lay_repository
from tests.support.services import hold_calls
from tests.support.stores import open_file

ONE = ConversationId("cnv_one")
EVERYBODY = UserId("")


@dataclass(frozen=True, slots=True)
class Servers:
    """Two servers with a data directory each, on one database and one workspace."""

    here: Worktrees
    there: Worktrees
    store: WorkTreeStore
    conversations: ConversationStore
    ws: Path

    async def create(self, name: str = "one") -> Conversation:
        """Store a conversation that has not begun."""
        made = conversation(name)
        await self.conversations.create(made)
        return made


@asynccontextmanager
async def two_servers(
    root: Path, *, is_on: bool = True, is_per_user: bool = False
) -> AsyncIterator[Servers]:
    ws = root / "ws"
    await run_sync(lambda: lay_repository(ws, a_txt="a\n"))
    async with open_file(root) as database, anyio.create_task_group() as tasks:
        conversations, leases = ConversationStore(database), LeaseStore(database)
        store = WorkTreeStore(database)
        made = []
        for name in ("here", "there"):
            node = Node(id=NodeId(name), incarnation=name)
            await leases.join(node, ttl_ms=3_600_000)
            locks = LocksOfServers(leases, node)
            tasks.start_soon(locks.run)
            workspaces = OpenWorkspaces(
                Workspaces(workspace=ws, data_dir=root / name, is_per_user=is_per_user),
                shipped_rules(),
                make_gate=lambda folder, given, _: ToolGate(folder, rules=given),
                make_paths=make_path_view_blocking,
                make_skills=partial(WorkspaceSkills, approvals=None),
                prepare=lambda folder: folder.mkdir(parents=True, exist_ok=True),
                servers=locks,
            )
            await workspaces.open(ANN)
            made.append(
                Worktrees(workspaces, store, str, conversations.missing, now=utc_now, is_on=is_on)
            )
        here, there = made
        yield Servers(here, there, store, conversations, ws)
        tasks.cancel_scope.cancel()


async def test_a_conversation_goes_on_in_its_tree_at_another_server(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as servers:
        new = await servers.create()
        opened = await servers.here.open(new)
        assert opened.work_tree == servers.ws / ".candor-worktrees/cnv_one"
        begun = replace(new, session_id="s")
        followed = await servers.there.open(begun)
        assert followed.work_tree == opened.work_tree
        await servers.there.discard(begun, is_busy=False)
        assert not opened.root.exists()
        assert (await servers.here.find(begun)).work_tree is None
        assert (await servers.here.open(begun)).work_tree == opened.work_tree
        assert (opened.root / "a.txt").exists()
        await servers.there.end(begun)
        assert not opened.root.exists()
        assert await servers.store.of(EVERYBODY) == []


async def test_a_work_tree_that_git_cannot_read_can_be_thrown_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one with a pack that takes more memory than git gets."""
    async with two_servers(tmp_path) as servers:
        new = await servers.create()
        tree = (await servers.here.open(new)).root
        store = servers.ws / f".git/worktrees/{ONE}/objects"
        await run_sync(lambda: lay_pack(tree, store))
        run = WorkTree.run_blocking

        def failing(self: WorkTree, *words: str, **more: Any) -> bytes:
            if words[0] == "index-pack":
                raise GitFailed(128, b"", "fatal: Out of memory, malloc failed")
            return run(self, *words, **more)

        monkeypatch.setattr(WorkTree, "run_blocking", failing)
        with pytest.raises(WorkspaceUnavailable):
            await servers.here.view(new)
        await servers.here.discard(new, is_busy=False)
        assert not tree.exists()
        assert await run_sync(lambda: git(servers.ws, "branch", "--list", "candor/*")) == ""
        with pytest.raises(NotFound):
            await servers.here.discard(new, is_busy=False)
        assert (await servers.here.open(new)).root == tree


def lay_pack(tree: Path, store: Path) -> None:
    """Commit in a work tree as a command in the box does that packs its objects."""
    (store / "info").mkdir(parents=True)
    (store / "info/alternates").touch()
    commit_in_box(tree, store, "one\n")
    git_in_box(tree, store, "repack", "-adlqn")


async def test_a_conversation_that_began_in_the_workspace_stays_there(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as servers:
        begun = replace(await servers.create(), session_id="s")
        assert (await servers.here.open(begun)).work_tree is None
        assert await servers.store.of(EVERYBODY) == []


async def test_it_is_asked_once_a_session_whether_there_is_a_work_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that began without one gets none; another one of the conversation may have."""
    async with two_servers(tmp_path) as servers:
        new = await servers.create()
        begun = replace(new, session_id="s")
        assert (await servers.here.open(begun)).work_tree is None
        with monkeypatch.context() as patched:
            patched.delattr(WorkTreeStore, "has")
            assert (await servers.here.open(begun)).work_tree is None
        opened = await servers.there.open(new)
        renewed = replace(new, session_id="t")
        assert (await servers.here.open(renewed)).work_tree == opened.work_tree is not None


async def test_a_work_tree_is_kept_when_the_setting_is_off(tmp_path: Path) -> None:
    async with two_servers(tmp_path, is_on=False) as servers:
        one, two = await servers.create(), await servers.create("two")
        await servers.store.add(kept(one.id))
        assert (await servers.here.open(one)).work_tree is not None
        assert (await servers.here.open(two)).work_tree is None


def kept(conversation_id: ConversationId, *, minutes: int = 0) -> KeptTree:
    made_at = utc_now() - timedelta(minutes=minutes)
    return KeptTree(conversation_id=conversation_id, owner=EVERYBODY, made_at=made_at)


async def test_what_deleted_conversations_left_is_removed_unless_it_is_new(tmp_path: Path) -> None:
    """The conversation of a new one may be stored a little later, by another server."""
    async with two_servers(tmp_path) as servers:
        for name in ("one", "two"):
            await servers.here.open(conversation(name))
        await servers.store.remove(ONE)
        await servers.store.add(kept(ONE, minutes=11))
        await servers.there.begin()
        left = [tree.conversation_id for tree in await servers.store.of(EVERYBODY)]
        assert left == ["cnv_two"]
        assert [path.name for path in (servers.ws / ".candor-worktrees").iterdir()] == left


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("finds_it", ["run", "view", "begin"])
async def test_a_merge_that_a_dead_server_had_begun_is_ended_by_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finds_it: str
) -> None:
    monkeypatch.setattr("gateway.turns.worktrees._LOOK_S", 0.01)
    async with two_servers(tmp_path) as servers:
        one = await servers.create()
        tree = (await servers.here.open(one)).root
        if finds_it != "begin":
            await servers.there.view(one)
        (tree / "a.txt").write_text("one\n")
        with monkeypatch.context() as patched:
            patched.setattr(ConversationTrees, "_apply", dying)
            with pytest.raises(Killed):
                await servers.here.merge(one, is_busy=False)
        assert await servers.store.merging() == [EVERYBODY]
        async with anyio.create_task_group() as tasks:
            if finds_it == "run":
                tasks.start_soon(servers.there.run)
            elif finds_it == "view":
                await servers.there.view(one)
            else:
                await servers.there.begin()
            with anyio.fail_after(30):
                while await servers.store.merging():  # noqa: ASYNC110  nothing tells
                    await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
        assert (servers.ws / "a.txt").read_text() == "one\n"
        assert await run_sync(partial(git, servers.ws, "status", "--porcelain")) == ""


async def test_a_merge_that_could_not_be_ended_is_ended_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_servers(tmp_path) as servers:
        one = await servers.create()
        tree = (await servers.here.open(one)).root
        (tree / "a.txt").write_text("one\n")
        run = WorkTree.run_blocking

        def failing(self: WorkTree, *words: str, **more: Any) -> bytes:
            if words[0] == "checkout-index":
                raise GitFailed(128, b"", "fatal: No space left on device")
            return run(self, *words, **more)

        with monkeypatch.context() as patched:
            patched.setattr(WorkTree, "run_blocking", failing)
            with pytest.raises(WorkspaceUnavailable):
                await servers.here.merge(one, is_busy=False)
            await servers.here.view(one)  # which cannot end it, either
        await servers.here.merge(one, is_busy=False)
        assert (servers.ws / "a.txt").read_text() == "one\n"
        assert await servers.store.merging() == []


def dying(*_: object) -> None:
    raise Killed


async def test_git_does_one_thing_at_a_time_in_a_workspace_at_whichever_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_servers(tmp_path) as servers:
        one, two = await servers.create(), await servers.create("two")
        tree = (await servers.here.open(one)).root
        await servers.there.open(two)
        (tree / "a.txt").write_text("one\n")
        held = hold_calls(monkeypatch, WorkTreeStore.note_merge, once=True)
        lock, run = LeaseStore.lock, WorkTree.run_blocking
        refused: list[str] = []
        commands: list[str] = []

        async def tried(self: LeaseStore, node: Node, name: str) -> bool:
            has_it = await lock(self, node, name)
            refused.extend(() if has_it else (name,))
            return has_it

        def watched(self: WorkTree, *words: str, **more: Any) -> bytes:
            commands.append(words[0])
            return run(self, *words, **more)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(servers.here.merge, one, is_busy=False))
            with anyio.fail_after(30):
                await held.came.wait()
            monkeypatch.setattr(LeaseStore, "lock", tried)
            monkeypatch.setattr(WorkTree, "run_blocking", watched)
            tasks.start_soon(servers.there.view, two)
            with anyio.fail_after(30):
                while len(refused) < 2:  # noqa: ASYNC110  nothing tells
                    await anyio.sleep(0.01)
            assert commands == []
            held.let_go.set()
        merged = len(commands) - commands[::-1].index("update-ref")
        assert "add" not in commands[:merged]
        assert "add" in commands[merged:]


@pytest.mark.parametrize("is_per_user", [False, True])
async def test_what_an_earlier_release_kept_in_files_is_taken_over(
    tmp_path: Path, *, is_per_user: bool
) -> None:
    async with two_servers(tmp_path, is_per_user=is_per_user) as servers:
        await servers.create()
        below = "users/ann/worktrees" if is_per_user else "worktrees"
        folder = tmp_path / "here" / below
        folder.mkdir(parents=True)
        for name in ("cnv_one", "cnv_one.merge", "cnv_gone", "else", "cnv_one.index"):
            (folder / name).write_text('{"head": "x"}' if name.endswith(".merge") else "")
        await servers.here.begin()
        (tree,) = await servers.store.of(ANN if is_per_user else EVERYBODY)
        assert (tree.conversation_id, tree.merging) == (ONE, '{"head": "x"}')
        assert sorted(path.name for path in folder.iterdir()) == ["cnv_one.index", "else"]


async def test_a_merge_waits_for_calls_that_change_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_servers(tmp_path) as servers:
        one = await servers.create()
        await servers.here.open(one)
        base = await servers.here._workspaces.open(ANN)  # noqa: SLF001
        monkeypatch.setattr(base.lock, "_wait_s", 0.01)
        holder = object()
        assert await base.lock.acquire(holder)
        with pytest.raises(Conflict):
            await servers.here.merge(one, is_busy=False)
        base.lock.release(holder)
        assert (await servers.here.merge(one, is_busy=False)).files == 0
