"""Where the agent of a conversation works: its user's workspace, or a git work tree of its own."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import anyio
import anyio.to_thread
from anyio import from_thread

from gateway.conversations.model import Conversation, Turn
from gateway.conversations.sql.work_trees import WorkTreeStore
from gateway.conversations.work_trees import KeptTree
from gateway.errors import Busy, Conflict, NotFound, StartError, WorkspaceUnavailable
from gateway.files.uploads import bring_uploads_blocking
from gateway.ids import ConversationId, UserId
from gateway.turns.file_changes import TurnChanges, describe_blocking
from gateway.turns.sanitizer import Mask, OutputSanitizer
from gateway.turns.workspace_lock import WorkspaceLock
from gateway.turns.workspaces import OpenWorkspace, OpenWorkspaces
from gateway.worktrees.git import GitFailed
from gateway.worktrees.kept_marks import remove_kept_blocking
from gateway.worktrees.worktrees import ConversationTrees, Merged
from memory.clock import Now
from memory.errors import StoreUnavailable

_log = logging.getLogger(__name__)

_LOOK_S: Final = 5.0
"""How often merges that a dead server has left are looked for."""
_UNSURE: Final = timedelta(minutes=10)
"""For so long the conversation of a new work tree may not be stored yet."""
_MOST_WITHOUT: Final = 10_000
_T = TypeVar("_T")

Missing = Callable[[Sequence[ConversationId]], Awaitable[Sequence[ConversationId]]]
"""Returns which of some conversations are gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeView:
    """A conversation's work tree as clients get it."""

    branch: str
    target: str | None
    changes: TurnChanges


class Worktrees:
    """Makes work trees at the first turn of conversations, and ends them.

    Any server of the database may use each of them; git does one thing in a workspace at a time,
    whichever server it is.
    """

    def __init__(
        self,
        workspaces: OpenWorkspaces,
        store: WorkTreeStore,
        mask: Mask,
        missing: Missing,
        *,
        now: Now,
        is_on: bool,
    ) -> None:
        """Initialise; with `is_on` new conversations get one. Those that have one keep it."""
        self._workspaces = workspaces
        self._store = store
        self._mask = mask
        self._missing = missing
        self._now = now
        self.is_on = is_on
        self._trees: dict[UserId | None, ConversationTrees] = {}
        self._repaired: set[UserId | None] = set()
        self._unrepaired: set[ConversationId] = set()
        """Those that could not be repaired; the next start tries again."""
        self._open: dict[ConversationId, OpenWorkspace] = {}
        self._without: dict[ConversationId, str] = {}
        """Sessions that began without a work tree, and so never get one, by conversation."""
        self._locks: dict[UserId | None, WorkspaceLock] = {}

    def known(self, conversation: Conversation) -> OpenWorkspace | None:
        """Return where a conversation's agent works, if that is known without a look."""
        if conversation.id in self._open or self.is_on:
            return self._open.get(conversation.id)
        return self._workspaces.known(conversation.user_id)

    async def begin(self) -> None:
        """Take over what an earlier release kept, and bring to an end what servers that died had
        begun in a workspace that is open.
        """
        kept = await anyio.to_thread.run_sync(self._workspaces.kept_trees_blocking)
        add = self._store.add_found if self._workspaces.is_per_user else self._store.add
        for mark, merging in kept.items():
            tree = self._kept(ConversationId(mark.name), None)
            await add(replace(tree, made_at=tree.made_at - _UNSURE, merging=merging))
        await anyio.to_thread.run_sync(remove_kept_blocking, kept)
        if (base := self._workspaces.last) is not None:
            async with self._using(base):
                pass

    async def run(self) -> None:
        """Bring merges to an end that servers which died had begun, until cancelled."""
        while True:
            await anyio.sleep(_LOOK_S)
            try:
                for owner in await self._store.merging():
                    async with self._using(await self._workspaces.open(owner)):
                        pass
            except (StoreUnavailable, WorkspaceUnavailable) as exc:
                _log.warning("work_trees_unknown", extra={"reason": str(exc)})

    async def open(self, conversation: Conversation) -> OpenWorkspace:
        """Return where the agent of a conversation works; its work tree is made if it is missing.

        If that fails, it is logged, and no agent starts there. Raise `WorkspaceUnavailable` if the
        user's workspace cannot be opened, `StoreUnavailable` if it is not known whether the
        conversation has a work tree.
        """
        base = await self._workspaces.open(conversation.user_id)
        return await self._open_tree(base, conversation)

    async def _open_tree(self, base: OpenWorkspace, conversation: Conversation) -> OpenWorkspace:
        known = self._open.get(conversation.id)
        if known is not None and await anyio.to_thread.run_sync(known.root.is_dir):
            return known  # another server may have thrown it away
        session = None if conversation.fork_at is not None else conversation.session_id
        if session is not None and self._without.get(conversation.id) == session:
            return base
        if not await self._store.has(conversation.id):
            if session is not None:
                self._note_without(conversation.id, session)
                return base
            wants = partial(_wants, await self._trees_of(base), conversation.id)
            if not self.is_on or not await anyio.to_thread.run_sync(wants):
                return base
            await self._store.add(self._kept(conversation.id, base.user_id))
        async with self._using(base) as trees:
            folder, is_made = await anyio.to_thread.run_sync(_make, trees, conversation.id)
        opened = await self._workspaces.at(base, folder)
        if not is_made:  # the folder may be there, and is made anew the next time
            return replace(opened, missing_because="Its work tree cannot be made.")
        self._open[conversation.id] = opened
        return opened

    def _kept(self, conversation_id: ConversationId, user_id: UserId | None) -> KeptTree:
        owner = _owner(user_id)
        return KeptTree(conversation_id=conversation_id, owner=owner, made_at=self._now())

    async def bring(self, workspace: OpenWorkspace, turn: Turn) -> None:
        """Copy a message's uploads into the work tree, which came into the workspace before the
        conversation was there.
        """
        if workspace.work_tree is None or "`" not in turn.message:
            return
        base = await self._workspaces.open(turn.user_id)
        work = partial(bring_uploads_blocking, base.root, workspace.work_tree, turn.message)
        await anyio.to_thread.run_sync(work)

    async def take_in(self, workspace: OpenWorkspace, conversation: Conversation) -> None:
        """Take into the repository what the commands of a turn committed in a work tree. If that
        fails it is logged, and the next use of the work tree does it.
        """
        if workspace.work_tree is None:
            return
        try:
            base = await self._workspaces.open(conversation.user_id)
            trees = await self._trees_of(base)
            if await anyio.to_thread.run_sync(trees.has_new_blocking, conversation.id):
                async with self._using(base):
                    await anyio.to_thread.run_sync(trees.take_in_blocking, conversation.id)
        except (Conflict, GitFailed, OSError, StoreUnavailable, WorkspaceUnavailable):
            _log.exception("objects_not_taken_in")

    async def find(self, conversation: Conversation) -> OpenWorkspace:
        """Return where the files of a conversation are; nothing is made."""
        base = await self._workspaces.open(conversation.user_id)
        folder = (await self._trees_of(base)).folder(conversation.id)
        if not await anyio.to_thread.run_sync(folder.is_dir):
            return base
        return self._open.get(conversation.id) or await self._workspaces.at(base, folder)

    async def view(self, conversation: Conversation) -> TreeView | None:
        """Return how a conversation's work tree differs from where it began; None: it has none."""
        async with self._held(conversation) as (trees, workspace):
            if workspace is None:
                return None
            sanitizer = OutputSanitizer(workspace.paths, self._mask)
            return await self._git(partial(_view_blocking, trees, conversation.id, sanitizer))

    async def merge(self, conversation: Conversation, *, is_busy: bool) -> Merged:
        """Merge a conversation's work tree into the workspace.

        Raise `Busy` while a turn runs, `NotFound` if there is no work tree, and `Conflict` as
        `ConversationTrees.merge_blocking` does.
        """
        _refuse_busy(is_busy=is_busy)
        self._unrepaired.clear()  # what kept a merge from its end may be gone, as a full disk
        base = await self._workspaces.open(conversation.user_id)
        async with self._held(conversation) as (trees, workspace):
            if workspace is None:
                raise _no_tree()
            async with _locked(base.lock), _locked(workspace.lock):
                message = _message("Merge", conversation.id, conversation.title)

                def note(merging: str | None) -> None:
                    from_thread.run(self._store.note_merge, conversation.id, merging)

                work = partial(trees.merge_blocking, conversation.id, message, note)
                return await self._git(work)

    async def discard(self, conversation: Conversation, *, is_busy: bool) -> None:
        """Throw a work tree away, also one that git cannot read. The agent's process has ended.
        Raise as `merge` does.
        """
        _refuse_busy(is_busy=is_busy)
        base = await self._workspaces.open(conversation.user_id)
        async with self._using(base) as trees:
            if not await self._git(partial(trees.has_blocking, conversation.id)):
                raise _no_tree()
            self._open.pop(conversation.id, None)
            await self._git(partial(trees.discard_blocking, conversation.id))

    async def end(self, conversation: Conversation) -> None:
        """Remove the work tree of a conversation that is deleted; a branch keeps what was not
        merged. One that cannot be removed now, or holds what no commit can, is left for a start.
        """
        self._open.pop(conversation.id, None)
        if not await self._store.has(conversation.id):
            return
        try:
            base = await self._workspaces.open(conversation.user_id)
        except WorkspaceUnavailable:
            return
        async with self._using(base) as trees:
            await self._end(trees, conversation.id, conversation.title)

    async def _end(
        self, trees: ConversationTrees, conversation_id: ConversationId, title: str
    ) -> None:
        message = _message("Keep what was not merged of", conversation_id, title)
        try:
            work = partial(trees.end_blocking, conversation_id, message)
            branch = await anyio.to_thread.run_sync(work)
        except (Conflict, GitFailed, OSError):
            _log.exception("work_tree_not_removed")
            return
        await self._store.remove(conversation_id)
        if branch is not None:
            _log.warning("unmerged_branch_kept", extra={"branch": branch})

    async def _trees_of(self, base: OpenWorkspace) -> ConversationTrees:
        """Return the work trees of a workspace."""
        if base.user_id not in self._trees:
            trees = await anyio.to_thread.run_sync(self._workspaces.trees_blocking, base)
            self._trees.setdefault(base.user_id, trees)
        return self._trees[base.user_id]

    def _note_without(self, conversation_id: ConversationId, session: str) -> None:
        if len(self._without) >= _MOST_WITHOUT:
            self._without.clear()
        self._without[conversation_id] = session

    @asynccontextmanager
    async def _using(self, base: OpenWorkspace) -> AsyncIterator[ConversationTrees]:
        """Use git in a workspace, which nobody else does meanwhile.

        What servers that died had begun is brought to an end before: at the first use all of it,
        then merges.
        """
        trees = await self._trees_of(base)
        lock = self._locks.setdefault(base.user_id, self._workspaces.git_lock(base))
        async with _locked(lock):
            owner = _owner(base.user_id)
            if base.user_id not in self._repaired:
                await self._repair(base, trees, await self._store.of(owner))
                self._repaired.add(base.user_id)
            elif owner in await self._store.merging():
                kept = [tree for tree in await self._store.of(owner) if tree.merging is not None]
                await self._repair(base, trees, kept)
            yield trees

    async def _repair(
        self, base: OpenWorkspace, trees: ConversationTrees, kept: Sequence[KeptTree]
    ) -> None:
        """Bring to an end what was begun, and remove the work trees of conversations that are
        gone.
        """
        for tree in kept:
            if tree.conversation_id not in self._unrepaired:
                await self._repair_one(base, trees, tree)
        old = self._now() - _UNSURE
        ids = [tree.conversation_id for tree in kept if tree.made_at < old]
        for gone in await self._missing(ids):
            await self._end(trees, gone, "")

    async def _repair_one(
        self, base: OpenWorkspace, trees: ConversationTrees, tree: KeptTree
    ) -> None:
        work = partial(trees.repair_blocking, tree.conversation_id, tree.merging)
        try:
            if tree.merging is None:
                await anyio.to_thread.run_sync(work)
                return
            async with _locked(base.lock):
                await anyio.to_thread.run_sync(work)
            await self._store.note_merge(tree.conversation_id, None)
        except (Conflict, GitFailed, OSError, ValueError, TypeError):
            _log.exception("work_trees_not_repaired")
            self._unrepaired.add(tree.conversation_id)

    @asynccontextmanager
    async def _held(
        self, conversation: Conversation
    ) -> AsyncIterator[tuple[ConversationTrees, OpenWorkspace | None]]:
        base = await self._workspaces.open(conversation.user_id)
        async with self._using(base) as trees:
            status = await self._git(partial(trees.status_blocking, conversation.id))
            folder = trees.folder(conversation.id)
            yield trees, (None if status is None else await self._workspaces.at(base, folder))

    async def _git(self, work: Callable[[], _T]) -> _T:
        try:
            return await anyio.to_thread.run_sync(work)
        except (GitFailed, OSError) as exc:
            _log.exception("git_failed")
            raise WorkspaceUnavailable("Git could not do this in the workspace now.") from exc


def _wants(trees: ConversationTrees, conversation_id: ConversationId) -> bool:
    """Return whether a new conversation gets a work tree, which it does if nobody knows."""
    try:
        return trees.may_begin_blocking(conversation_id)
    except (GitFailed, OSError):
        return True


def _owner(user_id: UserId | None) -> UserId:
    return UserId("") if user_id is None else user_id


def _make(trees: ConversationTrees, conversation_id: ConversationId) -> tuple[Path, bool]:
    """Return the folder of a conversation's work tree, and whether it is there."""
    try:
        return trees.open_blocking(conversation_id), True
    except (GitFailed, OSError, StartError):
        _log.exception("work_tree_not_made")
        return trees.folder(conversation_id), False


def _view_blocking(
    trees: ConversationTrees, conversation_id: ConversationId, sanitizer: OutputSanitizer
) -> TreeView | None:
    status = trees.status_blocking(conversation_id)
    if status is None:
        return None
    changes = trees.changes_blocking(conversation_id, status.base)
    described = describe_blocking(changes, sanitizer)
    return TreeView(branch=status.branch, target=status.target, changes=described)


@asynccontextmanager
async def _locked(lock: WorkspaceLock) -> AsyncIterator[None]:
    """Hold a lock while the context is open: that of a workspace blocks calls that change it."""
    holder = object()
    if not await lock.acquire(holder):
        raise Conflict("Agents are changing the workspace; try again.", code="workspace_busy")
    try:
        yield
    finally:
        lock.release(holder)


def _message(what: str, conversation_id: str, title: str) -> str:
    about = f"the conversation “{title}”" if title else "a conversation"
    return f"{what} {about}\n\nCandor-Conversation: {conversation_id}\n"


def _refuse_busy(*, is_busy: bool) -> None:
    if is_busy:
        raise Busy("A turn is running in the conversation; wait for its end, or stop it.")


def _no_tree() -> NotFound:
    return NotFound("The conversation has no work tree.", code="no_work_tree")
