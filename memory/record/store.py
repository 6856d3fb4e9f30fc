"""The store of the items of conversations' turns."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final

from memory.clock import Now
from memory.intents.chronicle import scrub_deleted_blocking
from memory.items.item import Item
from memory.outbox.delivery import deliveries_of
from memory.outbox.store import (
    backends_of_blocking,
    deliver_item_blocking,
    enqueue_again_blocking,
)
from memory.record.memory_use import (
    MemoryUse,
    memory_use_blocking,
    note_use_of_copy_blocking,
)
from memory.record.outdated import outdated_blocking
from memory.record.turn_item import Outdated, without_cut, without_outdated, without_reply
from memory.stores.database import Connection, SqlDatabase
from memory.stores.sqlite.forgotten import (
    find_mentions,
    is_forgotten_blocking,
    mentions_since_blocking,
    note_forgotten_blocking,
)
from memory.stores.sqlite.items import delete_item_blocking, item_blocking, put_item_blocking
from memory.stores.sqlite.statements import first_row
from memory.stores.sqlite.vacuum import request_vacuum_blocking

_TAKEN: Final = "SELECT 1 FROM items WHERE owner_id = ? AND thread = ? AND position = ? AND id != ?"
"""An imported dialogue has the place in the thread."""
_FORGOTTEN_FIRST: Final = "SELECT 1 FROM forgotten_items WHERE item_id = ? AND was_deleted = 0"
"""What was deleted with its conversation lives on in its copy; what a person forgot does not."""
_COPIED: Final = (
    "INSERT INTO copied_turns (turn_id, copy_of) VALUES (?, ?) ON CONFLICT (turn_id) DO NOTHING"
)
_ALIKE: Final = (
    "WITH asked (id) AS (SELECT value FROM json_each(:ids)),"
    " firsts (id) AS (SELECT id FROM asked UNION"
    " SELECT copy_of FROM copied_turns WHERE turn_id IN (SELECT id FROM asked))"
    " SELECT id FROM firsts UNION"
    " SELECT turn_id FROM copied_turns WHERE copy_of IN (SELECT id FROM firsts)"
)
"""Turns with those that were copied from them, or that they were copied from."""
_BEHIND: Final = (
    "WITH asked (id) AS (SELECT value FROM json_each(:ids))"
    " SELECT turn_id FROM items WHERE kind IN ('fact', 'episode', 'turn') AND turn_id IS NOT NULL"
    " AND items.id IN (SELECT id FROM asked)"
    " UNION SELECT saved_turn_id FROM facts WHERE saved_turn_id IS NOT NULL"
    " AND fact_id IN (SELECT id FROM asked)"
    " UNION SELECT intents.turn_id FROM episodes JOIN episode_sources ON episode = episodes.id"
    " JOIN intents ON intents.id = intent_id"
    " WHERE intents.turn_id IS NOT NULL AND episode_id IN (SELECT id FROM asked)"
)
"""Of an episode also the turns of what was merged into it."""
_OF_OTHERS: Final = (
    "WITH asked (turn_id) AS (SELECT value FROM json_each(:ids))"
    " SELECT turn_id FROM asked WHERE EXISTS (SELECT 1 FROM intents"
    " WHERE intents.turn_id = asked.turn_id AND owner_id != :owner)"
    " OR EXISTS (SELECT 1 FROM items WHERE items.id = asked.turn_id AND owner_id != :owner)"
)


class SqlRecordStore:
    """Stores the items of turns. Every method may raise `StoreUnavailable`."""

    def __init__(self, database: SqlDatabase, now: Now, *, deliver_to: Sequence[str]) -> None:
        self._database = database
        self._now = now
        self._deliver_to = deliver_to

    async def is_on(self) -> bool | None:
        """Return whether the record was on when it was last used; None if it never was."""
        is_on = await self._database.scalar("SELECT is_on FROM record_switch")
        return None if is_on is None else bool(is_on)

    async def switched(self, *, on: bool) -> None:
        """Note that the record is on or off."""
        await self._database.execute(
            "INSERT INTO record_switch (only_one, is_on) VALUES (1, ?)"
            " ON CONFLICT (only_one) DO UPDATE SET is_on = excluded.is_on",
            (on,),
        )

    async def outdated(self, item_ids: Sequence[str]) -> Outdated:
        """Return the facts among some items that were replaced, with what replaced them."""
        return await self._database.read(partial(outdated_blocking, item_ids=item_ids))

    async def put(
        self,
        items: Sequence[Item],
        *,
        without: Sequence[str],
        deleted: Sequence[str],
        copies: Mapping[str, str],
    ) -> None:
        """Write items and remove those of some turns, all in one transaction.

        `copies` are turns that were copied, each with the one that was copied first. An item that a
        person forgot is not written again, nor is a copy of it; a copy says no more than the one in
        whose place it comes. No reply says what was forgotten or corrected since the item was made.
        Backends get what changed. Of the deleted turns the ids are kept, like those of forgotten
        items; the chronicle keeps that they happened, and no word.
        """
        now = self._now()
        mentions = await find_mentions(self._database, deleted)

        def work(connection: Connection) -> None:
            sources = {copy: _source_blocking(connection, copies[copy]) for copy in copies}
            removed = [
                turn_id for turn_id in without if remove_turn_blocking(connection, turn_id, now)
            ]
            telling = mentions_since_blocking(connection, mentions, deleted)
            for turn_id in deleted:
                telling += intents_of_turn_blocking(connection, turn_id)
            scrub_deleted_blocking(connection, telling, now)
            if removed or telling:
                request_vacuum_blocking(connection)
            note_forgotten_blocking(connection, deleted, now, was_deleted=True)
            for item in items:
                known = item_blocking(connection, item.id)
                new = _current_blocking(connection, item, known, sources.get(item.id))
                self._put_blocking(connection, new, known, copies.get(item.id), now)

        await self._database.write(work)

    def _put_blocking(
        self,
        connection: Connection,
        item: Item,
        known: Item | None,
        copy_of: str | None,
        now: datetime,
    ) -> None:
        if is_forgotten_blocking(connection, item.id):
            return
        if copy_of is not None:
            if known is None and first_row(connection, _FORGOTTEN_FIRST, (copy_of,)) is not None:
                return
            connection.execute(_COPIED, (item.id, copy_of))
        if known is not None:
            item = replace(without_cut(item, known), revision=known.revision + 1)
            if item == replace(known, revision=item.revision, updated_at=item.updated_at):
                return
        place = (item.scope.owner_id, item.thread, item.position, item.id)
        if first_row(connection, _TAKEN, place) is not None:
            item = replace(item, thread=None, position=None)
        put_item_blocking(connection, item)
        deliver_item_blocking(connection, item, self._deliver_to, now)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """What is known of a turn and its copies, in whose place another copy comes."""

    item: Item | None
    use: MemoryUse


def _source_blocking(connection: Connection, copy_of: str) -> _Source | None:
    """Return what is known of a copied turn, which may be deleted; None if it was forgotten."""
    item = _alike_blocking(connection, copy_of)
    if item is not None:  # it says nothing that was forgotten
        use = replace(memory_use_blocking(connection, item.id), is_forgotten=False)
        return _Source(item=item, use=use)
    if first_row(connection, _FORGOTTEN_FIRST, (copy_of,)) is not None:
        return None
    return _Source(item=None, use=memory_use_blocking(connection, copy_of))


def _current_blocking(
    connection: Connection, item: Item, known: Item | None, source: _Source | None
) -> Item:
    """Return the item of a turn without what was forgotten, deleted or corrected since the turn was
    shown it or found it; a copy says no more than its source.

    A known item says nothing that was deleted.
    """
    use = memory_use_blocking(connection, item.id)
    if source is not None:
        more = [item_id for item_id in source.use.item_ids if item_id not in use.item_ids]
        if more:
            note_use_of_copy_blocking(connection, item, more)
            use = memory_use_blocking(connection, item.id)
        if source.item is not None:
            item = without_cut(item, source.item)
    is_new = known is None and (source is None or source.item is None)
    if use.is_forgotten or (is_new and use.is_deleted):
        return without_reply(item)
    if source is not None and source.use.is_forgotten:
        return without_reply(item)
    outdated = outdated_blocking(connection, use.item_ids, since=item.occurred_at)
    return without_outdated(item, outdated) if outdated else item


def _alike_blocking(connection: Connection, turn_id: str) -> Item | None:
    """Return the item of a turn, or of a turn that was copied from it."""
    rows = connection.execute(_ALIKE, {"ids": json.dumps([turn_id])}).fetchall()
    items = (item_blocking(connection, row["id"]) for row in rows)
    return next((item for item in items if item is not None), None)


def remove_turn_blocking(connection: Connection, turn_id: str, now: datetime) -> bool:
    """Remove a turn's item and have backends forget it; return False if it has none."""
    item = item_blocking(connection, turn_id)
    if item is None or item.kind != "turn":
        return False
    delete_item_blocking(connection, turn_id)
    backends = backends_of_blocking(connection, turn_id)
    forget = deliveries_of("forget", turn_id, item.scope.owner_id, item.revision + 1, backends)
    enqueue_again_blocking(connection, forget, now)
    return True


def intents_of_turn_blocking(connection: Connection, turn_id: str) -> Sequence[str]:
    """Return the ids of a turn's intents."""
    rows = connection.execute("SELECT id FROM intents WHERE turn_id = ?", (turn_id,))
    return [row["id"] for row in rows]


def intents_of_owner_blocking(
    connection: Connection, intent_ids: Sequence[str], owner_id: str
) -> list[str]:
    """Return those of some intents that are the owner's: what was imported may name others."""
    rows = connection.execute(
        "SELECT id FROM intents WHERE owner_id = ? AND id IN (SELECT value FROM json_each(?))",
        (owner_id, json.dumps(list(intent_ids))),
    )
    return [row["id"] for row in rows]


def without_turns_of_others_blocking(
    connection: Connection, turn_ids: Sequence[str], owner_id: str
) -> list[str]:
    """Return some turns without those of which there is something of another owner."""
    values = {"ids": json.dumps(list(turn_ids)), "owner": owner_id}
    rows = connection.execute(_OF_OTHERS, values)
    others = {row["turn_id"] for row in rows}
    return [turn_id for turn_id in turn_ids if turn_id not in others]


def words_of_turns_blocking(connection: Connection, turn_ids: Sequence[str]) -> list[str]:
    """Return the intents with the messages and answers of turns, and with their calls of memory."""
    rows = connection.execute(
        "SELECT id FROM intents WHERE turn_id IN (SELECT value FROM json_each(?))"
        " AND (key LIKE 'turn.%' OR key LIKE 'llm.%' OR glob('tool.mcp__memory__*', key))",
        (json.dumps(turn_ids),),
    )
    return [row["id"] for row in rows]


def answers_after_blocking(connection: Connection, intent_ids: Sequence[str]) -> list[str]:
    """Return the intents with the answers of the turns of some intents."""
    rows = connection.execute(
        "SELECT id FROM intents WHERE (key LIKE 'llm.%' OR key = 'turn.completed') AND turn_id IN"
        " (SELECT turn_id FROM intents WHERE id IN (SELECT value FROM json_each(?)))",
        (json.dumps(intent_ids),),
    )
    return [row["id"] for row in rows]


def forget_turns_blocking(connection: Connection, intent_ids: Sequence[str], now: datetime) -> None:
    """Remove the turns of some intents for good: what was made of them is forgotten."""
    rows = connection.execute(
        "SELECT DISTINCT turn_id FROM intents WHERE turn_id IS NOT NULL"
        " AND id IN (SELECT value FROM json_each(?))",
        (json.dumps(intent_ids),),
    )
    forget_copies_blocking(connection, [row["turn_id"] for row in rows], now)


def turns_behind_blocking(connection: Connection, item_ids: Sequence[str]) -> list[str]:
    """Return the turns among some items, and those that facts and episodes among them were made of,
    with every turn that forks have of the same words: they are forgotten with these.
    """
    rows = connection.execute(_BEHIND, {"ids": json.dumps(list(item_ids))}).fetchall()
    return alike_blocking(connection, [row["turn_id"] for row in rows])


def alike_blocking(connection: Connection, turn_ids: Sequence[str]) -> list[str]:
    """Return turns with every turn that forks have of the same words."""
    rows = connection.execute(_ALIKE, {"ids": json.dumps(list(turn_ids))})
    return [row["id"] for row in rows]


def forget_copies_blocking(connection: Connection, turn_ids: Sequence[str], now: datetime) -> None:
    """Remove turns for good, with every turn that forks have of the same words."""
    alike = alike_blocking(connection, turn_ids)
    for turn_id in alike:
        remove_turn_blocking(connection, turn_id, now)
    note_forgotten_blocking(connection, alike, now)


def cut_replies_blocking(connection: Connection, intent_ids: Sequence[str], now: datetime) -> None:
    """Leave only the message of the turns that were shown something, or found it, by some intents:
    the reply may repeat it.
    """
    _revise_blocking(connection, intent_ids, now, without_reply)


def cut_outdated_blocking(
    connection: Connection, intent_ids: Sequence[str], outdated: Outdated, now: datetime
) -> None:
    """Leave out what the replies of such turns say of facts that hold no longer."""
    _revise_blocking(connection, intent_ids, now, partial(without_outdated, outdated=outdated))


def _revise_blocking(
    connection: Connection,
    intent_ids: Sequence[str],
    now: datetime,
    revise: Callable[[Item], Item],
) -> None:
    rows = connection.execute(
        "SELECT DISTINCT turn_id FROM intents WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(intent_ids),),
    )
    for row in rows.fetchall():
        item = item_blocking(connection, row["turn_id"]) if row["turn_id"] else None
        if item is None or item.kind != "turn" or (revised := revise(item)) == item:
            continue
        revised = replace(revised, revision=item.revision + 1, updated_at=now)
        put_item_blocking(connection, revised)
        deliver_item_blocking(connection, revised, backends_of_blocking(connection, item.id), now)
