"""Where the agent of a conversation works: its user's workspace, or a git work tree of its own."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread

from gateway.conversations.model import Conversation, Turn
from gateway.errors import Busy, Conflict, NotFound, WorkspaceUnavailable
from gateway.files.uploads import bring_uploads_blocking
from gateway.ids import ConversationId, UserId
from gateway.turns.file_changes import TurnChanges, describe_blocking
from gateway.turns.sanitizer import Mask, OutputSanitizer
from gateway.turns.workspaces import OpenWorkspace, OpenWorkspaces
from gateway.worktrees.git import GitFailed
from gateway.worktrees.worktrees import ConversationTrees, Merged

_log = logging.getLogger(__name__)
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
    """Makes work trees at the first turn of conversations, and ends them."""

    def __init__(
        self, workspaces: OpenWorkspaces, mask: Mask, missing: Missing, *, is_on: bool
    ) -> None:
        """Initialise; with `is_on` new conversations get one. Those that have one keep it."""
        self._workspaces = workspaces
        self._mask = mask
        self._missing = missing
        self.is_on = is_on
        self._trees: dict[UserId | None, ConversationTrees] = {}
        self._open: dict[ConversationId, OpenWorkspace] = {}
        self._marked: set[ConversationId] = set()
        """Those that have a work tree, or are to have one."""
        self._locks: dict[UserId | None, anyio.Lock] = {}

    def known(self, conversation: Conversation) -> OpenWorkspace | None:
        """Return where a conversation's agent works, if that is known without a look."""
        if conversation.id in self._open or self.is_on:
            return self._open.get(conversation.id)
        return self._workspaces.known(conversation.user_id)

    async def repair(self, base: OpenWorkspace) -> None:
        """Bring to an end what an earlier run of the server had begun in a workspace."""
        await self._trees_of(base)

    async def open(self, conversation: Conversation) -> OpenWorkspace:
        """Return where the agent of a conversation works; its work tree is made if it is missing.

        If that fails, it is logged, and no agent starts there.
        """
        base = await self._workspaces.open(conversation.user_id)
        if (known := self._open.get(conversation.id)) is not None:
            return known
        trees = await self._trees_of(base)
        has_begun = conversation.session_id is not None and conversation.fork_at is None
        if conversation.id not in self._marked:
            wants = partial(_wants, trees, conversation.id)
            if has_begun or not self.is_on or not await anyio.to_thread.run_sync(wants):
                return base
        async with self._lock_of(base):
            folder, is_made = await anyio.to_thread.run_sync(_make, trees, conversation.id)
        opened = await self._workspaces.at(base, folder)
        self._marked.add(conversation.id)
        if is_made:
            self._open[conversation.id] = opened
        return opened

    async def bring(self, workspace: OpenWorkspace, turn: Turn) -> None:
        """Let a message's uploads be in the work tree, which came into the workspace before the
        conversation was there.
        """
        if workspace.work_tree is None or "`" not in turn.message:
            return
        base = await self._workspaces.open(turn.user_id)
        work = partial(bring_uploads_blocking, base.root, workspace.work_tree, turn.message)
        await anyio.to_thread.run_sync(work)

    async def find(self, conversation: Conversation) -> OpenWorkspace:
        """Return where the files of a conversation are; nothing is made."""
        base = await self._workspaces.open(conversation.user_id)
        if (known := self._open.get(conversation.id)) is not None:
            return known
        trees = await self._trees_of(base)
        folder = trees.folder(conversation.id)
        has_one = await anyio.to_thread.run_sync(folder.is_dir)
        return await self._workspaces.at(base, folder) if has_one else base

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
        base = await self._workspaces.open(conversation.user_id)
        async with self._held(conversation) as (trees, workspace):
            if workspace is None:
                raise _no_tree()
            async with _locked(base), _locked(workspace):
                message = _message("Merge", conversation.id, conversation.title)
                return await self._git(partial(trees.merge_blocking, conversation.id, message))

    async def discard(self, conversation: Conversation, *, is_busy: bool) -> None:
        """Throw a work tree away. The agent's process has ended. Raise as `merge` does."""
        _refuse_busy(is_busy=is_busy)
        async with self._held(conversation) as (trees, workspace):
            if workspace is None:
                raise _no_tree()
            self._open.pop(conversation.id, None)
            await self._git(partial(trees.discard_blocking, conversation.id))

    async def end(self, conversation: Conversation) -> None:
        """Remove the work tree of a conversation that is deleted; a branch keeps what was not
        merged. That of a workspace that cannot be opened is removed when it can.
        """
        self._open.pop(conversation.id, None)
        try:
            base = await self._workspaces.open(conversation.user_id)
        except WorkspaceUnavailable:
            return
        trees = await self._trees_of(base)
        async with self._lock_of(base):
            await self._end(trees, conversation.id, conversation.title)

    async def _end(self, trees: ConversationTrees, conversation_id: str, title: str) -> None:
        message = _message("Keep what was not merged of", conversation_id, title)
        try:
            work = partial(trees.end_blocking, conversation_id, message)
            branch = await anyio.to_thread.run_sync(work)
        except (GitFailed, OSError):
            _log.exception("work_tree_not_removed")
            return
        self._marked.discard(ConversationId(conversation_id))
        if branch is not None:
            _log.warning("unmerged_branch_kept", extra={"branch": branch})

    async def _trees_of(self, base: OpenWorkspace) -> ConversationTrees:
        """Return the work trees of a workspace, repaired at the first use.

        Those of conversations that are gone are removed.
        """
        if (known := self._trees.get(base.user_id)) is not None:
            return known
        async with self._lock_of(base):
            if base.user_id not in self._trees:
                self._trees[base.user_id] = await self._repaired(base)
            return self._trees[base.user_id]

    async def _repaired(self, base: OpenWorkspace) -> ConversationTrees:
        trees = await anyio.to_thread.run_sync(self._workspaces.trees_blocking, base)
        try:
            await anyio.to_thread.run_sync(trees.repair_blocking)
            names = await anyio.to_thread.run_sync(trees.known_blocking)
            left = [ConversationId(name) for name in names]
            self._marked.update(left)
        except (GitFailed, OSError, ValueError):
            _log.exception("work_trees_not_repaired")
            left = []
        for gone in await self._missing(left):
            await self._end(trees, gone, "")
        return trees

    def _lock_of(self, base: OpenWorkspace) -> anyio.Lock:
        """Return the lock of a workspace's work trees: git does one thing there at a time."""
        return self._locks.setdefault(base.user_id, anyio.Lock(fast_acquire=True))

    @asynccontextmanager
    async def _held(
        self, conversation: Conversation
    ) -> AsyncIterator[tuple[ConversationTrees, OpenWorkspace | None]]:
        base = await self._workspaces.open(conversation.user_id)
        trees = await self._trees_of(base)
        async with self._lock_of(base):
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
        return trees.wants_blocking(conversation_id, is_new=True)
    except (GitFailed, OSError):
        return True


def _make(trees: ConversationTrees, conversation_id: ConversationId) -> tuple[Path, bool]:
    """Return the folder of a conversation's work tree, and whether it is there."""
    try:
        return trees.open_blocking(conversation_id), True
    except (GitFailed, OSError):
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
async def _locked(workspace: OpenWorkspace) -> AsyncIterator[None]:
    """Block calls that change the workspace while the context is open."""
    holder = object()
    if not await workspace.lock.acquire(holder):
        raise Conflict("Agents are changing the workspace; try again.", code="workspace_busy")
    try:
        yield
    finally:
        workspace.lock.release(holder)


def _message(what: str, conversation_id: str, title: str) -> str:
    about = f"the conversation “{title}”" if title else "a conversation"
    return f"{what} {about}\n\nCandor-Conversation: {conversation_id}\n"


def _refuse_busy(*, is_busy: bool) -> None:
    if is_busy:
        raise Busy("A turn is running in the conversation; wait for its end, or stop it.")


def _no_tree() -> NotFound:
    return NotFound("The conversation has no work tree.", code="no_work_tree")
