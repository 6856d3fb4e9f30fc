"""A database that runs the function of each transaction twice, as PostgreSQL may."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from memory.stores.database import Connection, Parameters, SqlDatabase

T = TypeVar("T")


class RunTwice(SqlDatabase):
    """Takes back what the first run of a function did, and runs it again."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database
        self.engine = database.engine  # type: ignore[misc]  # that of another

    async def write(self, work: Callable[[Connection], T], *, is_synced: bool = True) -> T:
        def twice(writer: Connection) -> T:
            writer.execute("SAVEPOINT first_run")
            work(writer)
            writer.execute("ROLLBACK TO SAVEPOINT first_run")
            return work(writer)

        return await self._database.write(twice, is_synced=is_synced)

    async def rows(self, sql: str, parameters: Parameters = ()) -> Sequence[Any]:
        return await self._database.rows(sql, parameters)

    async def values(
        self, decode: Callable[[Any], T], sql: str, parameters: Parameters = ()
    ) -> list[T]:
        return await self._database.values(decode, sql, parameters)

    async def read(self, work: Callable[[Connection], T]) -> T:
        return await self._database.read(work)

    async def checkpoint(self) -> bool:
        return await self._database.checkpoint()

    async def ping(self) -> str | None:
        return await self._database.ping()

    async def close(self) -> None:
        await self._database.close()
