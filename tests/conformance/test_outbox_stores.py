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
from tests.conformance.suites.opened import run_test
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
WRONG_WORDS: list[tuple[str, str, Any]] = [
    (
        "SET due_at = ? WHERE id",
        "SET due_at = min(?, due_at) WHERE id",
        S.test_due_ones_come_oldest_first_to_one_taker_alone,
    ),
    (
        " AND attempts = 0 AND due_at > ?",
        " AND 0 AND due_at > ?",
        S.test_what_a_taker_that_is_gone_had_is_released_and_what_failed_waits_on,
    ),
    (
        "SET status = ?, attempts",
        "SET status = substr('pending', 1 + 0 * length(?)), attempts",
        S.test_a_dead_one_is_listed_and_never_due,
    ),
    (
        f"SET due_at = ?{DUE}",
        f"SET attempts = attempts + 1, due_at = ?{DUE}",
        S.test_what_is_given_back_costs_no_attempt,
    ),
    (
        "owner_id IN (?, ?) AND (?",
        "owner_id NOT IN (?, ?, '') OR (?",
        S.test_nobody_lists_or_retries_what_is_another_owners,
    ),
    (
        "id = ? AND owner_id IN (?, ?)",
        "id = ? AND '' NOT IN (?, ?)",
        S.test_nobody_lists_or_retries_what_is_another_owners,
    ),
    ("min(due_at)", "min(created_at)", S.test_a_failure_waits_with_its_reason_and_its_attempt),
    (
        " AND (revision < ? OR ?)",
        " AND 0 AND (revision < ? OR ?)",
        S.test_a_newer_revision_takes_the_place_of_what_waits,
    ),
    (
        " AND (revision < ? OR ?)",
        " AND 0 AND (revision < ? OR ?)",
        S.test_forgetting_withdraws_every_put_that_was_not_made,
    ),
    (
        "(idempotency_key) DO NOTHING",
        "(idempotency_key) DO UPDATE SET status = 'pending'",
        S.test_the_same_delivery_twice_is_one,
    ),
    (
        " AND operation = 'put' AND status != 'delivered'",
        "",
        S.test_withdrawing_leaves_what_was_made_and_tells_how_many_went,
    ),
]


@pytest.mark.parametrize(("make", "test"), WRONG, ids=range(len(WRONG)))
async def test_the_suite_catches_a_wrong_outbox(
    make: type[SqliteOutboxStore], test: Any, tmp_path: Path
) -> None:
    with pytest.raises(FAILURES):
        await run_test(test, opening(tmp_path, make))


@pytest.mark.parametrize(("old", "new", "test"), WRONG_WORDS, ids=range(len(WRONG_WORDS)))
async def test_the_suite_catches_a_wrong_statement(
    old: str, new: str, test: Any, tmp_path: Path
) -> None:
    await expect_caught(test, old, new, lambda speaking: opening(tmp_path, speaking=speaking))
