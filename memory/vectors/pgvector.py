"""The vector index in PostgreSQL, by its extension pgvector; see `VectorIndex`.

Of owners with few entries all are compared, which is exact. Among many, a graph (HNSW) leads to the
nearest. Which way is chosen by how many the owners have: the server's planner would sort tens of
thousands where the graph takes a tenth of the time. The graph is of all owners' entries, so it is
followed until enough of the wanted owners' are found; where that would take too long, all of theirs
are compared.

The extension may be in any schema; each statement names it, so that no search path is needed.
"""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, TypeVar

from memory.embeddings.protocol import Vector
from memory.errors import StoreConflict, StoreUnavailable
from memory.stores.database import Connection, SqlDatabase
from memory.stores.sqlite.statements import id_list, placeholders
from memory.vectors.protocol import DimensionMismatch, IndexUnavailable, VectorEntry, VectorHit
from memory.vectors.state import forget_state_blocking

T = TypeVar("T")

_MOST_COMPARED: Final = 10_000
"""Owners with more entries are searched by the graph; so many are compared in some 17 ms."""
_MOST_INDEXED: Final = 2000
"""Numbers of a vector that a graph takes; longer ones are always compared."""
_LEAST_LOOKED_AT: Final = 100
_MOST_LOOKED_AT: Final = 1000
"""Entries that the graph keeps in view, pgvector's own bound."""
_MOST_SCANNED: Final = 20_000
"""Entries of all owners that a search of the graph visits."""
_OLDEST: Final = (0, 8)
"""pgvector 0.8: a search of its graph goes on until enough rows fit."""
_MISSING: Final = "PostgreSQL has no extension `vector`: install pgvector on its server."
_TOO_OLD: Final = "pgvector is older than 0.8: install a newer one and run ALTER EXTENSION."
_NOT_ALLOWED: Final = (
    "only a superuser may add pgvector to the database: have one run CREATE EXTENSION vector."
)
_NOT_ADDED: Final = "pgvector could not be added to the database: run CREATE EXTENSION vector."
_OTHER_MODEL: Final = "The vector index holds vectors of another dimension."


class PgvectorIndex:
    """The table `item_vectors`, made when it is first used. The database is not closed with it."""

    def __init__(self, database: SqlDatabase, *, dimension: int) -> None:
        self._database = database
        self._dimension = dimension
        self._schema: str | None = None
        """Of the extension, quoted; None until the table was found to be there."""

    async def put(self, entries: Sequence[VectorEntry]) -> None:
        for entry in entries:
            self._check(entry.vector)
        latest = {entry.item_id: entry for entry in entries}
        rows = [(entry.item_id, entry.owner_id, _text(entry.vector)) for entry in latest.values()]
        schema = await self._opened()
        await self._write(
            lambda writer: writer.executemany(
                f"INSERT INTO item_vectors (item_id, owner_id, vector)"  # noqa: S608  a quoted name
                f" VALUES (?, ?, ?::{schema}.vector) ON CONFLICT (item_id) DO UPDATE"
                " SET owner_id = excluded.owner_id, vector = excluded.vector",
                rows,
            )
        )

    async def remove(self, item_ids: Sequence[str]) -> None:
        await self._opened()
        sql = "DELETE FROM item_vectors WHERE item_id IN (SELECT value FROM json_each(?))"
        await self._write(lambda writer: writer.execute(sql, (id_list(item_ids),)))

    async def nearest(
        self, vector: Vector, owner_ids: Sequence[str], *, limit: int
    ) -> Sequence[VectorHit]:
        self._check(vector)
        schema = await self._opened()
        search = _Search(schema, _text(vector), owner_ids, limit)
        is_indexed = self._dimension <= _MOST_INDEXED
        async with _translated():
            return await self._database.read(partial(search.run_blocking, is_indexed=is_indexed))

    async def count(self) -> int:
        await self._opened()
        async with _translated():
            return int(await self._database.scalar("SELECT count(*) FROM item_vectors"))

    async def missing(self, item_ids: Sequence[str]) -> set[str]:
        await self._opened()
        sql = "SELECT item_id FROM item_vectors WHERE item_id IN (SELECT value FROM json_each(?))"
        async with _translated():
            found = await self._database.rows(sql, (id_list(item_ids),))
        return set(item_ids) - {row["item_id"] for row in found}

    async def clear(self) -> None:
        self._schema = await self._write(self._make_anew_blocking)

    async def close(self) -> None:
        """Do nothing."""

    def _check(self, vector: Vector) -> None:
        if len(vector) != self._dimension:
            raise DimensionMismatch(
                f"A vector has {len(vector)} numbers, the index {self._dimension}."
            )

    async def _opened(self) -> str:
        """Return the schema of the extension, and have the table there."""
        if self._schema is None:
            self._schema = await self._write(self._open_blocking)
        return self._schema

    async def _write(self, work: Callable[[Connection], T]) -> T:
        async with _translated():
            return await self._database.write(work)

    def _open_blocking(self, writer: Connection) -> str:
        known = _dimension_blocking(writer)
        if known is None:
            return self._make_anew_blocking(writer)
        if known != self._dimension:
            raise DimensionMismatch(_OTHER_MODEL)
        return _extension_blocking(writer)

    def _make_anew_blocking(self, writer: Connection) -> str:
        schema = _extension_blocking(writer)
        writer.execute("DROP TABLE IF EXISTS item_vectors")
        writer.execute(
            'CREATE TABLE item_vectors (item_id TEXT COLLATE "C" PRIMARY KEY,'
            f' owner_id TEXT COLLATE "C" NOT NULL, vector {schema}.vector({self._dimension:d})'
            " NOT NULL)"
        )
        writer.execute("CREATE INDEX item_vectors_by_owner ON item_vectors (owner_id)")
        if self._dimension <= _MOST_INDEXED:
            writer.execute(
                "CREATE INDEX item_vectors_near ON item_vectors"
                f" USING hnsw (vector {schema}.vector_cosine_ops)"
            )
        return schema


async def hindrance(database: SqlDatabase) -> str | None:
    """Return why the index cannot be in the database, a sentence that may follow a comma; None if
    it can. Nothing is changed.
    """
    try:
        await database.read(_schema_blocking)
    except IndexUnavailable as exc:
        return str(exc)
    return None


async def prepare(database: SqlDatabase) -> str | None:
    """Put the extension into the database, and return as `hindrance` does.

    Only one place has an index: the state of one elsewhere is forgotten if this one can be here,
    and this one is removed if it cannot.
    """
    try:
        await database.write(_prepare_blocking)
    except (IndexUnavailable, StoreUnavailable, StoreConflict) as exc:
        await database.write(_remove_blocking)
        return str(exc) if isinstance(exc, IndexUnavailable) else _NOT_ADDED
    return None


async def remove(database: SqlDatabase) -> None:
    """Remove the index and its state, if it is in the database."""
    await database.write(_remove_blocking)


def _prepare_blocking(writer: Connection) -> None:
    _extension_blocking(writer)
    if _dimension_blocking(writer) is None:
        forget_state_blocking(writer)


def _remove_blocking(writer: Connection) -> None:
    if writer.execute("SELECT to_regclass('item_vectors')").fetchone()[0] is not None:
        writer.execute("DROP TABLE item_vectors")
        forget_state_blocking(writer)


class _Search:
    """One search, run on a snapshot."""

    def __init__(self, schema: str, vector: str, owner_ids: Sequence[str], limit: int) -> None:
        self._vector = vector
        self._owner_ids = owner_ids
        self._limit = limit
        self._near = (
            f"SELECT item_id, vector OPERATOR({schema}.<=>) ?::{schema}.vector AS distance"  # noqa: S608
            f" FROM item_vectors WHERE owner_id IN ({placeholders(owner_ids)})"
        )

    def run_blocking(self, reader: Connection, *, is_indexed: bool) -> list[VectorHit]:
        """Return the nearest entries of the owners, nearest first."""
        if is_indexed and self._are_many_blocking(reader):
            hits = self._along_graph_blocking(reader)
            if len(hits) >= self._limit:
                return hits
        return self._compared_blocking(reader)

    def _are_many_blocking(self, reader: Connection) -> bool:
        row = reader.execute(
            "SELECT count(*) FROM (SELECT 1 FROM item_vectors"  # noqa: S608  placeholders
            f" WHERE owner_id IN ({placeholders(self._owner_ids)}) LIMIT ?) AS counted",
            (*self._owner_ids, _MOST_COMPARED + 1),
        ).fetchone()
        return bool(row[0] > _MOST_COMPARED)

    def _along_graph_blocking(self, reader: Connection) -> list[VectorHit]:
        looked_at = min(_MOST_LOOKED_AT, max(_LEAST_LOOKED_AT, self._limit))
        settings = {
            "hnsw.iterative_scan": "strict_order",
            "hnsw.ef_search": f"{looked_at}",
            "hnsw.max_scan_tuples": f"{_MOST_SCANNED}",
            "enable_sort": "off",  # the graph alone gives them in order
        }
        _set_blocking(reader, settings)
        rows = reader.execute(
            f"{self._near} ORDER BY distance LIMIT ?",
            (self._vector, *self._owner_ids, self._limit),
        ).fetchall()
        _set_blocking(reader, {"enable_sort": "on"})
        return _hits(rows)

    def _compared_blocking(self, reader: Connection) -> list[VectorHit]:
        rows = reader.execute(
            f"WITH own AS MATERIALIZED ({self._near})"  # noqa: S608
            " SELECT item_id, distance FROM own ORDER BY distance, item_id LIMIT ?",
            (self._vector, *self._owner_ids, self._limit),
        ).fetchall()
        return _hits(rows)


def _dimension_blocking(reader: Connection) -> int | None:
    """Return of what dimension the index is; None if there is none."""
    row = reader.execute(
        "SELECT atttypmod FROM pg_attribute"
        " WHERE attrelid = to_regclass('item_vectors') AND attname = 'vector'"
    ).fetchone()
    return None if row is None else int(row[0])


def _extension_blocking(writer: Connection) -> str:
    """Return the quoted name of the extension's schema, and have it in the database."""
    schema = _schema_blocking(writer)
    if schema is None:
        writer.execute("CREATE EXTENSION vector SCHEMA public")
    return schema or "public"


def _schema_blocking(reader: Connection) -> str | None:
    """Return the quoted name of the extension's schema; None if it is to be added.

    Raise `IndexUnavailable` if it cannot be used.
    """
    found = reader.execute(
        "SELECT quote_ident(nspname) AS name, extversion AS version FROM pg_extension"
        " JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector'"
    ).fetchone()
    offered = (
        found
        or reader.execute(
            "SELECT version, current_setting('is_superuser') = 'on' OR (trusted OR NOT superuser)"
            " AND has_database_privilege(current_database(), 'CREATE') AS is_allowed"
            " FROM pg_available_extensions JOIN pg_available_extension_versions USING (name)"
            " WHERE name = 'vector' AND version = default_version"
        ).fetchone()
    )
    if offered is None:
        raise IndexUnavailable(_MISSING)
    if tuple(map(int, offered["version"].split(".")[:2])) < _OLDEST:
        raise IndexUnavailable(_TOO_OLD)
    if found is None and not offered["is_allowed"]:
        raise IndexUnavailable(_NOT_ALLOWED)
    return None if found is None else str(found["name"])


def _set_blocking(reader: Connection, settings: dict[str, str]) -> None:
    """Change settings of the server for the rest of the transaction."""
    calls = ", ".join(["set_config(?, ?, true)"] * len(settings))
    reader.execute(f"SELECT {calls}", [part for pair in settings.items() for part in pair])


def _text(vector: Vector) -> str:
    return json.dumps([float(number) for number in vector])


def _hits(rows: Sequence[Any]) -> list[VectorHit]:
    return [
        VectorHit(item_id=row["item_id"], similarity=1.0 - float(row["distance"])) for row in rows
    ]


@asynccontextmanager
async def _translated() -> AsyncIterator[None]:
    try:
        yield
    except (StoreUnavailable, StoreConflict) as exc:
        raise IndexUnavailable(str(exc)) from exc
