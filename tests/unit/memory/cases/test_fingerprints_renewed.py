"""Cases from before the rules of fingerprints changed are known by the present ones once memory is open."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from memory import assemble
from memory.clock import utc_now
from memory.embeddings.choice import EmbedderChoice
from memory.errors import StoreUnavailable
from memory.memory import Memory
from memory.plan import MemoryPlan
from memory.stores.sqlite.case_fingerprints import renew_fingerprints, rules_digest_blocking
from memory.stores.sqlite.database import Database
from policies.secrets import mask_secrets
from tests.support.cases import (
    INCIDENT,
    INCIDENT_ZH,
    OTHER_INCIDENT,
    CaseWorld,
    caller,
    case_world,
    retold,
)
from tests.support.episodes import FILE, open_memory

KEYS = "SELECT case_id, fingerprint FROM cases ORDER BY case_id"
TOLD = (INCIDENT, INCIDENT_ZH, OTHER_INCIDENT)


@asynccontextmanager
async def assembled(root: Path) -> AsyncIterator[Memory]:
    plan = MemoryPlan(
        data_dir=root,
        workspace=root,
        mask=mask_secrets,
        embedder=EmbedderChoice(name="hashed"),
        serves_vectors=False,
    )
    async with assemble.open_memory(plan, now=utc_now, draw=lambda: 0.5) as memory:
        yield memory


async def keys(database: Database) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await database.rows(KEYS)]


async def made_by_older_rules(world: CaseWorld) -> list[tuple[Any, ...]]:
    """Record cases as older rules would have; gives their keys by the present ones."""
    for told in TOLD:
        await world.upsert(caller(), **told)
    now = await keys(world.database)
    await world.database.write(
        lambda writer: writer.execute("UPDATE cases SET fingerprint = x'00'")
    )
    return now


@pytest.mark.parametrize("told", [INCIDENT, INCIDENT_ZH], ids=["en", "zh"])
async def test_what_was_found_wrong_under_older_rules_does_not_come_back_as_new(
    world: CaseWorld, told: Any
) -> None:
    made = await world.upsert(caller(), **{**told, "confidence": 0.3})
    await world.vote(caller("cnv_2"), made.case.case_id, helpful=False)
    await world.database.write(
        lambda writer: writer.execute("UPDATE cases SET fingerprint = x'00'")
    )
    await renew_fingerprints(world.database)
    again = await world.upsert(caller("cnv_3"), **retold(told))
    assert (again.status, again.case.case_id) == ("merged", made.case.case_id)
    assert again.case.lifecycle == "rejected"


async def test_memory_renews_them_before_it_is_open(tmp_path: Path) -> None:
    async with case_world(tmp_path) as world:
        now = await made_by_older_rules(world)
    async with assembled(tmp_path):
        pass
    async with open_memory(tmp_path) as database:
        assert await keys(database) == now


async def test_under_the_same_rules_nothing_is_read_nor_written(world: CaseWorld) -> None:
    await renew_fingerprints(world.database)
    await made_by_older_rules(world)
    older = await keys(world.database)
    await renew_fingerprints(world.database)
    assert await keys(world.database) == older
    await world.database.write(
        lambda writer: writer.execute("UPDATE case_fingerprint_rules SET digest = x'00'")
    )
    await renew_fingerprints(world.database)
    assert await keys(world.database) != older
    rules = await anyio.to_thread.run_sync(rules_digest_blocking)
    rows = await world.database.rows("SELECT digest FROM case_fingerprint_rules")
    assert [row[0] for row in rows] == [rules]


async def test_where_it_cannot_be_written_memory_opens_and_it_is_done_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with case_world(tmp_path) as world:
        now = await made_by_older_rules(world)

        def full(*_: object) -> None:
            raise StoreUnavailable("The disk is full.")

        with monkeypatch.context() as broken:
            broken.setattr(world.database, "write", full)
            await renew_fingerprints(world.database)
        with closing(sqlite3.connect(tmp_path / FILE)) as connection:
            assert connection.execute("SELECT * FROM case_fingerprint_rules").fetchall() == []
    async with open_memory(tmp_path) as database:
        await renew_fingerprints(database)
        assert await keys(database) == now
