"""Keeps the index of the notes true to the folder: what changed, and nothing else, is read again."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol

import anyio
import anyio.to_thread
from anyio.abc import TaskStatus

from memory.errors import StoreUnavailable
from memory.intents.templates import Mask
from memory.items import Item
from memory.notes.folder import (
    NoteFile,
    NoteText,
    list_notes_blocking,
    read_note_blocking,
    remove_note_blocking,
)
from memory.notes.memory_questions import asks_about_memory
from memory.notes.notes_context import Telling, tell_notes_async
from memory.notes.sections import items_of
from memory.recall.quoted_notes import QuotedNotes

_log = logging.getLogger(__name__)

_LOOK_EVERY_S: Final = 2.0
"""So often the folder is looked at without being asked to: who saves a note asks about it in the next moment."""
_REST_FOLD: Final = 20
"""A look is followed by a rest of so many times its length at least: a large or slow folder is looked at more rarely."""
_REST_AFTER_FAILURE_S: Final = 60.0


_Read = Literal["indexed", "dated", "removed", "nothing"]
"""What became of a file that had changed."""


@dataclass(frozen=True, slots=True)
class IndexedNote:
    """A file as it was when it was indexed."""

    file: NoteFile
    digest: str


class NoteStore(Protocol):
    """Which notes are indexed."""

    async def indexed(self) -> Mapping[str, IndexedNote]:
        """Give what is indexed, by the files' names."""
        ...

    async def put(self, note: IndexedNote, items: Sequence[Item] | None) -> None:
        """Index a file anew, its items replaced; None: only its date has changed."""
        ...

    async def remove(self, name: str) -> None:
        """Take a file's items out; where somebody wants them forgotten, what tells of them, too."""
        ...

    async def want_forgotten(self, name: str, owner_id: str) -> None:
        """Note that a file is to be forgotten, until it is removed or changes."""
        ...

    async def file_of(self, item_id: str) -> str | None:
        """Tell which file an item is from."""
        ...


@dataclass(frozen=True, slots=True)
class Scanned:
    """What a look at the folder changed."""

    indexed: int = 0
    removed: int = 0


class NoteIndex:
    """The notes of one workspace, searched like everything else. `run` it in a task group."""

    def __init__(self, workspace: Path, store: NoteStore, mask: Mask) -> None:
        self._workspace = workspace
        self._store = store
        self._mask = mask
        self._limiter = anyio.CapacityLimiter(2)
        self._scanning = anyio.Lock()
        self._wakened = anyio.Event()
        self.on_change: Callable[[], None] = lambda: None
        """Called when notes were indexed or taken out."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Look at the folder at once, when woken, and now and then, until cancelled."""
        task_status.started()
        while True:
            self._wakened = anyio.Event()
            begun = anyio.current_time()
            try:
                await self.scan()
                rest_s = max(_LOOK_EVERY_S, _REST_FOLD * (anyio.current_time() - begun))
            except Exception:  # noqa: BLE001  one bad note must not end what else memory runs
                _log.exception("notes_not_indexed")
                rest_s = _REST_AFTER_FAILURE_S
            with anyio.move_on_after(rest_s):
                await self._wakened.wait()

    def wake(self) -> None:
        """Say that a note has changed, or may have."""
        self._wakened.set()

    async def scan(self) -> Scanned:
        """Read what has changed since the last look; one look at a time.

        Raises:
            StoreUnavailable: the index cannot be written.
        """
        async with self._scanning:
            indexed = await self._store.indexed()
            changed, gone = await anyio.to_thread.run_sync(
                self._compare_blocking, indexed, limiter=self._limiter
            )
            read = [await self._index(file, indexed.get(file.name)) for file in changed]
            for name in gone:
                await self._store.remove(name)
            scanned = Scanned(
                indexed=read.count("indexed"), removed=len(gone) + read.count("removed")
            )
            if scanned != Scanned():
                self.on_change()
            return scanned

    async def forget_note(self, item_id: str, owner_id: str) -> bool:
        """Forget the file that an item is from, with all items of it; False: there is none.

        What is to be forgotten must not come back with the next look, so the file goes first. Where all
        ends after that, the next look finds the file gone and that it was to be forgotten.

        Raises:
            StoreUnavailable: the file cannot be removed, or the index cannot be written.
        """
        async with self._scanning:
            name = await self._store.file_of(item_id)
            if name is None:
                return False
            await self._store.want_forgotten(name, owner_id)
            is_gone = await anyio.to_thread.run_sync(
                remove_note_blocking, self._workspace, name, limiter=self._limiter
            )
            if not is_gone:
                raise StoreUnavailable("The note's file cannot be removed.")
            await self._store.remove(name)
        return True

    def asks_about_memory(self, text: str) -> bool:
        """Whether a message asks about what is remembered."""
        return asks_about_memory(text)

    async def content(
        self, text: str, *, budget_chars: int, most_items: int, active_tools: Sequence[str]
    ) -> QuotedNotes:
        """Give the notes as they go in beside a message that asks about memory."""
        telling = Telling(
            budget_chars=budget_chars,
            most_items=most_items,
            active_tools=active_tools,
            mask=self._mask,
        )
        return await tell_notes_async(self._workspace, text, telling, limiter=self._limiter)

    def _compare_blocking(
        self, indexed: Mapping[str, IndexedNote]
    ) -> tuple[list[NoteFile], list[str]]:
        """Give the files that have changed, and the names of those that are gone."""
        listed = list_notes_blocking(self._workspace)
        changed = [file for file in listed if _is_changed(file, indexed.get(file.name))]
        return changed, sorted(indexed.keys() - {file.name for file in listed})

    async def _index(self, file: NoteFile, before: IndexedNote | None) -> _Read:
        read = await anyio.to_thread.run_sync(self._read_blocking, file, limiter=self._limiter)
        if read is None:
            if before is None:
                return "nothing"
            await self._store.remove(file.name)
            return "removed"
        note, items = read
        is_same = before is not None and before.digest == note.digest
        await self._store.put(
            IndexedNote(file=file, digest=note.digest), None if is_same else items
        )
        return "dated" if is_same else "indexed"

    def _read_blocking(self, file: NoteFile) -> tuple[NoteText, list[Item]] | None:
        if self._mask(file.name) != file.name:
            return None  # a name is shown and kept as it is: one that holds a secret is no note's
        note = read_note_blocking(self._workspace, file, self._mask)
        return None if note is None else (note, items_of(note))


def _is_changed(file: NoteFile, indexed: IndexedNote | None) -> bool:
    return indexed is None or indexed.file != file
