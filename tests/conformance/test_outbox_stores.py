"""The outbox against its suite, and the suite against deliberately wrong ones."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memory.outbox.delivery import Delivery, Link, NewDelivery
from memory.outbox.store import SqlOutboxStore, enqueue_blocking
from memory.stores.database import SqlDatabase
from tests.conformance.suites.opened import run_test
from tests.conformance.suites.outbox import Opening, OpenOutbox, OutboxStoreSuite
from tests.support.episodes import open_memory_in
from tests.support.other_words import CAUGHT, Speak, expect_all_caught
from tests.support.postgres import empty_schema_blocking


def opening(
    place: Path | str,
    make: Callable[[SqlDatabase], SqlOutboxStore] = SqlOutboxStore,
    speaking: Callable[[Any], Any] = lambda database: database,
) -> Opening:
    @asynccontextmanager
    async def opens() -> AsyncIterator[OpenOutbox]:
        async with open_memory_in(place) as plain:
            database = speaking(plain)

            async def enqueue(deliveries: Sequence[NewDelivery], now: datetime) -> None:
                await database.write(partial(enqueue_blocking, deliveries=deliveries, now=now))

            yield OpenOutbox(store=make(database), enqueue=enqueue)

    return opens


class TestSqliteOutbox(OutboxStoreSuite):
    @pytest.fixture
    def opens(self, tmp_path: Path) -> Opening:
        return opening(tmp_path)


class TestPostgresOutbox(OutboxStoreSuite):
    @pytest.fixture
    def opens(self) -> Iterator[Opening]:
        with empty_schema_blocking("memory") as schema:
            yield opening(schema)


class ForgettingLinks(SqlOutboxStore):
    async def delivered(
        self, delivery: Delivery, links: Sequence[Link] | None, now: datetime
    ) -> None:
        await super().delivered(delivery, () if links is None else links, now)


class ForgettingWhatWasBegun(SqlOutboxStore):
    async def begun(self, delivery: Delivery, links: Sequence[Link]) -> None:
        pass


class WithoutLag(SqlOutboxStore):
    async def lag_s(self, backend: str, now: datetime) -> float:
        return 0.0


S = OutboxStoreSuite()
WRONG: list[tuple[type[SqlOutboxStore], Any]] = [
    (ForgettingLinks, S.test_what_came_of_a_newer_one_takes_the_place_of_the_old_at_that_backend),
    (ForgettingWhatWasBegun, S.test_what_was_begun_is_known_after_a_restart_and_waits_on),
    (WithoutLag, S.test_the_lag_is_the_age_of_the_oldest_that_waits),
]


@pytest.mark.parametrize(("make", "test"), WRONG, ids=range(len(WRONG)))
async def test_the_suite_catches_a_wrong_outbox(
    make: type[SqlOutboxStore], test: Any, tmp_path: Path
) -> None:
    with pytest.raises(CAUGHT):
        await run_test(test, opening(tmp_path, make))


async def test_the_suite_catches_wrong_statements(tmp_path: Path) -> None:
    def speaking(directory: Path, speak: Speak) -> Opening:
        return opening(directory, speaking=speak)

    await expect_all_caught("outbox", tmp_path, speaking, S)
