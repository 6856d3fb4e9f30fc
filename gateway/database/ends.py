"""The source and the target of a copy: both databases in files, or in PostgreSQL, on one connection
and in one transaction.

All methods block. Tables are named without a schema: `use` says of which database they are.
"""

import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final

from gateway.database.parts import PARTS, ROWID, Part
from memory.stores.database import Connection
from memory.stores.sqlite.connections import connect_blocking
from memory.stores.sqlite.driver_errors import translating_errors
from memory.stores.sqlite.integrity import holds_nothing_blocking, uri_to_look_at_blocking

_MADE: Final = (
    "SELECT type, name, sql FROM {}.sqlite_master WHERE sql IS NOT NULL"
    " AND name NOT LIKE 'sqlite!_%' ESCAPE '!' AND type IN ({}) ORDER BY rowid"
)
_NAMED: Final = re.compile(r"(CREATE (?:VIRTUAL )?(?:UNIQUE )?(?:TABLE|INDEX|VIEW|TRIGGER) )")
_OF_FTS: Final = ("_config", "_content", "_data", "_docsize", "_idx")
"""Tables that FTS5 makes itself."""


class End(ABC):
    """One side of a copy."""

    is_file: bool
    name: str

    @abstractmethod
    def use(self, part: Part) -> None:
        """Name the tables of a part from now on."""

    @abstractmethod
    def version(self) -> int | None:
        """Return the version of the part; None if it has no tables."""

    @abstractmethod
    def make(self) -> None:
        """Make the part's tables, which it has not."""

    @abstractmethod
    def count(self, table: str) -> int:
        """Return how many rows a table has."""

    @abstractmethod
    def rows(self, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a table."""

    @abstractmethod
    def insert(self, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows as they are; no trigger runs inside `without_triggers`."""

    @abstractmethod
    def without_triggers(self) -> Any:
        """Return a context in which the part's triggers do not run."""

    @abstractmethod
    def numbers(self) -> Mapping[str, int]:
        """Return the highest number that was given, of each table that never gives one twice."""

    @abstractmethod
    def set_numbers(self, numbers: Mapping[str, int]) -> None:
        """Continue the numbering after these, and after those of the rows."""

    @property
    @abstractmethod
    def connection(self) -> Connection:
        """The connection, for functions that make an index."""


class Files(End):
    """The files of a data directory."""

    is_file = True
    name = "the directory of CANDOR_DATA_DIR"

    def __init__(self, connection: sqlite3.Connection, *, is_alone: bool = False) -> None:
        """With `is_alone` the connection has the file of one part, whichever is used."""
        self._connection = connection
        self._is_alone = is_alone
        self._part = PARTS[0]

    @property
    def connection(self) -> Connection:
        return self._connection

    def use(self, part: Part) -> None:
        self._part = part

    def version(self) -> int | None:
        found = self._run(f"SELECT count(*) FROM {self._schema}.sqlite_master").fetchone()[0]  # noqa: S608
        if not found:
            return None
        return int(self._run(f"PRAGMA {self._schema}.user_version").fetchone()[0])

    def make(self) -> None:
        with closing(connect_blocking(":memory:")) as made:
            for step in self._part.steps(is_file=True):
                made.executescript(step)
            for kind, name, sql in made.execute(
                _MADE.format("main", "'table', 'index', 'view', 'trigger'")
            ):
                if kind != "table" or not name.endswith(_OF_FTS):
                    self._create(sql)
        self._run(f"PRAGMA {self._schema}.user_version={self._part.version(is_file=True)}")

    def count(self, table: str) -> int:
        return int(self._run(f"SELECT count(*) FROM {self._named(table)}").fetchone()[0])  # noqa: S608

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        statement = f"SELECT {listed(columns)} FROM {self._named(table)}"  # noqa: S608
        return (tuple(row) for row in self._run(statement))

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        values = ", ".join("?" * len(columns))
        self._connection.executemany(
            f"INSERT INTO {self._named(table)} ({listed(columns)}) VALUES ({values})",  # noqa: S608
            rows,
        )

    @contextmanager
    def without_triggers(self) -> Iterator[None]:
        triggers = self._run(_MADE.format(self._schema, "'trigger'")).fetchall()
        for _, name, _sql in triggers:
            self._run(f"DROP TRIGGER {self._schema}.{name}")
        yield
        for _, _name, sql in triggers:
            self._create(sql)

    def numbers(self) -> Mapping[str, int]:
        return dict(
            tuple(row)
            for row in self._run(f"SELECT name, seq FROM {self._schema}.sqlite_sequence")  # noqa: S608
            if row[0] in self._part.tables
        )

    def set_numbers(self, numbers: Mapping[str, int]) -> None:
        sequence = f"{self._schema}.sqlite_sequence"
        counting = self._run(
            f"SELECT name FROM {self._schema}.sqlite_master WHERE sql LIKE '%AUTOINCREMENT%'"  # noqa: S608
        ).fetchall()
        for name in {row[0] for row in counting} & numbers.keys():
            row = self._run(f"SELECT seq FROM {sequence} WHERE name = ?", name).fetchone()  # noqa: S608
            self._run(f"DELETE FROM {sequence} WHERE name = ?", name)  # noqa: S608
            number = max(numbers[name], row[0] if row else 0)
            self._run(f"INSERT INTO {sequence} (name, seq) VALUES (?, ?)", name, number)  # noqa: S608

    def columns(self, table: str) -> list[str]:
        """Return the columns that are stored, `rowid` among them where it is read."""
        found = self._run(f"PRAGMA {self._schema}.table_info({table})")
        return [*(["rowid"] if table in ROWID else []), *(row["name"] for row in found)]

    @property
    def _schema(self) -> str:
        return "main" if self._is_alone else self._part.name

    def _create(self, sql: str) -> None:
        self._run(_NAMED.sub(rf"\1{self._schema}.", sql, count=1))

    def _named(self, table: str) -> str:
        return f"{self._schema}.{table}"

    def _run(self, statement: str, *values: Any) -> sqlite3.Cursor:
        return self._connection.execute(statement, values)


def listed(columns: Sequence[str]) -> str:
    """Return columns in a statement."""
    return ", ".join(f'"{column}"' for column in columns)


@contextmanager
def source_files(data_dir: Path) -> Iterator[Files]:
    """Open the files to read one state of them. Raise `StoreUnavailable` if they cannot be read."""
    first, second = (data_dir / part.file for part in PARTS)
    with translating_errors("read"), ExitStack() as opened:
        connection = sqlite3.connect(uri_to_look_at_blocking(first), uri=True, isolation_level=None)
        opened.enter_context(closing(connection))
        connection.row_factory = sqlite3.Row
        connection.execute("ATTACH ? AS memory", (uri_to_look_at_blocking(second),))
        connection.execute("PRAGMA query_only=ON")
        connection.execute("BEGIN")
        yield Files(connection)


@contextmanager
def target_files(data_dir: Path) -> Iterator[Files]:
    """Open the files to write, made if missing; commit at the end of the block.

    The transaction is one over both files: a journal of rollbacks names both, which a log would
    not. Raise `StoreUnavailable` if they cannot be written; what was made then is removed.
    """
    paths = [data_dir / part.file for part in PARTS]
    missing = [path for path in paths if not path.exists()]
    try:
        with translating_errors("written"), ExitStack() as opened:
            for path in missing:
                path.touch(mode=0o600)
            connection = opened.enter_context(closing(connect_blocking(paths[0])))
            connection.execute("ATTACH ? AS memory", (str(paths[1]),))
            connection.execute("PRAGMA foreign_keys=OFF")  # rows are compared instead
            for part in PARTS:
                connection.execute(f"PRAGMA {part.name}.journal_mode=DELETE")
                connection.execute(f"PRAGMA {part.name}.synchronous=FULL")
            connection.execute("BEGIN IMMEDIATE")
            yield Files(connection)
            connection.execute("COMMIT")
    except BaseException:
        for path in missing:
            if path.exists() and holds_nothing_blocking(path):
                path.unlink()
        raise
