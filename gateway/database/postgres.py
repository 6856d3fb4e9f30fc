"""Both databases in PostgreSQL as a source or a target; see `End`. Needs psycopg."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any, Final

from psycopg import sql

from gateway.database.ends import End, listed
from gateway.database.parts import PARTS, Part
from gateway.errors import StartError
from memory.stores.database import Connection
from memory.stores.postgres.connections import Driver, Statements, connect_blocking
from memory.stores.postgres.database import migrate_blocking, require_supported
from memory.stores.postgres.driver_errors import translating_errors
from memory.stores.postgres.use_lock import UseLock

_IN_USE: Final = "A Candor server uses the database of CANDOR_DATABASE_URL; stop it first."
_NUMBERED: Final = (
    "SELECT table_name, column_name, pg_get_serial_sequence(quote_ident(table_schema) || '.' ||"
    " quote_ident(table_name), column_name) AS sequence FROM information_schema.columns"
    " WHERE table_schema = current_schema() AND is_identity = 'YES'"
)
_AT_ONCE: Final = 500


class Schemas(End):
    """The two schemas of a PostgreSQL database."""

    is_file = False
    name = "the database of CANDOR_DATABASE_URL"

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._statements = Statements(driver)
        self._part = PARTS[0]

    @property
    def connection(self) -> Connection:
        return self._statements

    def use(self, part: Part) -> None:
        self._part = part
        path = sql.SQL("SET LOCAL search_path TO {}").format(sql.Identifier(part.schema))
        self._driver.execute(path)

    def version(self) -> int | None:
        if self._one("SELECT to_regclass('schema_version')") is None:
            return None
        return int(self._one("SELECT max(version) FROM schema_version"))

    def make(self) -> None:
        migrate_blocking(self._driver, self._part.steps(is_file=False), self._part.schema)

    def count(self, table: str) -> int:
        return int(self._one(f'SELECT count(*) FROM "{table}"'))  # noqa: S608

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        with self._driver.cursor(name="copied") as cursor:
            cursor.itersize = _AT_ONCE
            cursor.execute(f'SELECT {listed(columns)} FROM "{table}"'.encode())  # noqa: S608
            for row in cursor:
                yield tuple(row)

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        values = ", ".join("?" * len(columns))
        self._statements.executemany(
            f'INSERT INTO "{table}" ({listed(columns)}) OVERRIDING SYSTEM VALUE VALUES ({values})',  # noqa: S608
            rows,
        )

    @contextmanager
    def without_triggers(self) -> Iterator[None]:
        for table in self._part.tables:
            self._statements.execute(f'ALTER TABLE "{table}" DISABLE TRIGGER USER')
        yield
        for table in self._part.tables:
            self._statements.execute(f'ALTER TABLE "{table}" ENABLE TRIGGER USER')

    def numbers(self) -> Mapping[str, int]:
        given = {
            table: self._one("SELECT pg_sequence_last_value(?::regclass)", sequence)
            for table, (_, sequence) in self._numbered().items()
        }
        return {table: number for table, number in given.items() if number is not None}

    def set_numbers(self, numbers: Mapping[str, int]) -> None:
        for table, (column, sequence) in self._numbered().items():
            highest = self._one(f'SELECT coalesce(max("{column}"), 0) FROM "{table}"')  # noqa: S608
            number = max(highest, numbers.get(table, 0))
            if number:
                self._statements.execute("SELECT setval(?::regclass, ?)", (sequence, number))

    def _numbered(self) -> dict[str, tuple[str, str]]:
        rows = self._driver.execute(_NUMBERED).fetchall()
        return {row[0]: (row[1], row[2]) for row in rows if row[0] in self._part.tables}

    def _one(self, statement: str, *values: Any) -> Any:
        row = self._statements.execute(statement, values).fetchone()
        return None if row is None else row[0]


@contextmanager
def source_schemas(url: str) -> Iterator[Schemas]:
    """Open the database to read one state of it. Raise `StoreUnavailable` if it cannot be read."""
    with _alone(url, is_reader=True) as driver:
        driver.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        driver.execute("SET LOCAL idle_in_transaction_session_timeout TO 0")
        yield Schemas(driver)
        driver.execute("ROLLBACK")


@contextmanager
def looked_at(url: str) -> Iterator[Schemas]:
    """Open the database to read it, beside a server too. Raise `StoreUnavailable` if it cannot."""
    with translating_errors("opened"), ExitStack() as opened:
        driver = connect_blocking(url, PARTS[0].schema, is_reader=True)
        opened.enter_context(closing(driver))
        driver.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield Schemas(driver)


@contextmanager
def target_schemas(url: str) -> Iterator[Schemas]:
    """Open the database to write; commit at the end of the block. Tables are made in the same
    transaction. Raise `StoreUnavailable` if it cannot be written.
    """
    with _alone(url) as driver:
        require_supported(driver)
        driver.execute("BEGIN")
        driver.execute("SET LOCAL idle_in_transaction_session_timeout TO 0")
        yield Schemas(driver)
        driver.execute("COMMIT")


@contextmanager
def sole_use(url: str) -> Iterator[None]:
    """Keep servers from the database. Raise `StartError` if one uses it."""
    lock = UseLock(url, PARTS[0].schema)
    with translating_errors("opened"):
        if not lock.take_blocking():
            raise StartError(_IN_USE)
    try:
        yield
    finally:
        lock.close_blocking()


@contextmanager
def _alone(url: str, *, is_reader: bool = False) -> Iterator[Driver]:
    with translating_errors("read" if is_reader else "written"), ExitStack() as opened:
        opened.enter_context(sole_use(url))
        driver = connect_blocking(url, PARTS[0].schema, is_reader=is_reader)
        yield opened.enter_context(closing(driver))
