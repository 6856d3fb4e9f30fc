"""How long a recall takes on PostgreSQL beside SQLite: the same items, questions and code.

`python -m bench.recall_engines [--items N …] [--url URL]`. Without an address it starts the server
of the tests. The first items are written as the program writes them, the others into PostgreSQL with
many rows a statement. Each question is asked on both in turn, so that both have the machine as it is then;
read the ratios, since the times are those of this machine and its load.
"""

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import psycopg

from bench.made_up_texts import Corpus
from bench.recall_memory import MIGRATIONS
from bench.recall_speed import BATCH, OWNER, made_item
from bench.report import describe_machine, percentile, show
from memory.clock import utc_now
from memory.items.item import Item
from memory.items.scope import Scope
from memory.recall.query import RECALLED_KINDS, QueryPack
from memory.recall.reader import RecallReader
from memory.recall.retrievers import FulltextRetriever
from memory.recall.search import MemorySearch
from memory.stores.database import Connection, SqlDatabase
from memory.stores.postgres import migrations as postgres_migrations
from memory.stores.postgres.database import open_postgres
from memory.stores.sqlite.database import migrations_of, open_database
from memory.stores.sqlite.fulltext_index import scope_tokens, word_index_of
from memory.stores.sqlite.items import SqlItemStore, put_item_blocking
from memory.stores.sqlite.row_values import columns_of
from memory.stores.sqlite.statements import insert_blocking
from memory.stores.sqlite.word_index import IndexedTerms
from memory.text.terms import characters, terms
from tests.support.postgres import server_url

SIZES = (10_000, 100_000)
QUESTIONS = 200
WARM = 20
TIMED = 2_000
"""Items that are written as the program does it, whose time is told."""
SCHEMA = "bench_recall"
COLUMNS = ("items", "what", "engine", "p50, ms", "p95, ms", "ratio p50 / p95", "processor, ms")


class _Engine:
    """A memory on one engine."""

    def __init__(self, name: str, database: SqlDatabase) -> None:
        self.name = name
        self._database = database
        items = SqlItemStore(database)
        self._search = MemorySearch(items, [FulltextRetriever(items)], now=utc_now)
        self._reader = RecallReader(self._search)
        self.filled_s = 0.0
        self.times: dict[str, list[float]] = {"search": [], "turn": []}
        self.cpu: dict[str, list[float]] = {"search": [], "turn": []}
        """Of this process; the server of PostgreSQL is another one."""

    async def write(self, items: Sequence[Item], *, is_timed: bool) -> None:
        def work(writer: Connection) -> None:
            for item in items:
                put_item_blocking(writer, item)

        is_slow = self._database.engine == "postgresql" and not is_timed
        started = time.perf_counter()
        await self._database.write(partial(_load_blocking, items=items) if is_slow else work)
        self.filled_s += time.perf_counter() - started if is_timed else 0

    async def settle(self) -> None:
        """Run the upkeep that PostgreSQL does by itself within minutes."""
        if self._database.engine == "postgresql":
            await anyio.to_thread.run_sync(_vacuum_blocking)

    async def ask(self, question: str, message: str) -> list[str]:
        """Search, and recall for a turn; return what the search found."""
        scope = Scope(owner_id=OWNER)
        with self._timing("search"):
            found = await self._search.search(question, scope=scope, limit=20)
        with self._timing("turn"):
            pack = await self._reader.recall(
                QueryPack(queries=(message,), scope=scope, kinds=RECALLED_KINDS)
            )
        assert not found.degraded, found.degraded
        assert not pack.degraded, pack.degraded
        return [hit.item.id for hit in found.hits]

    @contextmanager
    def _timing(self, what: str) -> Iterator[None]:
        started, cpu = time.perf_counter(), time.process_time()
        yield
        self.times[what].append(time.perf_counter() - started)
        self.cpu[what].append(time.process_time() - cpu)


class _Collected:
    """Keeps statements instead of running them."""

    engine = "postgresql"

    def __init__(self) -> None:
        self.statements: dict[str, list[Any]] = defaultdict(list)

    def execute(self, sql: str, parameters: Any) -> None:
        self.statements[sql].append(parameters)


def _load_blocking(writer: Connection, items: Sequence[Item]) -> None:
    """Write new items without labels, tags and neighbours."""
    collected: Any = _Collected()
    for item in items:
        row = columns_of(item, labels="{}", tags="[]")
        insert_blocking(collected, "items", row | {"owner_id": row.pop("scope").owner_id})
    _run_blocking(writer, collected)
    numbers = writer.execute("SELECT id, seq FROM items ORDER BY seq DESC LIMIT ?", (len(items),))
    seqs = {row["id"]: row["seq"] for row in numbers}
    collected, index = _Collected(), word_index_of(writer)
    for item in items:
        written = IndexedTerms(
            title=terms(item.title),
            body=terms(item.body),
            before=(),
            after=(),
            characters=characters(f"{item.title} {item.body}"),
            scope=list(scope_tokens(item.scope.owner_id, item.kind, {})),
        )
        index.put_blocking(collected, seqs[item.id], written)
    _run_blocking(writer, collected)


def _run_blocking(writer: Connection, collected: _Collected) -> None:
    for sql, rows in collected.statements.items():
        writer.executemany(sql, rows)


def _vacuum_blocking() -> None:
    with psycopg.connect(_url(), autocommit=True) as connection:
        for table in ("items", "item_words"):
            connection.execute(f"VACUUM ANALYZE {SCHEMA}.{table}")


def _drop_blocking() -> None:
    with psycopg.connect(_url(), autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")


def _size_blocking() -> float:
    with psycopg.connect(_url(), autocommit=True) as connection:
        row = connection.execute(
            "SELECT sum(pg_total_relation_size(oid)) FROM pg_class"
            f" WHERE relkind = 'r' AND relnamespace = '{SCHEMA}'::regnamespace"
        ).fetchone()
    assert row is not None
    return float(row[0]) / 2**20


_address: list[str] = []


def _url() -> str:
    return _address[0] if _address else server_url()


async def measure(count: int) -> dict[str, Any]:
    """Fill both with so many items, and ask both the same questions in turn."""
    corpus = Corpus()
    await anyio.to_thread.run_sync(_drop_blocking)
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="recall-")))
        steps = migrations_of(postgres_migrations.__name__)
        opened = {
            "sqlite": await open_database(directory / "memory.sqlite3", MIGRATIONS),
            "postgresql": await open_postgres(_url(), steps, schema=SCHEMA),
        }
        for database in opened.values():
            stack.push_async_callback(database.close)
        engines = [_Engine(name, database) for name, database in opened.items()]
        for start in range(0, count, BATCH):
            items = [made_item(corpus, n) for n in range(start, min(start + BATCH, count))]
            for engine in engines:
                await engine.write(items, is_timed=start < TIMED)
        for engine in engines:
            await engine.settle()
        equal = 0
        for _ in range(QUESTIONS + WARM):
            question, message = corpus.question(), corpus.question()
            answers = [await engine.ask(question, message) for engine in engines]
            equal += answers[0] == answers[1]
        return {
            "items": count,
            "equal": equal / (QUESTIONS + WARM),
            "mib": await anyio.to_thread.run_sync(_size_blocking),
            "file_mib": (directory / "memory.sqlite3").stat().st_size / 2**20,
            "engines": {
                engine.name: {
                    "written_per_s": min(count, TIMED) / engine.filled_s,
                    "times": {what: taken[WARM:] for what, taken in engine.times.items()},
                    "cpu": {what: spent[WARM:] for what, spent in engine.cpu.items()},
                }
                for engine in engines
            },
        }


def _rows(measured: dict[str, Any]) -> Iterator[list[str]]:
    """Yield a row for each engine and what it was asked; the ratio is that to SQLite."""
    engines = measured["engines"]
    for what in ("search", "turn"):
        for name, engine in engines.items():
            p50, p95 = (percentile(engine["times"][what], share) for share in (0.5, 0.95))
            ratios = (
                taken / percentile(engines["sqlite"]["times"][what], share)
                for share, taken in ((0.5, p50), (0.95, p95))
            )
            yield [
                f"{measured['items']}",
                what,
                name,
                f"{1000 * p50:.1f}",
                f"{1000 * p95:.1f}",
                " / ".join(f"{ratio:.2f}" for ratio in ratios),
                f"{1000 * percentile(engine['cpu'][what], 0.5):.1f}",
            ]


async def run(sizes: Sequence[int]) -> None:
    print(describe_machine(), end="\n\n")
    for size in sizes:
        measured = await measure(size)
        written = [engine["written_per_s"] for engine in measured["engines"].values()]
        show(
            f"Recall on PostgreSQL beside SQLite; equal answers {100 * measured['equal']:.0f} %;"
            f" written a second {written[0]:.0f} and {written[1]:.0f}; MiB"
            f" {measured['file_mib']:.0f} and {measured['mib']:.0f}",
            COLUMNS,
            list(_rows(measured)),
        )
    await anyio.to_thread.run_sync(_drop_blocking)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.recall_engines")
    parser.add_argument("--items", type=int, nargs="+", default=SIZES)
    parser.add_argument("--url", help="of a PostgreSQL database to use a schema of")
    options = parser.parse_args()
    if options.url:
        _address.append(options.url)
    anyio.run(run, options.items)
