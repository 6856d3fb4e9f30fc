"""What every outbox must do.

`OutboxStoreSuite` holds one test for each contract of `memory.outbox.delivery.OutboxStore`. A
subclass supplies the fixture `opens` and nothing else. Needs pytest and pytest-asyncio; nothing
that serves imports it.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from memory.items.scope import WORKSPACE_OWNER
from memory.outbox.delivery import Delivery, Link, NewDelivery
from memory.outbox.store import SqlOutboxStore
from tests.conformance.suites.opened import OpenedSuite

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
LEASE = timedelta(minutes=3)
ERROR = "支付后端没有回答 (it did not answer); '); DROP TABLE outbox; --"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenOutbox:
    """An open outbox, and what is enqueued within other transactions."""

    store: SqlOutboxStore
    enqueue: Callable[[Sequence[NewDelivery], datetime], Awaitable[None]]


Opening = Callable[[], AbstractAsyncContextManager[OpenOutbox]]


def delivery(item_id: str = "epi_1", revision: int = 1, **fields: Any) -> NewDelivery:
    """Make a `put` of Ann's to the backend `memu`."""
    given: dict[str, Any] = {"backend": "memu", "operation": "put", "owner_id": "ann"} | fields
    return NewDelivery(item_id=item_id, revision=revision, **given)


def link(item_id: str = "epi_1", remote_id: str = "r1", backend: str = "memu") -> Link:
    """Make a link to a file of a backend's."""
    return Link(item_id=item_id, backend=backend, remote_kind="file", remote_id=remote_id)


async def take(outbox: OpenOutbox, now: datetime = AT, limit: int = 10) -> Sequence[Delivery]:
    """Lease what is due of the backend `memu`."""
    return await outbox.store.due("memu", now, limit=limit, until=now + LEASE)


async def taken(outbox: OpenOutbox, item_id: str = "epi_1") -> Delivery:
    """Enqueue a delivery, and lease it."""
    await outbox.enqueue([delivery(item_id)], AT)
    (one,) = await take(outbox)
    return one


async def keys(outbox: OpenOutbox, status: Any = None, owner: str = "ann") -> list[str]:
    """List an owner's deliveries by their keys, newest first."""
    page = await outbox.store.page(owner, status, limit=100)
    return [entry.idempotency_key for entry in page]


class OutboxStoreSuite(OpenedSuite):
    """One test a contract."""

    async def test_what_was_enqueued_is_there_whole_after_a_restart(self, opens: Opening) -> None:
        async with opens() as opened:
            await opened.enqueue([delivery("epi_长", 7)], AT)
        async with opens() as opened:
            (one,) = await take(opened)
        assert one == Delivery(
            id=one.id,
            backend="memu",
            operation="put",
            item_id="epi_长",
            owner_id="ann",
            revision=7,
            idempotency_key="memu:put:epi_长:7",
            status="pending",
            attempts=0,
            last_error=None,
            due_at=AT,
            created_at=AT,
        )

    async def test_the_same_delivery_twice_is_one(self, opened: OpenOutbox) -> None:
        await opened.enqueue([delivery(), delivery()], AT)
        await opened.enqueue([delivery()], AT + LEASE)
        (one,) = await take(opened)
        await opened.store.delivered(one, [], AT)
        await opened.enqueue([delivery()], AT)
        assert await take(opened, AT + LEASE) == []
        assert len(await keys(opened)) == 1

    async def test_a_newer_revision_takes_the_place_of_what_waits(self, opened: OpenOutbox) -> None:
        await opened.enqueue([delivery(), delivery(backend="vectors"), delivery("epi_2")], AT)
        await opened.enqueue([delivery(revision=2)], AT)
        assert await keys(opened) == [
            "memu:put:epi_1:2",
            "memu:put:epi_2:1",
            "vectors:put:epi_1:1",
        ]

    async def test_forgetting_withdraws_every_put_that_was_not_made(
        self, opened: OpenOutbox
    ) -> None:
        await opened.enqueue([delivery(revision=3), delivery("epi_2")], AT)
        await opened.enqueue([delivery(revision=2, operation="forget")], AT)
        assert await keys(opened) == ["memu:forget:epi_1:2", "memu:put:epi_2:1"]

    async def test_due_ones_come_oldest_first_to_one_taker_alone(self, opened: OpenOutbox) -> None:
        for minute, name in enumerate("abcd"):
            await opened.enqueue([delivery(name)], AT + timedelta(minutes=minute))
        now = AT + timedelta(minutes=2)
        assert [entry.item_id for entry in await take(opened, now, 2)] == ["a", "b"]
        assert [entry.item_id for entry in await take(opened, now, 2)] == ["c"]
        assert await take(opened, now) == []
        assert [entry.item_id for entry in await take(opened, AT + timedelta(minutes=3))] == ["d"]

    async def test_a_lease_that_ran_out_gives_the_same_delivery_again(self, opens: Opening) -> None:
        async with opens() as opened:
            await opened.enqueue([delivery()], AT)
            (first,) = await take(opened)
        async with opens() as opened:
            assert await take(opened, AT + LEASE - timedelta(milliseconds=1)) == []
            (again,) = await take(opened, AT + LEASE)
            assert again.idempotency_key == first.idempotency_key
            assert again.attempts == 0

    async def test_what_a_taker_that_is_gone_had_is_released_and_what_failed_waits_on(
        self, opened: OpenOutbox
    ) -> None:
        later = AT + timedelta(seconds=1)
        others = delivery("epi_3", backend="vectors")
        await opened.enqueue([delivery("epi_1"), delivery("epi_2"), others], AT)
        (_, failed) = await take(opened)
        await opened.store.due("vectors", AT, limit=1, until=AT + LEASE)
        await opened.store.failed(failed, ERROR, AT, due_at=AT + LEASE)
        await opened.store.release("memu", later, latest=AT + LEASE)
        assert [entry.item_id for entry in await take(opened, later)] == ["epi_1"]
        assert not await opened.store.due("vectors", later, limit=1, until=later + LEASE)
        await opened.store.release("memu", later, latest=later)
        assert "epi_2" in [entry.item_id for entry in await take(opened, later)]

    async def test_backends_do_not_see_each_others_deliveries(self, opened: OpenOutbox) -> None:
        await opened.enqueue([delivery(backend="vectors")], AT)
        assert await take(opened) == []
        assert await opened.store.next_due_at("memu") is None
        assert await opened.store.lag_s("memu", AT + LEASE) == 0
        assert await opened.store.next_due_at("vectors") == AT

    async def test_a_success_is_noted_with_what_came_of_it(self, opened: OpenOutbox) -> None:
        one = await taken(opened)
        await opened.store.delivered(one, [link(), link(remote_id="长")], AT + LEASE)
        assert list(await opened.store.links_of("epi_1")) == [link(), link(remote_id="长")]
        (made,) = await opened.store.page("ann", "delivered", limit=10)
        assert (made.delivered_at, made.attempts) == (AT + LEASE, 1)
        assert await take(opened, AT + LEASE) == []

    async def test_what_came_of_a_newer_one_takes_the_place_of_the_old_at_that_backend(
        self, opened: OpenOutbox
    ) -> None:
        await opened.enqueue([delivery(), delivery(revision=2), delivery("epi_2")], AT)
        second, other = await take(opened)
        await opened.store.delivered(second, [link(remote_id="old")], AT)
        await opened.store.delivered(other, [link("epi_2")], AT)
        await opened.store.delivered(second, [link(remote_id="new")], AT)
        assert list(await opened.store.links_of("epi_1")) == [link(remote_id="new")]
        await opened.store.delivered(second, None, AT)
        assert list(await opened.store.links_of("epi_1")) == [link(remote_id="new")]
        await opened.store.delivered(second, [], AT)
        assert list(await opened.store.links_of("epi_1")) == []
        assert list(await opened.store.links_of("epi_2")) == [link("epi_2")]

    async def test_what_was_begun_is_known_after_a_restart_and_waits_on(
        self, opens: Opening
    ) -> None:
        async with opens() as opened:
            await opened.enqueue([delivery(), delivery("epi_2")], AT)
            one, other = await take(opened)
            await opened.store.delivered(other, [link("epi_2")], AT)
            await opened.store.begun(one, [link(remote_id="old"), link(remote_id="任务")])
            await opened.store.begun(one, [link(remote_id="任务")])
        async with opens() as opened:
            assert list(await opened.store.links_of("epi_1")) == [link(remote_id="任务")]
            assert list(await opened.store.links_of("epi_2")) == [link("epi_2")]
            (again,) = await take(opened, AT + LEASE)
            assert (again.id, again.status, again.attempts) == (one.id, "pending", 0)
            await opened.store.delivered(again, [link()], AT)
            assert list(await opened.store.links_of("epi_1")) == [link()]

    async def test_what_was_begun_or_made_of_a_withdrawn_one_is_known_so_that_it_can_be_forgotten(
        self, opened: OpenOutbox
    ) -> None:
        notes: dict[str, Callable[..., Awaitable[None]]] = {
            "begun": opened.store.begun,
            "made": partial(opened.store.delivered, now=AT),
        }
        for name, note in notes.items():
            one = await taken(opened, name)
            await opened.enqueue([delivery(name, revision=2, operation="forget")], AT + LEASE)
            await note(one, [link(name)])
            assert list(await opened.store.links_of(name)) == [link(name)], name
            assert (await keys(opened))[0] == f"memu:forget:{name}:2"
            assert f"memu:put:{name}:1" not in await keys(opened)

    async def test_a_failure_waits_with_its_reason_and_its_attempt_and_leaves_what_was_begun(
        self, opened: OpenOutbox
    ) -> None:
        one = await taken(opened)
        await opened.store.begun(one, [link()])
        await opened.store.failed(one, ERROR, AT, due_at=AT + LEASE)
        assert list(await opened.store.links_of("epi_1")) == [link()]
        assert await opened.store.next_due_at("memu") == AT + LEASE
        assert await take(opened, AT + LEASE - timedelta(milliseconds=1)) == []
        (again,) = await take(opened, AT + LEASE)
        assert (again.attempts, again.last_error, again.status) == (1, ERROR, "pending")

    async def test_a_dead_one_is_listed_and_never_due(self, opened: OpenOutbox) -> None:
        one = await taken(opened)
        await opened.store.failed(one, ERROR, AT, due_at=None)
        assert await take(opened, AT + 100 * LEASE) == []
        assert await opened.store.next_due_at("memu") is None
        (dead,) = await opened.store.page("ann", "dead", limit=10)
        assert (dead.status, dead.attempts, dead.last_error) == ("dead", 1, ERROR)

    async def test_a_failure_of_what_was_made_or_withdrawn_changes_nothing(
        self, opened: OpenOutbox
    ) -> None:
        one = await taken(opened)
        await opened.store.delivered(one, [], AT)
        await opened.store.failed(one, ERROR, AT, due_at=AT)
        await opened.store.postpone(one, due_at=AT)
        assert await take(opened, AT + LEASE) == []
        assert await keys(opened, "delivered") == ["memu:put:epi_1:1"]

    async def test_what_is_given_back_costs_no_attempt(self, opened: OpenOutbox) -> None:
        one = await taken(opened)
        await opened.store.postpone(one, due_at=AT + timedelta(seconds=1))
        (again,) = await take(opened, AT + timedelta(seconds=1))
        assert (again.attempts, again.last_error) == (0, None)

    async def test_retrying_makes_a_dead_or_waiting_one_due_and_forgets_its_attempts(
        self, opened: OpenOutbox
    ) -> None:
        await opened.enqueue([delivery("dead"), delivery("waits")], AT)
        for entry in await take(opened):
            due_at = None if entry.item_id == "dead" else AT + 100 * LEASE
            await opened.store.failed(entry, ERROR, AT, due_at=due_at)
        for entry in await opened.store.page("ann", None, limit=10):
            again = await opened.store.retry(entry.id, "ann", AT + LEASE)
            assert again is not None
            assert (again.status, again.attempts, again.due_at) == ("pending", 0, AT + LEASE)
        due = await take(opened, AT + LEASE)
        assert [entry.item_id for entry in due] == ["dead", "waits"]

    async def test_a_delivered_one_is_not_made_again_by_retrying(self, opened: OpenOutbox) -> None:
        one = await taken(opened)
        await opened.store.delivered(one, [], AT)
        again = await opened.store.retry(one.id, "ann", AT)
        assert again is not None
        assert again.status == "delivered"
        assert await take(opened, AT + LEASE) == []

    async def test_nobody_lists_or_retries_what_is_another_owners(self, opened: OpenOutbox) -> None:
        await opened.enqueue([delivery(), delivery("epi_2", owner_id="bob")], AT)
        (mine, theirs) = await take(opened)
        await opened.store.failed(theirs, ERROR, AT, due_at=None)
        assert await keys(opened) == [mine.idempotency_key]
        assert await opened.store.retry(theirs.id, "ann", AT) is None
        assert await opened.store.retry(10**9, "ann", AT) is None
        assert await keys(opened, "dead", "bob") == [theirs.idempotency_key]

    async def test_what_is_the_workspaces_everybody_lists_and_retries(
        self, opened: OpenOutbox
    ) -> None:
        await opened.enqueue([delivery("not_1", owner_id=WORKSPACE_OWNER), delivery()], AT)
        (note, mine) = await take(opened)
        await opened.store.failed(note, ERROR, AT, due_at=None)
        assert await keys(opened) == [mine.idempotency_key, note.idempotency_key]
        assert await keys(opened, None, "bob") == [note.idempotency_key]
        again = await opened.store.retry(note.id, "bob", AT)
        assert again is not None
        assert (again.item_id, again.status) == ("not_1", "pending")

    async def test_pages_follow_each_other_newest_first(self, opened: OpenOutbox) -> None:
        await opened.enqueue([delivery(f"epi_{n}") for n in range(5)], AT)
        seen: list[str] = []
        before: int | None = None
        while page := await opened.store.page("ann", "pending", limit=2, before_id=before):
            seen += [entry.item_id for entry in page]
            before = page[-1].id
        assert seen == ["epi_4", "epi_3", "epi_2", "epi_1", "epi_0"]

    async def test_the_lag_is_the_age_of_the_oldest_that_waits(self, opened: OpenOutbox) -> None:
        await opened.enqueue([delivery("old")], AT)
        await opened.enqueue([delivery("new")], AT + timedelta(seconds=90))
        now = AT + timedelta(seconds=100)
        assert await opened.store.lag_s("memu", now) == 100
        (old,) = await take(opened, AT)
        assert await opened.store.lag_s("memu", now) == 100, "it is not made yet"
        await opened.store.delivered(old, [], now)
        assert await opened.store.lag_s("memu", now) == 10
        assert await opened.store.lag_s("memu", AT) == 0
