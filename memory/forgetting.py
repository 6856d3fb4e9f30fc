"""Forgets an item everywhere: its rows, its words, what backends have of it, and the intents behind it.

What can be done here is done in one transaction; what backends have goes with the deliveries that are
written in it. The chronicle keeps that something was forgotten, and no word of what it was.
"""

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial

from memory.clock import Now
from memory.intents.builders import Happening, intent_from_memory_forgotten
from memory.intents.chronicle import Recording
from memory.intents.intent import MemoryIntent
from memory.items import Item
from memory.outbox.delivery import NewDelivery
from memory.scope import Scope
from memory.stores.sqlite.chronicle import record_blocking, scrub_blocking
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.episodes import delete_episode_blocking
from memory.stores.sqlite.item_rows import COLUMNS, item_of
from memory.stores.sqlite.items import delete_item_blocking
from memory.stores.sqlite.outbox import (
    backends_of_blocking,
    enqueue_blocking,
    withdraw_blocking,
)

ForgetNote = Callable[[Item], Awaitable[bool]]
"""Forgets a note: its file, and what is indexed of it."""


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
        if item is None or not scope.covers(item.scope):
            return False
        if item.kind == "note":
            return self._forget_note is not None and await self._forget_note(item)
        shown_by = await self._intents_that_show(item)
        return await self._database.write(
            partial(self._forget_blocking, item=item, shown_by=shown_by, now=self._now())
        )

    async def _intents_that_show(self, item: Item) -> Sequence[str]:
        """Find the intents that tell that this was put into a prompt: they hold its title."""
        rows = await self._database.rows(
            "SELECT id FROM intents WHERE owner_id = ? AND key LIKE 'memory.%'"
            " AND instr(payload, ?) > 0",
            (item.scope.owner_id, item.id),
        )
        return [row["id"] for row in rows]

    def _forget_blocking(
        self,
        connection: sqlite3.Connection,
        *,
        item: Item,
        shown_by: Sequence[str],
        now: datetime,
    ) -> bool:
        if not delete_item_blocking(connection, item.id):
            return False  # somebody else was faster
        backends = {*self._backends, *backends_of_blocking(connection, item.id)}
        withdraw_blocking(connection, item.id)
        sources = delete_episode_blocking(connection, item.id) or ()
        scrub_blocking(connection, [*sources, *shown_by], now)
        happening = Happening(owner_id=item.scope.owner_id, occurred_at=now)
        intent = intent_from_memory_forgotten(happening, item_kind=item.kind, item_id=item.id)
        record_blocking(connection, [self._recording(intent)])
        enqueue_blocking(connection, [_forgets(item, one) for one in sorted(backends)], now)
        return True


def _forgets(item: Item, backend: str) -> NewDelivery:
    return NewDelivery(
        backend=backend,
        operation="forget",
        item_id=item.id,
        owner_id=item.scope.owner_id,
        revision=item.revision + 1,
    )
