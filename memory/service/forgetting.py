"""Forgets an item everywhere: its rows, its words, what backends have of it, and the intents behind
it.

What can be done here is done in one transaction; backends are told by the deliveries that it
writes. The chronicle keeps that something was forgotten, and no word of what it was.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from functools import partial

from memory.cases.case_rows import read_case
from memory.cases.case_writes import delete_case_blocking
from memory.cases.item import whole_item
from memory.clock import Now
from memory.episodes.store import delete_episode_blocking
from memory.facts.rows import (
    earlier_tellings_blocking,
    take_fact_blocking,
    words_of_facts_blocking,
)
from memory.intents.builders import Happening, intent_from_memory_forgotten
from memory.intents.chronicle import Recording, record_blocking, scrub_blocking
from memory.intents.registry import MemoryIntent
from memory.items.item import Item
from memory.items.scope import Scope
from memory.outbox.delivery import deliveries_of
from memory.outbox.store import backends_of_blocking, enqueue_again_blocking
from memory.record.store import (
    answers_after_blocking,
    cut_replies_blocking,
    forget_copies_blocking,
    forget_turns_blocking,
    intents_of_owner_blocking,
    intents_of_turn_blocking,
    turns_behind_blocking,
    without_turns_of_others_blocking,
    words_of_turns_blocking,
)
from memory.stores.database import Connection, SqlDatabase
from memory.stores.sqlite.forgotten import (
    Mentions,
    find_mentions,
    mentions_since_blocking,
    note_forgotten_blocking,
)
from memory.stores.sqlite.items import delete_item_blocking, item_blocking
from memory.stores.sqlite.vacuum import request_vacuum_blocking

ForgetNote = Callable[[str, str], Awaitable[bool]]
"""Forgets the note of an item for an owner: its file, and all that is known of it."""


class Forgetting:
    """The one way in which something is forgotten."""

    def __init__(
        self,
        database: SqlDatabase,
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
        """Forget an item that the scope covers; return whether there was one.

        Facts in whose place a forgotten fact came hold again, but for those that say the same: they
        are forgotten with it. Every backend that was or may have
        been given it has to forget it, also those that are not in use at present; deliveries of it
        that still wait are withdrawn.

        Raises:
            StoreUnavailable: nothing was forgotten.
        """
        target = await self._target(item_id)
        if target is None or not scope.covers(target.scope):
            return False
        if target.kind == "note":
            forget_note = self._forget_note
            return forget_note is not None and await forget_note(item_id, scope.owner_id)
        earlier = await self._database.read(partial(earlier_tellings_blocking, fact_id=item_id))
        return await self.forget_all([*earlier, item_id], target.scope.owner_id)

    async def forget_all(
        self,
        item_ids: Iterable[str],
        owner_id: str,
        first: Callable[[Connection], object] = lambda _: None,
    ) -> bool:
        """Forget items of one owner, none of them a note, in one transaction; return whether there
        was one.

        `first` is called in that transaction. Facts are forgotten in order, so a fact comes after
        those that it superseded: otherwise they hold again until their turn comes.

        Raises:
            StoreUnavailable: nothing was forgotten.
        """
        targets = [
            item for item_id in item_ids if (item := await self._target(item_id)) is not None
        ]
        ids = [target.id for target in targets]
        words = await self._database.read(partial(words_of_facts_blocking, fact_ids=ids))
        behind = await self._database.read(partial(turns_behind_blocking, item_ids=ids))
        mentions = await find_mentions(self._database, [*ids, *behind], owner_id, words)
        forget = partial(self._forget_blocking, mentions=mentions, now=self._now())

        def work(connection: Connection) -> bool:
            first(connection)
            forgotten = [forget(connection, target=target) for target in targets]
            return any(forgotten)

        return await self._database.write(work)

    async def _target(self, item_id: str) -> Item | None:
        """Return an item, or a case by its own row: what search does not show has no item."""
        row = await self._database.row("SELECT value FROM cases WHERE case_id = ?", (item_id,))
        if row is not None:
            return whole_item(read_case(row["value"]))
        return await self._database.read(partial(item_blocking, item_id=item_id))

    def _forget_blocking(
        self, connection: Connection, *, target: Item, mentions: Mentions, now: datetime
    ) -> bool:
        gone = [target.id, *turns_behind_blocking(connection, [target.id])]
        was_case = delete_case_blocking(connection, target.id)
        fact_intents = self._forget_fact_blocking(connection, target.id, now)
        if not delete_item_blocking(connection, target.id) and not was_case:
            return False  # another call was faster
        backends = {*self._backends, *backends_of_blocking(connection, target.id)}
        owner_id = target.scope.owner_id
        sources = [*(delete_episode_blocking(connection, target.id) or ()), *fact_intents]
        sources = intents_of_owner_blocking(connection, sources, owner_id)
        if target.kind == "turn":
            sources += intents_of_turn_blocking(connection, target.id)
            forget_copies_blocking(connection, [target.id], now)
        forget_turns_blocking(connection, sources, now)
        shown = mentions_since_blocking(connection, mentions, gone, owner_id)
        intent_ids = [*sources, *shown, *answers_after_blocking(connection, shown)]
        cut_replies_blocking(connection, intent_ids, now)
        scrub_blocking(connection, intent_ids, now, owner_id=owner_id)
        note_forgotten_blocking(connection, [target.id], now)
        happening = Happening(owner_id=owner_id, occurred_at=now)
        intent = intent_from_memory_forgotten(happening, item_kind=target.kind, item_id=target.id)
        record_blocking(connection, [self._recording(intent)])
        deliveries = deliveries_of("forget", target.id, owner_id, target.revision + 1, backends)
        enqueue_again_blocking(connection, deliveries, now)  # it may have been imported since
        request_vacuum_blocking(connection)
        return True

    def _forget_fact_blocking(
        self, connection: Connection, fact_id: str, now: datetime
    ) -> Sequence[str]:
        """Delete a fact and its line in the profile, and forget the turns that told it or had it
        kept, one that still runs as well; return the intents of their messages and answers.

        What it had replaced holds again.
        """
        fact = take_fact_blocking(connection, fact_id, self._backends, now)
        if fact is None:
            return ()
        told = [turn_id for turn_id in (fact.turn_id, fact.saved_turn_id) if turn_id]
        turn_ids = without_turns_of_others_blocking(connection, told, fact.scope.owner_id)
        forget_copies_blocking(connection, turn_ids, now)
        return words_of_turns_blocking(connection, turn_ids)
