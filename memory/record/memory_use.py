"""How a turn used memory, as its intents say: the items that it was shown or that its calls
mention, and whether one of them was forgotten since.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memory.clock import rfc3339
from memory.intents.builders import Happening, intent_from_memory_injected
from memory.items.ids import derived_id
from memory.items.item import Item
from memory.stores.database import Connection
from memory.stores.sqlite.forgotten import ids_in
from memory.stores.sqlite.statements import insert_blocking

_INTENTS: Final = (
    "SELECT payload, forgotten_at FROM intents WHERE turn_id = ?"
    " AND (key = 'memory.injected' OR glob('tool.mcp__memory__*', key)"
    " OR glob('tool.mcp__memory_case__*', key)"
    " OR forgotten_at IS NOT NULL AND (key LIKE 'llm.%' OR key = 'turn.completed'))"
    # earlier servers left nothing of the intents of a deleted turn
    " AND (payload IS NOT NULL OR forgotten_at IS NULL OR NOT EXISTS (SELECT 1 FROM"
    " forgotten_items WHERE item_id = intents.turn_id AND was_deleted = 1"
    " AND forgotten_items.forgotten_at = intents.forgotten_at))"
)
_GONE: Final = (
    "SELECT DISTINCT was_deleted FROM forgotten_items"
    " WHERE item_id IN (SELECT value FROM json_each(?)) AND item_id NOT IN (SELECT id FROM items)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """How a turn used memory."""

    item_ids: tuple[str, ...]
    is_forgotten: bool
    """Something of it is forgotten, and the reply may repeat it."""
    is_deleted: bool
    """Something of it went with its conversation, and a reply that is recorded anew may repeat it.
    """


def memory_use_blocking(connection: Connection, turn_id: str) -> MemoryUse:
    """Return how a turn used memory; nothing if the chronicle does not have it."""
    rows = connection.execute(_INTENTS, (turn_id,)).fetchall()
    payloads = [row["payload"] for row in rows if row["payload"] is not None]
    ids = tuple(dict.fromkeys(item_id for payload in payloads for item_id in ids_in(payload)))
    is_scrubbed = any(row["forgotten_at"] is not None and row["payload"] is None for row in rows)
    gone = connection.execute(_GONE, (json.dumps(ids),)).fetchall() if ids else ()
    was_deleted = {bool(row["was_deleted"]) for row in gone}
    return MemoryUse(
        item_ids=ids,
        is_forgotten=is_scrubbed or False in was_deleted,
        is_deleted=True in was_deleted,
    )


def note_use_of_copy_blocking(connection: Connection, copy: Item, item_ids: Sequence[str]) -> None:
    """Note the items that a copied turn repeats: it made no use of memory itself, and the intents
    of the turn that did are scrubbed with their conversation.

    The row holds ids alone, and the chronicle does not list it.
    """
    at = Happening(
        owner_id=copy.scope.owner_id,
        occurred_at=copy.occurred_at,
        conversation_id=copy.conversation_id,
        turn_id=copy.id,
    )
    intent = intent_from_memory_injected(at, ids=item_ids, titles=())
    row = {
        "id": derived_id("int", intent.id, *item_ids),
        "key": intent.key,
        "source_kind": intent.source_kind,
        "owner_id": intent.owner_id,
        "conversation_id": intent.conversation_id,
        "turn_id": intent.turn_id,
        "payload": json.dumps({"ids": list(item_ids)}),
        "occurred_at": rfc3339(intent.occurred_at),
    }
    insert_blocking(connection, "intents", row, "ON CONFLICT (id) DO NOTHING")
