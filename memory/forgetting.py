"""Forgets an item everywhere: its rows, its words, what backends have of it, and the intents behind it.

What can be done here is done in one transaction; what backends have goes with the deliveries that are
written in it. The chronicle keeps that something was forgotten, and no word of what it was.
"""

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from memory.clock import Now
from memory.intents.builders import Happening, intent_from_memory_forgotten
from memory.intents.chronicle import Recording
from memory.intents.intent import MemoryIntent
from memory.items import Item, ItemKind
from memory.outbox.delivery import NewDelivery
from memory.scope import Scope
from memory.stores.sqlite.case_rows import read_case
from memory.stores.sqlite.cases import delete_case_blocking
from memory.stores.sqlite.chronicle import record_blocking, scrub_blocking
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.episodes import delete_episode_blocking
from memory.stores.sqlite.forgotten import (
    Telling,
    note_forgotten_blocking,
    telling_of,
    telling_since_blocking,
)
from memory.stores.sqlite.item_rows import COLUMNS, item_of
from memory.stores.sqlite.items import delete_item_blocking
from memory.stores.sqlite.outbox import (
    backends_of_blocking,
    enqueue_again_blocking,
    withdraw_blocking,
)
from memory.stores.sqlite.word_purge import ask_purge_blocking

ForgetNote = Callable[[str, str], Awaitable[bool]]
"""Forgets the note that an item is of, at somebody's wish: its file, and all that is known of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Thing:
    """What is to be forgotten."""

    id: str
    kind: ItemKind
    scope: Scope
    revision: int


class Forgetting:
    """The one way in which something is forgotten."""

    def __init__(
        self,
        database: Database,
        *,
        backends: Sequence[str],
        recording: Callable[[MemoryIntent], Recording],
        now: Now,
        forget_note: ForgetNote | None = None,
    ) -> None:
        self._database = database
        self._backends = tuple(backends)
        self._recording = recording
        self._now = now
        self._forget_note = forget_note

    async def forget(self, item_id: str, scope: Scope) -> bool:
        """Forget an item that the scope covers; False: there is none, and nothing changed.

        Every backend that was or may have been given it is told to forget it, those that are not in use
        at present too; what was still to be delivered of it is withdrawn.

        Raises:
            StoreUnavailable: nothing was forgotten.
        """
        row = await self._database.row(
            f"SELECT {COLUMNS} FROM items WHERE id = ?",  # noqa: S608  names of our own
            (item_id,),
        )
        item = item_of(row) if row is not None else None
        if item is not None and item.kind == "note":
            return await self._forget_the_note(item, scope)
        thing = await self._case(item_id) or (_thing_of(item) if item is not None else None)
        if thing is None or not scope.covers(thing.scope):
            return False
        telling = await telling_of(self._database, [thing.id], thing.scope.owner_id)
        return await self._database.write(
            partial(self._forget_blocking, thing=thing, telling=telling, now=self._now())
        )

    async def _forget_the_note(self, item: Item, scope: Scope) -> bool:
        if self._forget_note is None or not scope.covers(item.scope):
            return False
        return await self._forget_note(item.id, scope.owner_id)

    async def _case(self, case_id: str) -> _Thing | None:
        """Give a case by its own row: what search does not show has no item."""
        row = await self._database.row("SELECT value FROM cases WHERE case_id = ?", (case_id,))
        if row is None:
            return None
        case = read_case(row["value"])
        return _Thing(id=case.case_id, kind="case", scope=case.scope, revision=case.revision)

    def _forget_blocking(
        self,
        connection: sqlite3.Connection,
        *,
        thing: _Thing,
        telling: Telling,
        now: datetime,
    ) -> bool:
        was_case = delete_case_blocking(connection, thing.id)
        if not delete_item_blocking(connection, thing.id) and not was_case:
            return False  # somebody else was faster
        backends = {*self._backends, *backends_of_blocking(connection, thing.id)}
        withdraw_blocking(connection, thing.id)
        owner_id = thing.scope.owner_id
        told = [
            *(delete_episode_blocking(connection, thing.id) or ()),
            *telling_since_blocking(connection, telling, [thing.id], owner_id),
        ]
        scrub_blocking(connection, told, now, owner_id=owner_id)
        note_forgotten_blocking(connection, [thing.id], now)
        happening = Happening(owner_id=owner_id, occurred_at=now)
        intent = intent_from_memory_forgotten(happening, item_kind=thing.kind, item_id=thing.id)
        record_blocking(connection, [self._recording(intent)])
        for one in sorted(backends):  # again, where it was forgotten before and imported since
            enqueue_again_blocking(connection, _forgets(thing, one), now)
        ask_purge_blocking(connection)
        return True


def _thing_of(item: Item) -> _Thing:
    return _Thing(id=item.id, kind=item.kind, scope=item.scope, revision=item.revision)


def _forgets(thing: _Thing, backend: str) -> NewDelivery:
    return NewDelivery(
        backend=backend,
        operation="forget",
        item_id=thing.id,
        owner_id=thing.scope.owner_id,
        revision=thing.revision + 1,
    )
