"""The outbox against its suite, and the suite against deliberately wrong ones."""

import inspect
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

FAILURES = (AssertionError, ValueError, pytest.fail.Exception, StoreConflict, StoreUnavailable)
TESTS = sorted(name for name in vars(OutboxStoreSuite) if name.startswith("test_"))
Enqueuing = Callable[..., None]


def opening(
    directory: Path,
    make: Callable[[Database], SqliteOutboxStore] = SqliteOutboxStore,
    enqueuing: Enqueuing = enqueue_blocking,
    withdrawing: Callable[..., int] = withdraw_blocking,
) -> Opening:
    @asynccontextmanager
    async def opens() -> AsyncIterator[OpenOutbox]:
        async with open_memory(directory) as database:

            async def enqueue(deliveries: Sequence[NewDelivery], now: datetime) -> None:
                await database.write(partial(enqueuing, deliveries=deliveries, now=now))

            async def withdraw(item_id: str) -> int:
                return await database.write(partial(withdrawing, item_id=item_id))

            yield OpenOutbox(store=make(database), enqueue=enqueue, withdraw=withdraw)

    return opens


class TestSqliteOutbox(OutboxStoreSuite):
    @pytest.fixture
    def opens(self, tmp_path: Path) -> Opening:
        return opening(tmp_path)


class LeasingNothing(SqliteOutboxStore):
    async def due(
        self, backend: str, now: datetime, *, limit: int, until: datetime
    ) -> Sequence[Delivery]:
        return await super().due(backend, now, limit=limit, until=now)


class ReleasingNothing(SqliteOutboxStore):
    async def release(self, backend: str, now: datetime) -> None:
        pass


class ForgettingLinks(SqliteOutboxStore):
    async def delivered(
        self, delivery: Delivery, links: Sequence[Link] | None, now: datetime
    ) -> None:
        await super().delivered(delivery, () if links is None else links, now)


class ForgettingWhatWasBegun(SqliteOutboxStore):
    async def begun(self, delivery: Delivery, links: Sequence[Link]) -> None:
        pass


class NeverDead(SqliteOutboxStore):
    async def failed(
        self, delivery: Delivery, error: str, now: datetime, *, due_at: datetime | None
    ) -> None:
        await super().failed(delivery, error, now, due_at=due_at or now)


class CountingWhatIsGivenBack(SqliteOutboxStore):
    async def postpone(self, delivery: Delivery, *, due_at: datetime) -> None:
        await super().failed(delivery, "given back", due_at, due_at=due_at)


class ShowingAll(SqliteOutboxStore):
    async def page(self, owner_id: str, status: Any, **rest: Any) -> Sequence[Delivery]:
        others = await super().page("bob", status, **rest)
        return [*others, *await super().page(owner_id, status, **rest)]


class RetryingForAnybody(SqliteOutboxStore):
    async def retry(self, delivery_id: int, owner_id: str, now: datetime) -> Delivery | None:
        mine = await super().retry(delivery_id, owner_id, now)
        return mine or await super().retry(delivery_id, "bob", now)


class WithoutLag(SqliteOutboxStore):
    async def lag_s(self, backend: str, now: datetime) -> float:
        return 0.0


class DueAtOnce(SqliteOutboxStore):
    async def next_due_at(self, backend: str) -> datetime | None:
        row = await self._database.row("SELECT min(created_at) AS at FROM outbox")
        return None if row is None or row["at"] is None else datetime.fromisoformat(row["at"])


def enqueue_keeping_old(connection: Any, deliveries: Sequence[NewDelivery], now: datetime) -> None:
    for delivery in deliveries:
        connection.execute(
            "INSERT OR IGNORE INTO outbox (backend, operation, item_id, owner_id, revision,"
            " idempotency_key, status, due_at, created_at)"
            " VALUES (?, ?, ?, ?, ?, ?, 'pending', ?, ?)",
            (
                delivery.backend,
                delivery.operation,
                delivery.item_id,
                delivery.owner_id,
                delivery.revision,
                delivery.idempotency_key,
                now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            ),
        )


def enqueue_again(connection: Any, deliveries: Sequence[NewDelivery], now: datetime) -> None:
    for delivery in deliveries:
        connection.execute(
            "DELETE FROM outbox WHERE idempotency_key = ?", (delivery.idempotency_key,)
        )
    enqueue_blocking(connection, deliveries, now)


def withdraw_all(connection: Any, item_id: str) -> int:
    return int(connection.execute("DELETE FROM outbox WHERE item_id = ?", (item_id,)).rowcount)


WRONG: dict[str, dict[str, Any]] = {
    entry.__name__: {"make": entry}
    for entry in (
        LeasingNothing,
        ReleasingNothing,
        ForgettingLinks,
        ForgettingWhatWasBegun,
        NeverDead,
        CountingWhatIsGivenBack,
        ShowingAll,
        RetryingForAnybody,
        WithoutLag,
        DueAtOnce,
    )
} | {
    "keeping old revisions": {"enqueuing": enqueue_keeping_old},
    "delivering again": {"enqueuing": enqueue_again},
    "withdrawing all": {"withdrawing": withdraw_all},
}


@pytest.mark.parametrize("name", WRONG)
async def test_the_suite_catches_a_wrong_outbox(name: str, tmp_path: Path) -> None:
    for test in TESTS:
        directory = tmp_path / test
        directory.mkdir()
        try:
            await run_test(getattr(OutboxStoreSuite(), test), opening(directory, **WRONG[name]))
        except FAILURES:
            return
    pytest.fail("no test of the suite failed")


def test_the_suite_asks_for_nothing_but_the_outbox() -> None:
    for test in TESTS:
        _, *given = inspect.signature(getattr(OutboxStoreSuite, test)).parameters
        assert given in (["opens"], ["opened"])
