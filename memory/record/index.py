"""The record: finished turns of conversations, searched like everything else that is remembered.

It holds nothing of its own. The conversations say which turns changed; each is made an item again,
or its item is removed, so that the same change twice does no harm.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import anyio.to_thread

from memory.clock import Now
from memory.intents.masking import Mask
from memory.items.item import Item
from memory.items.scope import Scope
from memory.record.store import SqlRecordStore
from memory.record.turn_item import RecordedTurn, item_of

_MADE_AT_ONCE: Final = 5_000
"""Characters of a turn and of what it was shown; more are read in a worker thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnChange:
    """A turn as it is now."""

    turn_id: str
    turn: RecordedTurn | None
    """None if it is not to be found: it was deleted, or memory is off for its conversation."""
    is_deleted: bool = False


RecalledTexts = Callable[[Sequence[str], Scope], Awaitable[Sequence[str] | None]]
"""Returns the texts of items that were in a prompt; None if one of them was forgotten."""


class RecordIndex:
    """Brings the items of turns up to date."""

    def __init__(
        self,
        store: SqlRecordStore,
        recalled: RecalledTexts,
        *,
        mask: Mask,
        now: Now,
        on_change: Callable[[], None] = lambda: None,
        on_removed: Callable[[], None] = lambda: None,
    ) -> None:
        self.store = store
        self._recalled = recalled
        self._mask = mask
        self._now = now
        self._on_change = on_change
        self._on_removed = on_removed

    async def apply(self, changes: Sequence[TurnChange]) -> None:
        """Make the items of some turns what the turns are now, in one transaction.

        Raise `StoreUnavailable` if nothing was changed.
        """
        if not changes:
            return
        made = [item for change in changes if (item := await self._item(change.turn)) is not None]
        found = {item.id for item in made}
        without = [change.turn_id for change in changes if change.turn_id not in found]
        deleted = [change.turn_id for change in changes if change.is_deleted]
        turns = [change.turn for change in changes if change.turn is not None]
        copies = {turn.turn_id: turn.copy_of for turn in turns if turn.copy_of is not None}
        await self.store.put(made, without=without, deleted=deleted, copies=copies)
        self._on_change()
        if without or deleted:
            self._on_removed()

    async def _item(self, turn: RecordedTurn | None) -> Item | None:
        if turn is None:
            return None
        scope = Scope(owner_id=turn.owner_id)
        texts: Sequence[str] | None = ()
        if turn.recalled_ids:
            texts = await self._recalled(turn.recalled_ids, scope)
        outdated = await self.store.outdated(turn.recalled_ids) if turn.recalled_ids else ()
        make = partial(item_of, turn, texts, self._mask, self._now(), outdated)
        if len(turn.message) + len(turn.reply) + sum(map(len, texts or ())) <= _MADE_AT_ONCE:
            return make()
        return await anyio.to_thread.run_sync(make, abandon_on_cancel=True)
