"""Opening a database of PostgreSQL: what cannot be reached, one program alone, and the end."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from traceback import format_exception

import anyio
import anyio.to_thread
import pytest

from memory.errors import StoreUnavailable
from memory.stores.postgres.connections import Driver, connect_blocking
from memory.stores.postgres.database import InUse, PostgresDatabase, open_postgres
from tests.support.postgres import (
    open_schema,
    server_url,
)
from tests.unit.memory.database.words_schema import (
    ENDED_BY_SERVER,
    STEPS,
    count_words,
    on_server_blocking,
)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://zoe:hunter2@127.0.0.1:9/candor",
        "postgresql://zoe:hunter2@/candor?host=/nowhere",
        "postgresql://zoe:hunter2@127.0.0.1:9/candor?never=heard",
        "postgresql//zoe:hunter2@nowhere",
    ],
)
async def test_a_database_that_cannot_be_reached_is_told_without_its_address(url: str) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        await open_postgres(url, STEPS, schema="s")
    assert not any(part in str(caught.value) for part in ("zoe", "127", "nowhere", "heard"))
    assert "hunter2" not in "".join(format_exception(caught.value))


@pytest.mark.parametrize("part", ["host", "port", "user", "name"])
async def test_a_database_that_cannot_be_opened_is_told_with_all_that_may_be_wrong(
    part: str,
) -> None:
    """The driver does not say which, and the server's own words are in its language."""
    here = await anyio.to_thread.run_sync(server_url)
    urls = {
        "host": "postgresql://zoe@nowhere.invalid/candor",
        "port": "postgresql://zoe@127.0.0.1:9/candor",
        "user": here.replace("user=candor", "user=zoe"),
        "name": here.replace("/postgres?", "/missing?"),
    }
    with pytest.raises(StoreUnavailable) as caught:
        await open_postgres(urls[part], STEPS, schema="s")
    assert str(caught.value) == (
        "The database cannot be opened: it cannot be reached, or it refuses the user, the password "
        "or the database's name of the address; PostgreSQL's log says which."
    )


async def test_one_program_alone_opens_a_schema_for_its_sole_use(schema: str) -> None:
    async with sole(schema) as first:
        with pytest.raises(InUse):
            await open_postgres(server_url(), STEPS, schema=schema, use="alone")
        async with open_schema(schema, STEPS) as beside:  # a command beside the server
            await beside.execute("INSERT INTO words VALUES ('a')")
        await first.execute("INSERT INTO words VALUES ('b')")
    async with sole(schema) as second:
        assert await count_words(second) == 2


async def test_who_loses_its_lock_writes_again_when_no_other_has_taken_it(schema: str) -> None:
    async with sole(schema) as database:
        await anyio.to_thread.run_sync(on_server_blocking, ENDED_BY_SERVER)
        with connect_blocking(server_url(), schema) as rival:
            await taken_by(rival, schema)
            with anyio.fail_after(20):
                while await database.ping() is None:  # noqa: ASYNC110
                    await anyio.sleep(0.05)
            with pytest.raises(StoreUnavailable, match="another server"):
                await database.execute("INSERT INTO words VALUES ('a')")
            assert await count_words(database) == 0
        with anyio.fail_after(20):
            while await database.ping() is not None:  # noqa: ASYNC110
                await anyio.sleep(0.05)
        await database.execute("INSERT INTO words VALUES ('a')")


@asynccontextmanager
async def sole(schema: str) -> AsyncIterator[PostgresDatabase]:
    url = await anyio.to_thread.run_sync(server_url)
    database = await open_postgres(url, STEPS, schema=schema, use="alone")
    try:
        yield database
    finally:
        await database.close()


async def taken_by(rival: Driver, schema: str) -> None:
    """Take the lock as soon as the server has noticed that its holder is gone."""
    take = "SELECT pg_advisory_lock(hashtextextended('sole use of ' || %s, 0))"
    await anyio.to_thread.run_sync(partial(rival.execute, take, (schema,)))


async def test_after_closing_nothing_is_read_or_written(schema: str) -> None:
    async with open_schema(schema, STEPS) as database:
        await count_words(database)
        await database.close()
        for work in (
            database.execute("SELECT 1"),
            database.rows("SELECT 1"),
            database.read(lambda reader: reader.execute("SELECT 1")),
        ):
            with pytest.raises(StoreUnavailable):
                await work
    left = (
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'candor'"
        " AND pid != pg_backend_pid()"
    )
    with connect_blocking(server_url(), schema) as connection, anyio.fail_after(30):
        while connection.execute(left).fetchall()[0][0]:  # noqa: ASYNC110  a server's process ends by itself
            await anyio.sleep(0.01)
