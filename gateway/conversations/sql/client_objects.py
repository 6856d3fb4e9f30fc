"""What clients of another protocol made, in SQLite."""

import json
from collections.abc import Sequence
from typing import Any, Final

from gateway.conversations.model import ClientObject, ClientObjectKind
from gateway.ids import UserId
from gateway.jsonsafe import json_text
from memory.clock import rfc3339
from memory.stores.database import SqlDatabase, decoding_rows
from memory.stores.sqlite.row_values import Row, columns_of, read_value

_PUT: Final = (
    "INSERT INTO client_objects (id, user_id, kind, data, created_at, updated_at,"
    " archived_at, conversation_id)"
    " SELECT :id, :user_id, :kind, :data, :created_at, :updated_at, :archived_at,"
    " :conversation_id WHERE CAST(:conversation_id AS TEXT) IS NULL"
    " OR EXISTS (SELECT 1 FROM conversations WHERE id = :conversation_id)"
    " ON CONFLICT (id) DO UPDATE SET data = excluded.data,"
    " updated_at = excluded.updated_at, archived_at = excluded.archived_at"
    " WHERE client_objects.user_id = excluded.user_id"
)
_CHANGE: Final = f"{_PUT} AND client_objects.updated_at = :known_at RETURNING id"


class ClientObjectStore:
    """What clients of another protocol made. What belongs to a conversation goes with it."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def put(self, thing: ClientObject) -> None:
        """Add an object, or change its data and times; nothing happens if its conversation is
        gone, or the id is another user's.
        """
        await self._database.execute(_PUT, _columns(thing))

    async def change(self, known: ClientObject, thing: ClientObject) -> bool:
        """Put `thing` in the place of `known`, or add it where there is none yet.

        False: nothing happened, because it was changed meanwhile or its conversation is gone.
        `updated_at` must grow by a millisecond with each change.
        """
        columns = {**_columns(thing), "known_at": rfc3339(known.updated_at)}
        return await self._database.write(
            lambda writer: writer.execute(_CHANGE, columns).fetchone() is not None
        )

    async def get(self, user_id: UserId, kind: ClientObjectKind, id_: str) -> ClientObject | None:
        """Return the object; None if there is none of that id, or it is another user's."""
        return await self._database.value(
            _read,
            "SELECT * FROM client_objects WHERE id = ? AND user_id = ? AND kind = ?",
            (id_, user_id, kind),
        )

    async def listed(
        self, user_id: UserId, kind: ClientObjectKind, *, limit: int, after: str = ""
    ) -> Sequence[ClientObject]:
        """List a user's objects, newest first; with `after` those older than that one."""
        return await self._database.values(
            _read,
            "SELECT * FROM client_objects WHERE user_id = :user AND kind = :kind"
            " AND (:after = '' OR seq < (SELECT seq FROM client_objects WHERE id = :after"
            " AND user_id = :user)) ORDER BY seq DESC LIMIT :limit",
            {"user": user_id, "kind": kind, "after": after, "limit": limit},
        )


def _columns(thing: ClientObject) -> dict[str, Any]:
    return columns_of(thing, data=json_text(thing.data))


@decoding_rows()
def _read(row: Row) -> ClientObject:
    return read_value(ClientObject, row, data=json.loads(row["data"]))
