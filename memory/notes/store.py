"""The store of indexed notes: a file's items change together, with their deliveries."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from urllib.parse import quote, unquote

from memory.clock import Now
from memory.intents.builders import Happening, intent_from_memory_forgotten
from memory.intents.chronicle import Recording, record_blocking, scrub_blocking
from memory.intents.registry import MemoryIntent
from memory.items.item import Item
from memory.items.scope import WORKSPACE_OWNER
from memory.notes.folder import FOLDER, NoteFile
from memory.outbox.delivery import Operation, deliveries_of
from memory.outbox.store import backends_of_blocking, enqueue_blocking
from memory.record.store import answers_after_blocking, cut_replies_blocking
from memory.stores.database import Connection, SqlDatabase
from memory.stores.sqlite.forgotten import (
    Mentions,
    find_mentions,
    mentions_since_blocking,
    note_forgotten_blocking,
)
from memory.stores.sqlite.items import delete_item_blocking, item_blocking, put_item_blocking
from memory.stores.sqlite.row_values import columns_of, read_value
from memory.stores.sqlite.statements import upsert_blocking
from memory.stores.sqlite.vacuum import request_vacuum_blocking

_FOLDER: Final = f"{FOLDER}/"


@dataclass(frozen=True, slots=True)
class IndexedNote:
    """A file when it was indexed."""

    file: NoteFile
    digest: str


class SqlNoteStore:
    """Which notes of an owner are indexed, in the memory's database.

    A file of everybody's is stored under its name, one of a user's own under the user and its name.
    """

    def __init__(
        self,
        database: SqlDatabase,
        *,
        deliver_to: Sequence[str],
        recording: Callable[[MemoryIntent], Recording],
        now: Now,
        owner_id: str = WORKSPACE_OWNER,
    ) -> None:
        self._database = database
        self._prefix = "" if owner_id == WORKSPACE_OWNER else f"{quote(owner_id, safe='')}:"
        self._deliver_to = deliver_to
        self._recording = recording
        self._now = now

    async def indexed(self) -> Mapping[str, IndexedNote]:
        """Return the indexed notes by file name."""
        begin = self._prefix + _FOLDER
        rows = await self._database.rows(
            "SELECT name, mtime_ns, size, digest FROM note_files WHERE substr(name, 1, ?) = ?",
            (len(begin), begin),
        )
        notes = (
            IndexedNote(file=self._shown(read_value(NoteFile, row)), digest=row["digest"])
            for row in rows
        )
        return {note.file.name: note for note in notes}

    def _shown(self, file: NoteFile) -> NoteFile:
        return replace(file, name=file.name.removeprefix(self._prefix))

    async def drop_all(self, *, of_users: bool) -> None:
        """Remove the items of all notes of users, or of all that are everybody's; whoever the owner
        here is. No file is touched.
        """
        differs = "!=" if of_users else "="
        rows = await self._database.rows(
            f"SELECT name FROM note_files WHERE substr(name, 1, ?) {differs} ?",  # noqa: S608
            (len(_FOLDER), _FOLDER),
        )
        for row in rows:
            await self._remove_stored(row["name"])

    async def put(self, note: IndexedNote, items: Sequence[Item] | None) -> None:
        """Replace a file's items; None: only its date has changed."""
        await self._database.write(lambda writer: self._put(writer, note, items, self._now()))

    async def remove(self, name: str) -> None:
        """Remove a file's items; if it is to be forgotten, also what refers to them."""
        await self._remove_stored(self._prefix + name)

    async def _remove_stored(self, name: str) -> None:
        wanted = await self._database.scalar(
            "SELECT item_ids FROM note_files WHERE name = ? AND forgotten_by IS NOT NULL", (name,)
        )
        item_ids = [] if wanted is None else json.loads(wanted)
        mentions = await find_mentions(self._database, item_ids)
        await self._database.write(lambda writer: self._remove(writer, name, mentions, self._now()))

    async def want_forgotten(self, name: str, owner_id: str) -> None:
        """Record that a file is to be forgotten, until it is removed or changes."""
        await self._database.execute(
            "UPDATE note_files SET forgotten_by = ? WHERE name = ?",
            (owner_id, self._prefix + name),
        )

    async def file_of(self, item_id: str) -> str | None:
        """Return the file of an item; None if the owner has none of it."""
        sql = "SELECT name FROM note_files, json_each(item_ids) AS one WHERE one.value = ?"
        name: str | None = await self._database.scalar(sql, (item_id,))
        if name is None or not name.startswith(self._prefix + _FOLDER):
            return None
        return name.removeprefix(self._prefix)

    def _put(
        self,
        connection: Connection,
        note: IndexedNote,
        items: Sequence[Item] | None,
        now: datetime,
    ) -> None:
        name = self._prefix + note.file.name
        owner_id = _owner_of(name)
        before = _items_of(connection, name)
        kept = before if items is None else [item.id for item in items]
        for item_id in before:
            if item_id not in kept:
                delete_item_blocking(connection, item_id)
                self._deliver(connection, ("forget", item_id, owner_id), 1, now)
        for item in items or ():
            known = item_blocking(connection, item.id)
            if known is not None and _says_the_same(known, item):
                continue
            revision = 1 if known is None else known.revision + 1
            put_item_blocking(connection, replace(item, revision=revision))
            self._deliver(connection, ("put", item.id, owner_id), revision, now)
        row = columns_of(
            replace(note.file, name=name),
            digest=note.digest,
            item_ids=json.dumps(kept),
            forgotten_by=None,
        )
        upsert_blocking(connection, "note_files", row, "name")

    def _remove(self, connection: Connection, name: str, mentions: Mentions, now: datetime) -> None:
        item_ids = _items_of(connection, name)
        for item_id in item_ids:
            delete_item_blocking(connection, item_id)
            self._deliver(connection, ("forget", item_id, _owner_of(name)), 1, now)
        row = connection.execute(
            "DELETE FROM note_files WHERE name = ? RETURNING forgotten_by", (name,)
        ).fetchone()
        if row is not None and row["forgotten_by"] is not None:
            self._forget(connection, item_ids, row["forgotten_by"], mentions, now)

    def _forget(
        self,
        connection: Connection,
        item_ids: Sequence[str],
        owner_id: str,
        mentions: Mentions,
        now: datetime,
    ) -> None:
        """Forget the intents that mention a file's items, whoever was shown them."""
        intent_ids = mentions_since_blocking(connection, mentions, item_ids)
        intent_ids += answers_after_blocking(connection, intent_ids)
        cut_replies_blocking(connection, intent_ids, now)
        scrub_blocking(connection, intent_ids, now, owner_id=None)
        note_forgotten_blocking(connection, item_ids, now)
        happening = Happening(owner_id=owner_id, occurred_at=now)
        intent = intent_from_memory_forgotten(
            happening, item_kind="note", item_id=" ".join(item_ids)
        )
        record_blocking(connection, [self._recording(intent)])
        request_vacuum_blocking(connection)

    def _deliver(
        self,
        connection: Connection,
        what: tuple[Operation, str, str],
        revision: int,
        now: datetime,
    ) -> None:
        """Enqueue a delivery of an operation on an owner's item; an id may come and go, so earlier
        deliveries give way.
        """
        operation, item_id, owner_id = what
        backends = set(self._deliver_to)
        if operation == "forget":  # also those that are not in use at present
            backends |= set(backends_of_blocking(connection, item_id))
        connection.execute(
            "DELETE FROM outbox WHERE item_id = ? AND (status = 'delivered' OR operation != ?)",
            (item_id, operation),
        )
        deliveries = deliveries_of(operation, item_id, owner_id, revision, backends)
        enqueue_blocking(connection, deliveries, now)


def _says_the_same(known: Item, item: Item) -> bool:
    """Return whether a section is as it was; one that has its date of the file keeps that, too."""
    was_dated, is_dated = (note.occurred_at != note.updated_at for note in (known, item))
    at = item.occurred_at if was_dated or is_dated else known.occurred_at
    same = replace(item, revision=known.revision, occurred_at=at, updated_at=known.updated_at)
    return same == known


def _owner_of(name: str) -> str:
    owner, is_a_users, _ = name.partition(":")
    return unquote(owner) if is_a_users and "/" not in owner else WORKSPACE_OWNER


def _items_of(connection: Connection, name: str) -> list[str]:
    row = connection.execute("SELECT item_ids FROM note_files WHERE name = ?", (name,)).fetchone()
    return [] if row is None else [str(item_id) for item_id in json.loads(row["item_ids"])]
