"""The notes of a server: those of one workspace are everybody's, or each user has their own."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio

from memory.items.scope import WORKSPACE_OWNER
from memory.notes.index import NoteIndex, Scanned
from memory.recall.query import QuotedNotes

_LOOK_EVERY_S: Final = 2.0
"""Pause between looks for further users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserNotes:
    """Where the notes of each user are."""

    workspace_of: Callable[[str], Path]
    """Returns the workspace of a user, who may be new."""
    users: Callable[[], Collection[str]]
    """Returns the users whose notes are looked at for changes."""


class Notebooks:
    """The indexes of the notes, one for each owner. `run` it in a task group."""

    def __init__(
        self,
        workspace: Path,
        user_notes: UserNotes | None,
        open_index: Callable[[str, Path], NoteIndex],
    ) -> None:
        """Initialise; `open_index` returns the index of an owner's notes in a workspace."""
        self._workspace = workspace
        self._user_notes = user_notes
        self._open_index = open_index
        self._indexes: dict[str, NoteIndex] = {}

    def _owners(self) -> list[str]:
        if self._user_notes is None:
            return [WORKSPACE_OWNER]
        return list(self._user_notes.users())

    def _of(self, owner_id: str) -> NoteIndex:
        """Return the index of the notes that an owner sees."""
        notes = self._user_notes
        owner_id = WORKSPACE_OWNER if notes is None else owner_id
        if owner_id not in self._indexes:
            workspace = self._workspace if notes is None else notes.workspace_of(owner_id)
            self._indexes[owner_id] = self._open_index(owner_id, workspace)
        return self._indexes[owner_id]

    async def run(self) -> None:
        """Keep all indexes up to date until cancelled."""
        running: set[str] = set()
        async with anyio.create_task_group() as tasks:
            while True:
                for owner_id in self._owners():
                    if owner_id not in running:
                        running.add(owner_id)
                        tasks.start_soon(self._of(owner_id).run)
                await anyio.sleep(_LOOK_EVERY_S)

    def wake(self) -> None:
        """Announce that a note may have changed."""
        for index in self._indexes.values():
            index.wake()

    async def scan(self) -> Scanned:
        """Index what has changed since the last scan; see `NoteIndex.scan`."""
        done = [await self._of(owner_id).scan() for owner_id in self._owners()]
        return Scanned(
            indexed=sum(scanned.indexed for scanned in done),
            removed=sum(scanned.removed for scanned in done),
        )

    async def forget_note(self, item_id: str, owner_id: str) -> bool:
        """Forget the file of an item that an owner sees; see `NoteIndex.forget_note`."""
        return await self._of(owner_id).forget_note(item_id, owner_id)

    async def content(
        self,
        text: str,
        *,
        owner_id: str,
        budget_chars: int,
        most_items: int,
        active_tools: Sequence[str],
    ) -> QuotedNotes:
        """Return the quoted notes that an owner sees for a message that asks about memory."""
        return await self._of(owner_id).content(
            text, budget_chars=budget_chars, most_items=most_items, active_tools=active_tools
        )
