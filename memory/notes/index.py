"""Keeps the index of the notes up to date; only changed files are read."""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

import anyio
import anyio.to_thread

from memory.background import Duties, NoOthers
from memory.errors import StoreUnavailable
from memory.intents.masking import Mask
from memory.items.item import Item
from memory.items.scope import WORKSPACE_OWNER
from memory.notes.folder import (
    NoteFile,
    NoteText,
    list_notes_blocking,
    read_note_blocking,
    remove_note_blocking,
)
from memory.notes.notes_context import NotesBounds, quoted_notes_async
from memory.notes.sections import items_of
from memory.notes.store import IndexedNote, SqlNoteStore
from memory.recall.query import QuotedNotes
from policies.content.write_gate import without_unsavable

_log = logging.getLogger(__name__)

_LOOK_EVERY_S: Final = 2.0
"""Pause between scans; a person may ask about a note right after saving it."""
_LOOK_AGAIN_AFTER: Final = 1_000
"""Sections that are indexed before the folder is looked at again: what a person saves meanwhile
does not wait for all that was there before.
"""
_REST_AFTER_FAILURE_S: Final = 60.0


_Read = Literal["indexed", "dated", "removed", "nothing"]
"""The result for a changed file."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """The result of a scan."""

    indexed: int = 0
    removed: int = 0
    is_all: bool = field(default=True, compare=False)
    """False if the folder is to be looked at again before the rest of it is indexed."""
    is_settled: bool = field(default=False, compare=False)
    """True if there is nothing to do until a file changes."""


class NoteIndex:
    """Indexes the notes of one workspace, which belong to `owner_id`. `run` it in a task group.

    `on_change` is called when notes were indexed or removed.
    """

    def __init__(
        self,
        workspace: Path,
        store: SqlNoteStore,
        mask: Mask,
        *,
        owner_id: str = WORKSPACE_OWNER,
        on_change: Callable[[], None] = lambda: None,
        duties: Duties | None = None,
    ) -> None:
        """`duties` keep out other servers that index the same notes, if there may be any."""
        self._workspace = workspace
        self._owner_id = owner_id
        self._store = store
        self._mask = mask
        self._limiter = anyio.CapacityLimiter(2)
        self._scanning = anyio.Lock(fast_acquire=True)
        self._wakened = anyio.Event()
        self._settled: Sequence[NoteFile] | None = None
        """The folder when all of it was indexed: while it is the same, there is nothing to do."""
        self._on_change = on_change
        self._duties = duties or NoOthers()

    async def run(self) -> None:
        """Scan at once, when woken, and at intervals, until cancelled."""
        while True:
            self._wakened = anyio.Event()
            begun = anyio.current_time()
            try:
                await self.scan()
                rest_s = rest_after(anyio.current_time() - begun)
            except Exception:  # noqa: BLE001  one bad note must not end what else memory runs
                _log.exception("notes_not_indexed")
                rest_s = _REST_AFTER_FAILURE_S
            with anyio.move_on_after(rest_s):
                await self._wakened.wait()

    def wake(self) -> None:
        """Announce that a note may have changed."""
        self._wakened.set()

    async def scan(self) -> Scanned:
        """Index what has changed since the last scan, the latest change first; one scan at a time.

        Raise `StoreUnavailable` if the index cannot be written.
        """
        async with self._scanning:
            indexed = removed = 0
            while (done := await self._look()) is not None:
                if done != Scanned():
                    self._on_change()
                indexed, removed = indexed + done.indexed, removed + done.removed
                if done.is_all:
                    break
            return Scanned(indexed=indexed, removed=removed)

    async def _look(self) -> Scanned | None:
        """Look at the folder and index what has changed, or a part of it; return None if nothing
        has.
        """
        before, self._settled = self._settled, None
        listed = await anyio.to_thread.run_sync(
            list_notes_blocking, self._workspace, limiter=self._limiter
        )
        done = None
        if listed != before:
            async with self._alone():  # no other server forgets what is being read
                done = await self._take_over(listed)
        if done is None or done.is_settled:
            self._settled = listed
        return done

    def _alone(self) -> AbstractAsyncContextManager[None]:
        return self._duties.alone(f"notes of {self._owner_id}")

    async def _take_over(self, listed: Sequence[NoteFile]) -> Scanned:
        indexed = await self._store.indexed()
        known = {note.file for note in indexed.values()}
        changed = [file for file in listed if file not in known]
        gone = sorted(indexed.keys() - {file.name for file in listed})
        for name in gone:
            await self._store.remove(name)
        read: list[_Read] = []
        sections = 0
        for file in sorted(changed, key=lambda file: -file.mtime_ns):
            if sections >= _LOOK_AGAIN_AFTER:
                break
            result, count = await self._index(file, indexed.get(file.name))
            read.append(result)
            sections += count
        is_all = len(read) == len(changed)
        return Scanned(
            indexed=read.count("indexed"),
            removed=len(gone) + read.count("removed"),
            is_all=is_all,
            # a file that could not be read may be readable later, without another date
            is_settled=is_all and {"indexed", "dated"}.issuperset(read),
        )

    async def forget_note(self, item_id: str, owner_id: str) -> bool:
        """Forget the file of an item with all its items; return False if there is none.

        The file is removed first, so that it does not come back with the next scan. If the process
        ends after that, the next scan completes the removal. Raise `StoreUnavailable` if the file
        cannot be removed, or the index cannot be written.
        """
        async with self._scanning, self._alone():
            name = await self._store.file_of(item_id)
            if name is None:
                return False
            self._settled = None
            await self._store.want_forgotten(name, owner_id)
            is_gone = await anyio.to_thread.run_sync(
                remove_note_blocking, self._workspace, name, limiter=self._limiter
            )
            if not is_gone:
                raise StoreUnavailable("The note's file cannot be removed.")
            await self._store.remove(name)
        return True

    async def content(
        self, text: str, *, budget_chars: int, most_items: int, active_tools: Sequence[str]
    ) -> QuotedNotes:
        """Return the quoted notes for a message that asks about memory."""
        bounds = NotesBounds(
            budget_chars=budget_chars,
            most_items=most_items,
            active_tools=active_tools,
            mask=self._mask,
            owner_id=self._owner_id,
        )
        return await quoted_notes_async(self._workspace, text, bounds, limiter=self._limiter)

    async def _index(self, file: NoteFile, before: IndexedNote | None) -> tuple[_Read, int]:
        """Index a file; return the result, and how many sections it has."""
        read = await anyio.to_thread.run_sync(self._read_blocking, file, limiter=self._limiter)
        if read is None:
            if before is None:
                return "nothing", 0
            await self._store.remove(file.name)
            return "removed", 0
        note, items = read
        is_same = before is not None and before.digest == note.digest
        await self._store.put(
            IndexedNote(file=file, digest=note.digest), None if is_same else items
        )
        return ("dated", 0) if is_same else ("indexed", len(items))

    def _read_blocking(self, file: NoteFile) -> tuple[NoteText, list[Item]] | None:
        if self._mask(file.name) != file.name:
            return None  # names are shown unmasked, so a file whose name holds a secret is no note
        note = read_note_blocking(self._workspace, file, self._mask)
        if note is None:
            return None
        saved = replace(note, text=without_unsavable(note.text).text)
        return note, items_of(saved, self._owner_id)


def rest_after(took_s: float) -> float:
    """Return the pause after a scan: no more than half the time goes into looking."""
    return max(_LOOK_EVERY_S, took_s)
