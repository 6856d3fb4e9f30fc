"""What stores must do when two programs use one database at the same time."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import pytest

from gateway.conversations.model import Quota, Turn, TurnEvent, UserDay
from gateway.conversations.schedules import Schedule
from gateway.conversations.store import IdempotencyKey, QuotaReached
from memory.errors import StoreConflict
from tests.conformance.suites.approvals import answer_to, approval
from tests.conformance.suites.beside_turns import add_webhook
from tests.conformance.suites.conversation_values import (
    ANN,
    AT,
    WAIT_S,
    OpenStores,
    Stores,
    at,
    conversation,
    ended,
    event,
    turn,
)
from tests.conformance.suites.schedules import schedule

REFUSED = (StoreConflict, QuotaReached)
Rivals = list[Stores]


class RivalStoresSuite:
    """The contracts of all stores, on two sets of them. A subclass supplies the fixture `opens`."""

    @pytest.fixture
    async def rivals(self, opens: OpenStores) -> AsyncIterator[Rivals]:
        """Return stores that know nothing of each other; the conversation `cnv_a` is there."""
        async with opens() as one, opens() as other:
            await one.conversations.create(conversation())
            yield [one, other]

    async def test_turns_share_the_numbers_of_their_conversation(self, rivals: Rivals) -> None:
        async def accept(stores: Stores, name: str) -> int:
            return (await stores.turns.accept(turn(name))).seq

        assert sorted(await at_once(rivals, accept, count=8)) == list(range(1, 17))
        found = await rivals[0].conversations.get(conversation().id, ANN)
        assert found is not None
        assert found.turns == 16

    async def test_a_key_is_taken_once(self, rivals: Rivals) -> None:
        key = IdempotencyKey(key="k", request_hash="h")

        async def accept(stores: Stores, name: str) -> Turn:
            return await stores.turns.accept(turn(name, name), create=conversation(name), key=key)

        (taken,) = await at_once(rivals, accept)
        known = await rivals[1].turns.find_key(ANN, "k")
        assert known is not None
        assert known.turn_id == taken.id
        assert await rivals[0].conversations.count() == 2

    async def test_a_key_is_taken_or_withdrawn(self, rivals: Rivals) -> None:
        results: list[str] = []

        async def accept(name: str) -> None:
            key = IdempotencyKey(key=name, request_hash="h")
            new = turn(name, name)
            await rivals[0].turns.accept(new, create=conversation(name), key=key)
            results.append(name)

        async def withdraw(name: str) -> None:
            await rivals[1].turns.withdraw_key(ANN, name, AT)
            results.append(name)

        async def run(work: Callable[[str], Awaitable[None]], name: str) -> None:
            with suppress(StoreConflict):
                await work(name)

        names = [f"k{number}" for number in range(8)]
        async with anyio.create_task_group() as tasks:
            for name in names:
                for work in (accept, withdraw):
                    tasks.start_soon(run, work, name)
        assert sorted(results) == names
        for name in names:
            known = await rivals[0].turns.find_key(ANN, name)
            assert known is not None
            assert bool(known.turn_id) == (await rivals[1].turns.get(turn(name).id) is not None)

    async def test_a_quota_is_shared(self, rivals: Rivals) -> None:
        async def accept(stores: Stores, name: str, *, quota: Quota) -> Turn:
            return await stores.turns.accept(turn(f"{quota.daily_turns}-{name}"), quota=quota)

        assert len(await at_once(rivals, partial(accept, quota=Quota(running_turns=3)))) == 3
        assert len(await at_once(rivals, partial(accept, quota=Quota(daily_turns=5)))) == 2
        assert await rivals[0].turns.count_unfinished(ANN) == 5
        assert await rivals[1].turns.used_on(ANN, AT.date()) == UserDay(turns=5)

    async def test_what_a_turn_cost_counts_once(self, rivals: Rivals) -> None:
        one = await rivals[0].turns.accept(turn())

        async def finish(stores: Stores, _: str) -> None:
            await stores.turns.finish([ended(one, result={"cost_usd": 0.5})], [])

        await at_once(rivals, finish)
        assert await rivals[1].turns.used_on(ANN, AT.date()) == UserDay(turns=1, cost_usd=0.5)

    async def test_an_approval_is_answered_once(self, rivals: Rivals) -> None:
        one = await rivals[0].turns.accept(turn())
        for n in range(4):
            asked = approval(str(n), one)
            await rivals[0].approvals.add(asked)
            answer = answer_to(asked)

            async def give(stores: Stores, _: str, answer: Any = answer) -> bool:
                return await stores.approvals.answer(answer)

            assert sorted(await at_once(rivals, give, count=2)) == [False, False, False, True]

    async def test_a_place_in_the_order_is_given_once(self, rivals: Rivals) -> None:
        """The same event may be stored by both."""
        turns = [await rivals[0].turns.accept(turn(name)) for name in ("a1", "a2")]

        async def append(stores: Stores, name: str, events: dict[str, TurnEvent]) -> str:
            await stores.events.append([events[name]])
            return name

        for n in range(1, 9):
            same = event(2 * n, turns[0], n)
            stored = await at_once(rivals, partial(append, events={"0": same, "1": same}), count=1)
            assert sorted(stored) == ["0", "1"]
            clashing = {str(name): event(2 * n + 1, one, 9 + n) for name, one in enumerate(turns)}
            assert len(await at_once(rivals, partial(append, events=clashing), count=1)) == 1
        found = await rivals[1].events.after(conversation().id, 0, limit=99)
        assert [stored.seq for stored in found] == list(range(2, 18))

    async def test_there_are_no_more_schedules_than_the_limit(self, rivals: Rivals) -> None:
        async def add(stores: Stores, name: str) -> bool:
            return await stores.schedules.add(schedule(name), limit=3)

        assert sum(await at_once(rivals, add)) == 3
        assert len(await rivals[1].schedules.listed(ANN)) == 3

    async def test_of_changes_to_the_same_schedule_one_is_stored(self, rivals: Rivals) -> None:
        assert await rivals[0].schedules.add(schedule("a"), limit=3)
        for _ in range(4):
            (read,) = await rivals[0].schedules.listed(ANN)

            async def put(stores: Stores, name: str, read: Schedule = read) -> str | None:
                changed = replace(read, name=name)
                return name if await stores.schedules.put(changed) else None

            (stored,) = set(await at_once(rivals, put, count=2)) - {None}
            (found,) = await rivals[1].schedules.listed(ANN)
            assert (found.name, found.revision) == (stored, read.revision + 1)

    async def test_a_delivery_is_leased_once(self, rivals: Rivals) -> None:
        webhook = await add_webhook(rivals[0])
        for n in range(8):
            await rivals[0].conversations.create(conversation(str(n)))

        async def lease(stores: Stores, _: str) -> list[int]:
            due = await stores.webhooks.due(webhook.id, at(1), limit=1, until=at(9))
            return [delivery.seq for delivery in due]

        leased = [seq for seqs in await at_once(rivals, lease, count=5) for seq in seqs]
        assert len(leased) == len(set(leased)) == 8

    async def test_a_deletion_leaves_nothing_of_what_is_written_meanwhile(
        self, rivals: Rivals
    ) -> None:
        for n in range(5):
            name = f"d{n}"
            one = await rivals[0].turns.accept(turn(name, name), create=conversation(name))

            async def run(stores: Stores, _: str, one: Turn = one, of: str = name) -> None:
                if stores is rivals[0]:
                    await stores.conversations.delete(one.conversation_id, AT)
                else:
                    await stores.turns.finish([ended(one)], [event(1, one, 1)])
                    await stores.turns.accept(turn(f"{of}-2", of))

            await at_once(rivals, run, count=1)
            for stores in rivals:
                assert await stores.turns.get(one.id) is None
                assert await stores.events.after(one.conversation_id, 0, limit=9) == []
                assert await stores.turns.history(one.conversation_id, limit=9) == []
        assert await rivals[0].turns.count_unfinished(ANN) == 0


async def at_once(
    rivals: Rivals, work: Callable[[Stores, str], Awaitable[Any]], *, count: int = 4
) -> list[Any]:
    """Do some work `count` times on each of the rivals, all at once, each time with another name.

    Return what was returned where it was not refused.
    """
    done: list[Any] = []

    async def run(stores: Stores, name: str) -> None:
        with suppress(*REFUSED):
            done.append(await work(stores, name))

    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            for number in range(count):
                for place, stores in enumerate(rivals):
                    tasks.start_soon(run, stores, str(2 * number + place))
    return done
