"""The store and the book of cases on a temporary directory, with what looks at their neighbours."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from memory.cases.book import CaseBook
from memory.cases.caller import sees
from memory.cases.case import Case, CaseCaller, CaseContent
from memory.cases.case_writes import delete_case_blocking
from memory.cases.relations import Nearby
from memory.cases.results import FeedbackAnswer, UpsertAnswer
from memory.cases.store import SqlCaseStore
from memory.clock import Now
from memory.items.scope import Scope
from memory.stores.database import SqlDatabase
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.items import SqlItemStore
from tests.conformance.suites.case_values import AT, BACKENDS, OpenCases, Opening
from tests.support.episodes import deliveries_in, open_memory, open_memory_in

Making = Callable[[Any, Now], SqlCaseStore]


def ticking() -> Now:
    """Return a clock that advances by a second on each call."""
    ticks = count()
    return lambda: AT + timedelta(seconds=next(ticks))


def cases_on(database: SqlDatabase, now: Now) -> SqlCaseStore:
    """Put the store of cases onto an open database."""
    return SqlCaseStore(database, now, deliver_to=BACKENDS)


def opening(place: Path | str, make: Making = cases_on) -> Opening:
    """Return a factory of stores in a directory, or in a schema of PostgreSQL."""

    @asynccontextmanager
    async def opens() -> AsyncIterator[OpenCases]:
        async with open_memory_in(place) as database:

            async def forget(case_id: str) -> bool:
                return await database.write(partial(delete_case_blocking, case_id=case_id))

            yield OpenCases(
                store=make(database, ticking()),
                item=SqlItemStore(database).current,
                deliveries=partial(deliveries_in, database),
                forget=forget,
            )

    return opens


class Listed:
    """Candidates without a search: every case of the owner that has an item and is of the app."""

    def __init__(self, database: Database, store: SqlCaseStore) -> None:
        self._database = database
        self._store = store

    async def candidates(self, content: CaseContent, scope: Scope, limit: int) -> Nearby:
        del content
        rows = await self._database.rows("SELECT id FROM items WHERE kind = 'case' ORDER BY id")
        found = await self._store.get([row["id"] for row in rows], scope.owner_id)
        mine = [hit for hit in found if sees(CaseCaller(scope=scope), hit)]
        return Nearby(cases=mine[:limit])


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseWorld:
    """A book of cases on an open database, without vectors and search."""

    database: Database
    store: SqlCaseStore
    book: CaseBook
    told: list[str]
    """Grows whenever the book says that something changed."""

    async def upsert(self, who: CaseCaller, **fields: Any) -> UpsertAnswer:
        """Record or update a case."""
        return await self.book.upsert(who, fields)

    async def vote(
        self, who: CaseCaller, case_id: str, *, helpful: bool | None = None, signal: Any = None
    ) -> FeedbackAnswer:
        """Vote on a case."""
        return await self.book.vote(who, case_id, helpful=helpful, signal=signal)

    async def case(self, case_id: str, owner_id: str = "ann") -> Case:
        """Return a stored case."""
        (found,) = await self.store.get([case_id], owner_id)
        return found

    async def count(self) -> int:
        """Return the number of stored cases."""
        rows = await self.database.rows("SELECT count(*) FROM cases")
        return int(rows[0][0])


def world_on(database: Database, make: Making = cases_on, **options: Any) -> CaseWorld:
    """Put a book onto an open database; `options` are the book's."""
    now = ticking()
    store = make(database, now)
    told: list[str] = []
    given: dict[str, Any] = {
        "store": store,
        "candidates": Listed(database, store).candidates,
        "now": now,
        "on_change": lambda: told.append("changed"),
    }
    return CaseWorld(
        database=database, store=store, book=CaseBook(**{**given, **options}), told=told
    )


@asynccontextmanager
async def case_world(
    directory: Path, make: Making = cases_on, **options: Any
) -> AsyncIterator[CaseWorld]:
    """Open a book in a directory while the block runs; `options` are the book's."""
    async with open_memory(directory) as database:
        yield world_on(database, make, **options)


def caller(
    conversation: str | None = "cnv_1",
    *,
    owner: str = "ann",
    app: str | None = "shop",
    environment: str | None = "production",
    **fields: Any,
) -> CaseCaller:
    """Make a caller: a conversation of Ann's in her shop's production."""
    scope = Scope(owner_id=owner, app_code=app, environment=environment)
    return CaseCaller(scope=scope, conversation_id=conversation, **fields)


INCIDENT: Mapping[str, Any] = {
    "symptom_summary": "checkout answers 503 after the deploy",
    "diagnosis": "the connection pool of checkout is exhausted, threads wait in getConnection",
    "resolution": "close the connections of the price import in a finally block",
    "root_cause": "the price import never closes its connections",
    "confidence": 0.8,
    "metadata": {"failure_layer": "db", "related_services": ["checkout"], "tags": ["pool"]},
}
INCIDENT_ZH: Mapping[str, Any] = {
    "symptom_summary": "订单服务频繁重启，容器退出码 137",
    "diagnosis": "堆内存转储显示订单缓存没有上限，老年代写满之后被系统杀死",
    "resolution": "给订单缓存设置上限一万条，并调低堆内存占比",
    "root_cause": "订单缓存没有上限，占满了堆内存",
    "confidence": 0.8,
    "metadata": {"failure_layer": "jvm", "related_services": ["订单服务"], "tags": ["内存"]},
}
OTHER_INCIDENT: Mapping[str, Any] = {
    "symptom_summary": "nightly report is empty",
    "diagnosis": "the cron host runs on the wrong time zone since the move",
    "resolution": "set the time zone of the cron host to UTC",
    "root_cause": "time zone of the new cron host",
    "confidence": 0.7,
}


def retold(incident: Mapping[str, Any]) -> dict[str, Any]:
    """Return an incident reported again with other numbers."""
    return {
        **incident,
        "symptom_summary": f"{incident['symptom_summary']} (10:42)",
        "diagnosis": f"{incident['diagnosis']} (4bf92f3577b34da6a3ce929d0e0e4736)",
    }
