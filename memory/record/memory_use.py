"""How a turn used memory, as its intents say: the items that it was shown or that its calls
mention, and whether one of them was forgotten since.
"""

from dataclasses import dataclass
from typing import Final

from memory.stores.database import Connection
from memory.stores.sqlite.forgotten import ids_in

_INTENTS: Final = (
    "SELECT payload, forgotten_at FROM intents WHERE turn_id = ?"
    " AND (key = 'memory.injected' OR glob('tool.mcp__memory__*', key)"
    " OR glob('tool.mcp__memory_case__*', key)"
    " OR forgotten_at IS NOT NULL AND (key LIKE 'llm.%' OR key = 'turn.completed'))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """How a turn used memory."""

    item_ids: tuple[str, ...]
    is_forgotten: bool
    """Something of it is forgotten, and the reply may repeat it."""


def memory_use_blocking(connection: Connection, turn_id: str) -> MemoryUse:
    """Return how a turn used memory; nothing if the chronicle does not have it."""
    rows = connection.execute(_INTENTS, (turn_id,)).fetchall()
    payloads = [row["payload"] for row in rows if row["payload"] is not None]
    ids = dict.fromkeys(item_id for payload in payloads for item_id in ids_in(payload))
    return MemoryUse(
        item_ids=tuple(ids),
        is_forgotten=any(row["forgotten_at"] is not None for row in rows),
    )
