"""Items as rows: the only place that knows the columns' names."""

import json
import sqlite3
from collections.abc import Mapping
from typing import Any, Final

from memory.clock import from_rfc3339, rfc3339
from memory.items import Item
from memory.scope import Scope
from memory.stores.sqlite.database import understanding_rows

COLUMNS: Final = (
    "id, kind, owner_id, labels, title, summary, body, source, tags, conversation_id, turn_id,"
    " thread, position, occurred_at, updated_at, revision"
)
UPSERT: Final = (
    f"INSERT INTO items ({COLUMNS}) VALUES ({', '.join('?' * 16)})"  # noqa: S608  names of our own
    " ON CONFLICT (id) DO UPDATE SET (labels, title, summary, body, source, tags, conversation_id,"
    " turn_id, thread, position, occurred_at, updated_at, revision) = (excluded.labels,"
    " excluded.title, excluded.summary, excluded.body, excluded.source, excluded.tags,"
    " excluded.conversation_id, excluded.turn_id, excluded.thread, excluded.position,"
    " excluded.occurred_at, excluded.updated_at, excluded.revision)"
    " WHERE owner_id = excluded.owner_id AND kind = excluded.kind"
)


@understanding_rows()
def item_of(row: Mapping[str, Any] | sqlite3.Row) -> Item:
    """Read a row of `COLUMNS`."""
    return Item(
        id=row["id"],
        kind=row["kind"],
        scope=Scope(owner_id=row["owner_id"], **json.loads(row["labels"])),
        title=row["title"],
        summary=row["summary"],
        body=row["body"],
        source=row["source"],
        tags=tuple(json.loads(row["tags"])),
        conversation_id=row["conversation_id"],
        turn_id=row["turn_id"],
        thread=row["thread"],
        position=row["position"],
        occurred_at=from_rfc3339(row["occurred_at"]),
        updated_at=from_rfc3339(row["updated_at"]),
        revision=row["revision"],
    )


def values_of(item: Item) -> tuple[Any, ...]:
    """Give the values of `COLUMNS`."""
    return (
        item.id,
        item.kind,
        item.scope.owner_id,
        json.dumps(item.scope.labels, ensure_ascii=False),
        item.title,
        item.summary,
        item.body,
        item.source,
        json.dumps(item.tags, ensure_ascii=False),
        item.conversation_id,
        item.turn_id,
        item.thread,
        item.position,
        rfc3339(item.occurred_at),
        rfc3339(item.updated_at),
        item.revision,
    )
