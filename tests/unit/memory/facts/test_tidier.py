"""Tidying: which facts and episodes fade, step by step, and how they are taken back."""

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from memory.clock import rfc3339
from memory.errors import StoreUnavailable
from memory.facts.fact import Fact
from memory.facts.rows import SqliteFactStore, put_fact_blocking
from memory.facts.tidier import FactTidier
from memory.items.item import Item
from memory.items.scope import Scope
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.items import SqliteItemStore, put_item_blocking
from memory.stores.sqlite.statements import insert_blocking
from tests.conformance.suites.item_values import item
from tests.support.episodes import open_memory

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ANN = Scope(owner_id="ann")


def fact(number: int, text: str, scope: Scope = ANN, *, lasting: bool = False) -> Fact:
    at = AT + timedelta(minutes=number)
    return Fact(
        id=f"fac_{number}",
        text=text,
        scope=scope,
        origin="request",
        valid_from=at,
        updated_at=at,
        lasting=lasting,
    )


def episode(number: int) -> Item:
    return item(f"{number}", f"word{number}", occurred_at=AT + timedelta(minutes=number))


SHOWN = {
    "id": "int_1",
    "key": "memory.injected",
    "source_kind": "event",
    "owner_id": "ann",
    "payload": '{"ids": ["epi_1"]}',
    "occurred_at": rfc3339(AT + timedelta(hours=1)),
}


@asynccontextmanager
async def opened(
    root: Path, *facts: Fact, most: int = 100
) -> AsyncIterator[tuple[Database, FactTidier]]:
    async with open_memory(root) as database:
        for each in facts:
            await database.write(partial(put_fact_blocking, fact=each, deliver_to=[], now=AT))
        yield database, FactTidier(database, deliver_to=[], now=lambda: AT, most=most)


async def held(database: Database, owner_id: str = "ann") -> list[str]:
    return [fact.id for fact in await SqliteFactStore(database).holding(owner_id)][::-1]


async def test_a_step_is_undone_once_and_not_done_again(tmp_path: Path) -> None:
    facts = [fact(1, "my locker is number 12"), fact(2, "my bicycle is red")]
    async with opened(tmp_path, *facts, most=1) as (database, tidier):
        await tidier.tidy()
        (step,) = await tidier.log("ann", limit=9)
        assert await tidier.undo(step.id, "bob") is None
        for _ in range(2):
            undone = await tidier.undo(step.id, "ann")
            assert undone is not None
            assert undone.undone_at == AT
            assert await held(database) == ["fac_1", "fac_2"]
            assert await tidier.tidy() == 0


async def test_the_oldest_fade_beyond_the_bound_but_lasting_ones_stay(tmp_path: Path) -> None:
    facts = [
        fact(number, f"word{number} other{number}", lasting=number == 1) for number in range(1, 6)
    ]
    facts[1] = replace(facts[1], updated_at=AT + timedelta(hours=1))
    async with opened(tmp_path, *facts, most=3) as (database, tidier):
        assert await tidier.tidy() == 2
        assert await held(database) == ["fac_1", "fac_2", "fac_5"], "the second was told again"


async def test_steps_before_a_failure_stay_and_the_rest_is_done_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = [fact(number, f"my locker is number {number}") for number in range(1, 5)]
    async with opened(tmp_path, *facts, most=1) as (database, tidier):
        write, left = database.write, [2]

        async def failing(work: Callable[[sqlite3.Connection], object]) -> object:
            if not left[0]:
                raise StoreUnavailable("killed")
            left[0] -= 1
            return await write(work)

        monkeypatch.setattr(database, "write", failing)
        with pytest.raises(StoreUnavailable):
            await tidier.tidy()
        monkeypatch.undo()
        assert len(await tidier.log("ann", limit=9)) == 2
        assert await tidier.tidy() == 1
        assert await held(database) == ["fac_4"]


async def test_the_episodes_that_were_used_least_lately_fade_and_come_back(
    database: Database,
) -> None:
    for number in range(1, 5):
        await database.write(partial(put_item_blocking, item=episode(number)))
    await database.write(partial(insert_blocking, table="intents", values=SHOWN))
    tidier = FactTidier(database, deliver_to=[], now=lambda: AT, most_episodes=2)
    store = SqliteItemStore(database)

    async def holding() -> list[str]:
        found = await store.newest(ANN, kinds=("episode",), limit=9)
        return [found_item.id for found_item in found]

    assert await tidier.tidy() == 2
    assert await holding() == ["epi_4", "epi_1"], "the first one was shown lately"
    assert await tidier.tidy() == 0
    step = (await tidier.log("ann", limit=9))[0]
    assert (step.action, step.fact_id) == ("faded", "epi_2")
    await tidier.undo(step.id, "ann")
    assert await tidier.tidy() == 0
    assert await holding() == ["epi_4", "epi_2", "epi_1"]
