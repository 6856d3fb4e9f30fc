"""No statement of the store of cases reads all cases of an owner: a call costs the same among many."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memory.cases.case import Report
from memory.stores.sqlite.case_writes import delete_case_blocking
from memory.stores.sqlite.cases import SqliteCaseStore
from tests.conformance.suites.case_values import case, new, next_of, related, vote
from tests.support.cases import cases_on, ticking
from tests.support.episodes import open_memory

MANY = 300
TABLES = ("cases", "case_votes", "case_relations", "case_reports", "case_history", "case_views")


async def test_every_statement_finds_its_rows_by_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_memory(tmp_path) as database:
        store = cases_on(database, ticking())
        for n in range(MANY):
            await store.apply(new(case(str(n))))
        said: dict[str, tuple[Any, ...]] = {}
        rows = database.rows

        async def noted(sql: str, parameters: Iterable[Any] = ()) -> Any:
            values = tuple(parameters)
            said[sql] = values
            return await rows(sql, values)

        written: set[str] = set()
        monkeypatch.setattr(database, "rows", noted)
        await database.write(lambda writer: writer.set_trace_callback(written.add))
        await everything_once(store)
        await database.write(partial(delete_case_blocking, case_id="cas_9"))
        await database.write(lambda writer: writer.set_trace_callback(None))
        monkeypatch.undo()

        said |= {sql: () for sql in written if sql.split(" ")[0] in {"SELECT", "UPDATE", "DELETE"}}
        said |= {sql: () for sql in written if sql.startswith("INSERT") and "FROM cases" in sql}
        looked_at = {sql: values for sql, values in said.items() if any(t in sql for t in TABLES)}
        assert len(looked_at) > 15
        for sql, values in looked_at.items():
            plan = [str(row["detail"]) for row in await rows(f"EXPLAIN QUERY PLAN {sql}", values)]
            assert plan, sql
            for step in plan:
                assert not step.startswith("SCAN") or "CONSTANT" in step, (sql, step)
                assert "(owner_id=?)" not in step, (sql, step)


async def everything_once(store: SqliteCaseStore) -> None:
    """Do whatever the store can."""
    ids = [f"cas_{n}" for n in range(60)]
    one = case("1")
    await store.get(ids, "ann")
    await store.by_fingerprint(b"f" * 16, "ann")
    await store.votes(ids)
    await store.related(ids)
    await store.history("cas_1", limit=9)
    await store.history_length("cas_1")
    await store.reports("cas_1", limit=9)
    await store.note_shown("cnv_1", dict.fromkeys(ids, 1))
    await store.unreviewed("cnv_1", "ann", limit=9)
    report = Report(content=one.content, conversation_id=None, at=one.created_at)
    change = next_of(one, vote=vote(one, "cnv_2", helpful=True), relations=[related("2", 0.9)])
    await store.apply(change)
    await store.apply(next_of(change.case, report=report, item=None))
    await store.apply(new(case("new"), shown_to="cnv_1", report=report))


async def test_showing_again_what_was_shown_before_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search shows cases each time; only news is worth a transaction."""
    async with open_memory(tmp_path) as database:
        store = cases_on(database, ticking())
        await store.apply(new(case("1")))
        await store.note_shown("cnv_1", dict.fromkeys(["cas_1"], 1))

        def never(_: Any) -> None:
            raise AssertionError

        monkeypatch.setattr(database, "write", never)
        await store.note_shown("cnv_1", dict.fromkeys(["cas_1"], 1))
        with pytest.raises(AssertionError):
            await store.note_shown("cnv_2", dict.fromkeys(["cas_1"], 1))
