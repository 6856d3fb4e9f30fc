"""Fingerprints of cases: which reports have the same, and how those of older rules are renewed."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from memory.cases.case import CaseContent, CaseMetadata
from memory.cases.fingerprint import fingerprint_of, same_texts
from memory.errors import StoreUnavailable
from memory.stores.sqlite.case_fingerprints import renew_fingerprints, rules_digest_blocking
from memory.stores.sqlite.database import Database
from tests.conformance.suites.case_values import ANN
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
from tests.support.memories import whole_memory

BEFORE = CaseContent(
    symptom_summary="checkout answers 503",
    diagnosis="the pool is exhausted",
    resolution="raise the pool",
    root_cause="a leak in pool 7",
    metadata=CaseMetadata(failure_layer="db", tags=("pool",)),
)


def test_the_occasion_case_white_space_punctuation_and_metadata_play_no_part() -> None:
    told = fingerprint_of(BEFORE, ANN)
    assert len(told) == 16
    for again in (
        replace(BEFORE, diagnosis=" The pool\n is - EXHAUSTED "),
        replace(BEFORE, metadata=CaseMetadata()),
        replace(BEFORE, symptom_summary="checkout answers 503 (10:42, 2026-03-01T10:42:00Z)"),
        replace(BEFORE, diagnosis="10.2.3.4: the pool is exhausted, 95%, 300 ms"),
        replace(BEFORE, diagnosis="the pool is exhausted 4bf92f3577b34da6a3ce929d0e0e4736"),
        replace(BEFORE, symptom_summary="checkout answers 500"),
        replace(BEFORE, root_cause="a leak in pool 7 (12 minutes)"),
        replace(BEFORE, resolution="close the connections"),
    ):
        assert fingerprint_of(again, ANN) == told, again


def test_another_cause_symptom_or_scope_is_another_one() -> None:
    others = [
        fingerprint_of(replace(BEFORE, root_cause="a leak in pool 8"), ANN),
        fingerprint_of(replace(BEFORE, root_cause="no leak in pool 7"), ANN),
        fingerprint_of(replace(BEFORE, symptom_summary="支付 503"), ANN),
        fingerprint_of(replace(BEFORE, symptom_summary="the pool", diagnosis="is exhausted"), ANN),
        fingerprint_of(BEFORE, replace(ANN, app_code=None)),
        fingerprint_of(BEFORE, replace(ANN, environment="staging")),
        fingerprint_of(BEFORE, replace(ANN, owner_id="bob")),
        fingerprint_of(BEFORE, ANN),
    ]
    assert len({*others}) == 8


def test_without_a_root_cause_the_resolution_counts() -> None:
    silent = replace(BEFORE, root_cause="")
    other = replace(silent, resolution="close the connections")
    assert fingerprint_of(silent, ANN) != fingerprint_of(other, ANN)
    assert fingerprint_of(silent, ANN) != fingerprint_of(BEFORE, ANN)


def test_the_same_texts_are_the_same_but_for_letters_case_and_white_space() -> None:
    assert same_texts(BEFORE, replace(BEFORE, diagnosis=" THE pool\nis exhausted"))
    assert not same_texts(BEFORE, replace(BEFORE, resolution="raise the pool to 7"))


KEYS = "SELECT case_id, fingerprint FROM cases ORDER BY case_id"
TOLD = (INCIDENT, INCIDENT_ZH, OTHER_INCIDENT)


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
    async with whole_memory(tmp_path, serves_vectors=False):
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
