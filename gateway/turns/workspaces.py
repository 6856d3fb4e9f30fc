"""The workspaces in use: what the calls and files of each are judged, locked and shown with."""

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread

from gateway.errors import StartError, WorkspaceUnavailable
from gateway.files.access import WorkspaceAccess
from gateway.ids import UserId
from gateway.observability.paths import PathView
from gateway.skills import WorkspaceSkills
from gateway.turns.workspace_lock import LocksOfServers, WorkspaceLock
from gateway.workspaces import AgentWorkspace, Workspaces
from gateway.worktrees.kept_marks import read_kept_blocking
from gateway.worktrees.worktrees import ConversationTrees
from policies.rules import Rules
from policies.tools import ToolGate

TREES: Final = "worktrees"
"""Below the folder that keeps what is known of the agents."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenWorkspace:
    """A workspace in use."""

    root: Path
    policy: ToolGate
    files: WorkspaceAccess
    """For persons, and for pictures that a message names."""
    lock: WorkspaceLock
    paths: PathView
    skills: WorkspaceSkills
    user_id: UserId | None = None
    """The user whose workspace it is; None: it is everybody's."""
    work_tree: Path | None = None
    """The folder, if it is a work tree of one conversation."""
    missing_because: str | None = None
    """Why it, or the one that it stands for, cannot be opened, for the journal: no agent starts in
    it. None: it is there.
    """


MakeGate = Callable[[Path, Rules, WorkspaceSkills], ToolGate]
"""Returns the gate of a folder under some rules."""
MakeSkills = Callable[[Path], WorkspaceSkills]
"""Returns the skills of a folder."""
MakePaths = Callable[[Path], PathView]
"""Returns the view of paths that the users of a workspace get; called in a worker thread."""


class OpenWorkspaces:
    """Opens the workspace of a user when it is first used.

    A user's folder is made then, by `prepare`, which is called in a worker thread.
    """

    def __init__(
        self,
        workspaces: Workspaces,
        rules: Rules,
        *,
        make_gate: MakeGate,
        make_paths: MakePaths,
        make_skills: MakeSkills,
        prepare: Callable[[Path], None],
        users: set[UserId] | None = None,
        servers: LocksOfServers | None = None,
    ) -> None:
        """Initialise. `rules` are those of all workspaces, and `users` gets those whose own are
        opened. `servers` has the locks where other servers use the workspaces, too.
        """
        self._workspaces = workspaces
        self._rules = rules
        self._make_gate = make_gate
        self._make_paths = make_paths
        self._make_skills = make_skills
        self._prepare = prepare
        self._users = set() if users is None else users
        self._open: dict[UserId | None, OpenWorkspace] = {}
        self._opening = anyio.Lock(fast_acquire=True)
        self._make_lock = partial(WorkspaceLock, servers=servers)
        self._common_lock = self._make_lock(name="common")
        """Of all workspaces whose calls may change something that others may change, too."""
        self._locks: WeakValueDictionary[Path, WorkspaceLock] = WeakValueDictionary()
        self.last_user_id: UserId | None = None
        """The user who used a workspace last, if each has their own."""

    @property
    def is_per_user(self) -> bool:
        """True if each user has a workspace of their own."""
        return self._workspaces.is_per_user

    def owner_of(self, user_id: UserId) -> UserId | None:
        """Return whose workspace a user works in; None: everybody's."""
        return user_id if self.is_per_user else None

    def known(self, user_id: UserId) -> OpenWorkspace | None:
        """Return the workspace of a user if it is open."""
        return self._open.get(self.owner_of(user_id))

    @property
    def last(self) -> OpenWorkspace | None:
        """The workspace that was used last, if it could be opened."""
        return self._open.get(self.last_user_id)

    async def open(self, user_id: UserId) -> OpenWorkspace:
        """Return the workspace of a user.

        Raise `WorkspaceUnavailable` if its folder cannot be made, or is none; the log says why, and
        the next call tries again.
        """
        owner = self.owner_of(user_id)
        if owner not in self._open:
            async with self._opening:
                await self._add(self._workspaces.of(user_id), owner)
        self.last_user_id = owner
        return self._open[owner]

    async def _add(self, place: AgentWorkspace, owner: UserId | None) -> None:
        if owner in self._open:
            return
        if owner is not None:
            await self._prepare_folder(place.root)
            self._users.add(owner)
        self._open[owner] = await self._make(place, owner)

    async def open_empty(self, user_id: UserId, because: str) -> OpenWorkspace:
        """Return a workspace in place of one that cannot be opened, in which no agent starts."""
        made = await self._make(self._workspaces.own, self.owner_of(user_id))
        return replace(made, missing_because=because)

    async def at(self, base: OpenWorkspace, folder: Path) -> OpenWorkspace:
        """Return a work tree of a workspace, under the same rules."""
        lock = self._locks.setdefault(folder, self._make_lock(name=str(folder)))
        tree = await self._made(folder, base.policy.rules, lock, base.user_id)
        return replace(tree, work_tree=folder)

    def trees_blocking(self, base: OpenWorkspace) -> ConversationTrees:
        """Return what makes the work trees of a workspace."""
        own_dir = self._workspaces.of(base.user_id or UserId("")).state_dir / TREES
        enclose = self._workspaces.enclose_git
        return ConversationTrees(base.root.resolve(), own_dir, self._prepare, enclose)

    def kept_trees_blocking(self) -> Mapping[Path, str | None]:
        """Return what an earlier release kept of work trees; see `read_kept_blocking`."""
        users = self._workspaces.users_state_dir.glob(f"*/{TREES}")
        folders = users if self.is_per_user else [self._workspaces.data_dir / TREES]
        return {mark: told for it in folders for mark, told in read_kept_blocking(it).items()}

    def git_lock(self, base: OpenWorkspace) -> WorkspaceLock:
        """Return a lock for git in a workspace."""
        return self._make_lock(wait_s=math.inf, name=f"git {base.root}")

    async def _prepare_folder(self, root: Path) -> None:
        try:
            await anyio.to_thread.run_sync(self._prepare, root)
        except StartError as exc:
            _log.error("workspace_not_made", extra={"reason": str(exc)})
            raise WorkspaceUnavailable("Your workspace cannot be opened now.") from exc

    async def _make(self, place: AgentWorkspace, owner: UserId | None) -> OpenWorkspace:
        rules = place.extend(self._rules)
        is_alone = not any(directory.writable for directory in rules.directories)
        lock = (
            self._make_lock(name=str(place.root))
            if owner is not None and is_alone
            else self._common_lock
        )
        return await self._made(place.root, rules, lock, owner)

    async def _made(
        self, root: Path, rules: Rules, lock: WorkspaceLock, owner: UserId | None
    ) -> OpenWorkspace:
        skills = self._make_skills(root)
        await skills.refresh()
        policy = self._make_gate(root, rules, skills)
        return OpenWorkspace(
            root=root,
            policy=policy,
            files=WorkspaceAccess(root, policy),
            lock=lock,
            paths=await anyio.to_thread.run_sync(self._make_paths, root),
            skills=skills,
            user_id=owner,
        )
