"""A schema with one table of words, and its server, looked at past the program."""

from typing import Any

import psycopg

from memory.stores.postgres.database import PostgresDatabase
from tests.support.postgres import (
    server_url,
)

STEPS = ["CREATE TABLE words (word TEXT PRIMARY KEY, count BIGINT NOT NULL DEFAULT 0)"]


ENDED_BY_SERVER = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'candor'"
)


def on_server_blocking(statement: str) -> list[Any]:
    with psycopg.connect(server_url(), autocommit=True) as connection:
        return connection.execute(statement).fetchall()


async def count_words(database: PostgresDatabase) -> int:
    return int(await database.scalar("SELECT count(*) FROM words"))
