"""The outbox against its suite, and the suite against deliberately wrong ones."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memory.errors import StoreConflict, StoreUnavailable
from memory.outbox.delivery import Delivery, Link, NewDelivery
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.outbox import SqliteOutboxStore, enqueue_blocking, withdraw_blocking
from tests.conformance.suites.opened import named, run_test
from tests.conformance.suites.outbox import Opening, OpenOutbox, OutboxStoreSuite
from tests.support.episodes import open_memory
from tests.support.other_words import expect_caught

FAILURES = (AssertionError, ValueError, pytest.fail.Exception, StoreConflict, StoreUnavailable)


def opening(
    directory: Path,
    make: Callable[[Database], SqliteOutboxStore] = SqliteOutboxStore,
    speaking: Callable[[Database], Database] = lambda database: database,
) -> Opening:
    @asynccontextmanager
    async def opens() -> AsyncIterator[OpenOutbox]:
        async with open_memory(directory) as plain:
            database = speaking(plain)

            async def enqueue(deliveries: Sequence[NewDelivery], now: datetime) -> None:
                await database.write(partial(enqueue_blocking, deliveries=deliveries, now=now))

            async def withdraw(item_id: str) -> int:
                return await database.write(partial(withdraw_blocking, item_id=item_id))

            yield OpenOutbox(store=make(database), enqueue=enqueue, withdraw=withdraw)

    return opens


class TestSqliteOutbox(OutboxStoreSuite):
    @pytest.fixture
    def opens(self, tmp_path: Path) -> Opening:
        return opening(tmp_path)


class ForgettingLinks(SqliteOutboxStore):
    async def delivered(
        self, delivery: Delivery, links: Sequence[Link] | None, now: datetime
    ) -> None:
        await super().delivered(delivery, () if links is None else links, now)


class ForgettingWhatWasBegun(SqliteOutboxStore):
    async def begun(self, delivery: Delivery, links: Sequence[Link]) -> None:
        pass


class WithoutLag(SqliteOutboxStore):
    async def lag_s(self, backend: str, now: datetime) -> float:
        return 0.0


S = OutboxStoreSuite()
WRONG: list[tuple[type[SqliteOutboxStore], Any]] = [
    (ForgettingLinks, S.test_what_came_of_a_newer_one_takes_the_place_of_the_old_at_that_backend),
    (ForgettingWhatWasBegun, S.test_what_was_begun_is_known_after_a_restart_and_waits_on),
    (WithoutLag, S.test_the_lag_is_the_age_of_the_oldest_that_waits),
]
DUE = " WHERE id = ? AND status = 'pending'"
WRONG_WORDS: list[tuple[str, str, str]] = [
    ("SET due_at = ? WHERE id", "SET due_at = min(?, due_at) WHERE id", "due_ones_come_oldest"),
    (" AND attempts = 0 AND due_at > ?", " AND 0 AND due_at > ?", "what_a_taker_that_is_gone_had"),
    (
        "SET status = ?, attempts",
        "SET status = substr('pending', 1 + 0 * length(?)), attempts",
        "a_dead_one",
    ),
    (f"SET due_at = ?{DUE}", f"SET attempts = attempts + 1, due_at = ?{DUE}", "what_is_given_back"),
    ("owner_id IN (?, ?) AND (?", "owner_id NOT IN (?, ?, '') OR (?", "nobody_lists"),
    ("id = ? AND owner_id IN (?, ?)", "id = ? AND '' NOT IN (?, ?)", "nobody_lists"),
    ("min(due_at)", "min(created_at)", "failure_waits_with_its_reason_and_its_attempt"),
    (" AND (revision < ? OR ?)", " AND 0 AND (revision < ? OR ?)", "takes_the_place_of_what_waits"),
    (" AND (revision < ? OR ?)", " AND 0 AND (revision < ? OR ?)", "every_put_that_was_not_made"),
    (
        "(idempotency_key) DO NOTHING",
        "(idempotency_key) DO UPDATE SET status = 'pending'",
        "same_delivery_twice",
    ),
    (" AND operation = 'put' AND status != 'delivered'", "", "leaves_what_was_made_and_tells_how"),
]


@pytest.mark.parametrize(("make", "test"), WRONG, ids=range(len(WRONG)))
async def test_the_suite_catches_a_wrong_outbox(
    make: type[SqliteOutboxStore], test: Any, tmp_path: Path
) -> None:
    with pytest.raises(FAILURES):
        await run_test(test, opening(tmp_path, make))


@pytest.mark.parametrize(("old", "new", "part"), WRONG_WORDS, ids=range(len(WRONG_WORDS)))
async def test_the_suite_catches_a_wrong_statement(
    old: str, new: str, part: str, tmp_path: Path
) -> None:
    test = named(part, S)
    await expect_caught(test, old, new, lambda speaking: opening(tmp_path, speaking=speaking))
