"""What an agent's model has in the history of its conversation, so that memory need not show it
again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from memory.items.item import Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The turns of a conversation that its model can read, and what memory showed in them."""

    turns: frozenset[str] = frozenset()
    shown: Mapping[str, int] = field(default_factory=dict)
    """Items by id, with the revision that was shown."""

    def has(self, item: Item) -> bool:
        """Return whether the model has an item: it was shown as it is now, or made of what was said
        there.

        A turn and its episode count whatever became of them; of all else a changed one says
        something new.
        """
        return self.has_state(item.id, item.turn_id, item.kind, item.revision)

    def has_state(self, item_id: str, turn_id: str | None, kind: str, revision: int) -> bool:
        """Return what `has` does of an item with these values."""
        if turn_id in self.turns and (kind in {"turn", "episode"} or revision == 1):
            return True
        return self.shown.get(item_id, 0) >= revision


NOTHING_SEEN: Final = Seen()
