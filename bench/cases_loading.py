"""Fills a memory with cases at once, past the book: what is found does not depend on how it was written."""

import sqlite3
import time
from collections import defaultdict, deque
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio.to_thread

from bench.cases_incidents import Teller, Told
from bench.cases_memory import caller
from memory.cases.case import RelatedCase
from memory.cases.case_writes import CaseChange, apply_case_change_blocking
from memory.cases.changes import create_change
from memory.cases.input import new_content, read_case
from memory.service.assemble import FILE
from memory.stores.sqlite import migrations
from memory.stores.sqlite.database import Database, migrations_of, open_database

BATCH = 500
RELATED = 3
START = datetime(2025, 1, 1, tzinfo=UTC)


class Loader:
    """Writes cases straight into the tables, as the book would."""

    def __init__(self) -> None:
        self.families: dict[str, str] = {}
        """By case id."""
        self.texts: dict[str, str] = {}
        """Each case as one text; kept only where they are not related."""
        self._teller = Teller()
        self._last: dict[str, deque[str]] = defaultdict(lambda: deque(maxlen=RELATED))
        self._count = 0
        self._is_related = False

    async def load(self, directory: Path, count: int, *, is_related: bool) -> float:
        """Write so many cases into the memory in a directory; gives the seconds.

        Relations are the true ones: for measuring times; where finding is measured there must be none.
        """
        self._is_related = is_related
        started = time.perf_counter()
        database = await open_database(directory / FILE, migrations_of(migrations.__name__))
        try:
            for start in range(0, count, BATCH):
                await self._batch(database, min(BATCH, count - start))
        finally:
            await database.close()
        return time.perf_counter() - started

    async def _batch(self, database: Database, count: int) -> None:
        changes = await anyio.to_thread.run_sync(
            lambda: [self._change(case) for case in self._teller.cases(count)]
        )

        def write(connection: sqlite3.Connection) -> None:
            for change in changes:
                apply_case_change_blocking(connection, change, (), START)

        await database.write(write)

    def _change(self, told: Told) -> CaseChange:
        self._count += 1
        case_id, near = f"cas_{self._count}", self._last[told.family]
        content, stated = new_content(read_case(told.case))
        change = create_change(
            caller(f"cnv_w{self._count}", told.environment),
            case_id,
            content,
            stated,
            at=START + timedelta(minutes=self._count % 400_000),
            relations=[
                RelatedCase(case_id=case_id, relation="same_root_cause", score=0.9)
                for case_id in near
            ],
        )
        if self._is_related:
            near.append(case_id)
        self.families[case_id] = told.family
        if not self._is_related:
            self.texts[case_id] = told.text
        return change
