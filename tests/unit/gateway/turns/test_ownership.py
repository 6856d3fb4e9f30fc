"""A server that keeps its conversations by its heart, and lets go of them in time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from gateway.conversations.leases import Beat, Lease, Node
from gateway.conversations.sql.leases import LeaseStore
from gateway.ids import ConversationId, NodeId
from gateway.turns.ownership import Heart, Ownership
from memory.errors import StoreUnavailable
from tests.conformance.suites.conversation_values import Stores, conversation, turn
from tests.support.stores import open_file, stores_on

HERE = Node(id=NodeId("here"), incarnation="1")
LONG_S = 60
SOON = Heart(ttl_s=LONG_S + 0.3, beat_s=0.02, margin_s=LONG_S)
"""It lets go soon, and long before others may take."""
QUICK = Heart(ttl_s=0.3, beat_s=0.02, margin_s=0.1)
A = ConversationId("cnv_a")


class Failing(LeaseStore):
    """Stores no beat while it is told to fail."""

    fails = False

    async def beat(self, node: Node, *, ttl_ms: int) -> Beat:
        if self.fails:
            raise StoreUnavailable("The database cannot be reached.")
        return await super().beat(node, ttl_ms=ttl_ms)


@asynccontextmanager
async def holding(
    directory: Path, heart: Heart, *, is_shared: bool
) -> AsyncIterator[tuple[Ownership, Failing, Stores, anyio.Event]]:
    """Yield a server that holds `A` while its heart beats, and what is set when it lost that."""
    async with open_file(directory) as database:
        stores, leases, lost = stores_on(database), Failing(database), anyio.Event()
        await stores.conversations.create(conversation())
        ownership = Ownership(leases, HERE, is_shared=is_shared, heart=heart)
        ownership.on_lost = lambda _: lost.set()
        await ownership.begin()
        assert await ownership.hold(A) == 1
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ownership.run)
                yield ownership, leases, stores, lost
                tasks.cancel_scope.cancel()


async def test_what_an_older_epoch_may_not_write_ends_nothing_of_a_newer_one(
    tmp_path: Path,
) -> None:
    """An agent that was let go of may still write when its server holds the conversation again."""
    async with holding(tmp_path, QUICK, is_shared=False) as (ownership, _, _, lost):
        ownership.lose_epoch(A, 0)
        assert not lost.is_set()
        ownership.lose_epoch(A, 1)
        assert lost.is_set()


async def test_a_server_whose_beats_fail_lets_go_before_another_one_may_take(
    tmp_path: Path,
) -> None:
    async with holding(tmp_path, SOON, is_shared=True) as (_, leases, _, lost):
        leases.fails = True
        await lost.wait()
        assert await leases.holder(A) == HERE


async def test_a_server_whose_start_took_longer_than_a_beat_lets_go_of_nothing(
    tmp_path: Path,
) -> None:
    async with open_file(tmp_path) as database:
        ownership = Ownership(Failing(database), HERE, is_shared=True)
        await ownership.begin()
        ownership._lets_go_at_s = 0  # noqa: SLF001  as a long start leaves it
        let_go = anyio.Event()
        ownership.let_go = let_go.set  # type: ignore[method-assign]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ownership.run)
            await ownership._beaten.wait()  # noqa: SLF001
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        assert not let_go.is_set()


async def test_another_server_lives_while_it_is_looked_at_and_while_nothing_can_be_read(
    tmp_path: Path,
) -> None:
    """Streams that it answers would be cut otherwise."""
    rival = Node(id=NodeId("rival"), incarnation="2", process="place 1 2.0")
    lived: list[bool] = []

    async def look(_: str) -> bool:  # noqa: RUF029  as a `HasEnded`
        lived.append(ownership.is_living(rival))
        return False

    async with open_file(tmp_path) as database:
        leases = Failing(database)
        ownership = Ownership(leases, HERE, is_shared=True, has_ended=look)
        await ownership.begin()
        await leases.join(rival, ttl_ms=3_600_000)
        for _ in range(2):
            await ownership.beat()
        assert lived == [False, True]
        await database.close()
        with pytest.raises(StoreUnavailable):
            await ownership._follow()  # noqa: SLF001
        assert ownership.is_living(rival)


async def test_what_was_let_go_is_taken_with_another_epoch_when_the_heart_beats_again(
    tmp_path: Path,
) -> None:
    async with holding(tmp_path, SOON, is_shared=True) as (ownership, leases, stores, lost):
        await stores.turns.accept(turn("1", epoch=1))
        leases.fails = True
        await lost.wait()
        leases.fails = False
        while [lease.epoch for lease in await leases.held(HERE)] != [2]:  # noqa: ASYNC110
            await anyio.sleep(0.01)
        assert await ownership.hold(A) == 2


@pytest.mark.parametrize("by_another", [False, True])
async def test_what_was_let_go_is_recovered_as_that_unless_another_server_had_it(
    tmp_path: Path, *, by_another: bool
) -> None:
    recovered: list[bool] = []

    class Noting:
        async def recover(self, _: Lease, *, was_let_go: bool) -> None:
            recovered.append(was_let_go)

        async def recover_all(self, *_: object) -> None:
            """Nothing was left."""

    async with open_file(tmp_path) as database:
        stores, leases = stores_on(database), LeaseStore(database)
        await stores.conversations.create(conversation())
        ownership, rival = Ownership(leases, HERE), Node(id=NodeId("rival"), incarnation="1")
        await ownership.begin()
        await ownership.start(Noting())
        await ownership.hold(A)
        ownership.let_go()
        await leases.release(HERE, A)
        if by_another:
            await leases.join(rival, ttl_ms=60_000)
            assert await leases.take(rival, A)
            await leases.leave(rival)
        await ownership.hold(A)
    assert recovered == [False, not by_another]


async def test_what_was_let_go_is_still_recovered_as_that_when_the_first_try_failed(
    tmp_path: Path,
) -> None:
    recovered: list[bool] = []

    class FailingOnce:
        async def recover(self, _: Lease, *, was_let_go: bool) -> None:
            recovered.append(was_let_go)
            if len(recovered) == 1:
                raise StoreUnavailable("The database cannot be reached.")

        async def recover_all(self, *_: object) -> None:
            """Nothing was left."""

    async with open_file(tmp_path) as database:
        stores, leases = stores_on(database), LeaseStore(database)
        await stores.conversations.create(conversation())
        ownership = Ownership(leases, HERE)
        await ownership.begin()
        assert await ownership.hold(A) == 1
        await ownership.start(FailingOnce())
        await stores.turns.accept(turn("1", state="running", epoch=1))
        ownership.let_go()
        with pytest.raises(StoreUnavailable):
            await ownership.beat()
        await ownership.beat()
        assert ownership.holds(A)
    assert recovered == [True, True]


class Slow:
    """Recovers when it is told to."""

    def __init__(self) -> None:
        self.begun, self.may_end = anyio.Event(), anyio.Event()

    async def recover(self, _: Lease, *, was_let_go: bool) -> None:
        self.begun.set()
        await self.may_end.wait()

    async def recover_all(self, *_: object) -> None:
        """Nothing was left."""


@asynccontextmanager
async def recovering(directory: Path) -> AsyncIterator[tuple[Ownership, Failing, Slow]]:
    """Yield a server that holds `B` and recovers `A` while its heart beats."""
    recovery, b = Slow(), ConversationId("cnv_b")
    async with open_file(directory) as database:
        stores, leases = stores_on(database), Failing(database)
        for name in ("a", "b"):
            await stores.conversations.create(conversation(name))
        ownership = Ownership(leases, HERE, is_shared=True, heart=Heart(beat_s=0.02))
        await ownership.begin()
        await ownership.hold(b)
        await ownership.start(recovery)
        await stores.turns.accept(turn("1", epoch=0))
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ownership.run)
                await recovery.begun.wait()
                yield ownership, leases, recovery
                tasks.cancel_scope.cancel()


async def test_the_heart_beats_while_what_a_dead_server_held_is_recovered(tmp_path: Path) -> None:
    async with recovering(tmp_path) as (ownership, _, recovery):
        for _ in range(3):
            await ownership._beaten.wait()  # noqa: SLF001
        recovery.may_end.set()
        assert await ownership.hold(A) == 1


async def test_what_was_let_go_in_a_recovery_is_released_after_it(tmp_path: Path) -> None:
    async with recovering(tmp_path) as (ownership, leases, recovery):
        ownership.let_go()
        recovery.may_end.set()
        while [lease.conversation_id for lease in await leases.held(HERE)] != [A]:  # noqa: ASYNC110
            await anyio.sleep(0.01)


async def test_the_one_server_of_a_database_goes_on_while_its_beats_fail(tmp_path: Path) -> None:
    async with holding(tmp_path, QUICK, is_shared=False) as (ownership, leases, _, lost):
        leases.fails = True
        while await leases.holder(A) is not None:  # noqa: ASYNC110  the time of the database
            await anyio.sleep(0.01)
        leases.fails = False
        while await leases.holder(A) is None:  # noqa: ASYNC110  the time of the database
            await anyio.sleep(0.01)
        assert await ownership.hold(A) == 1
        assert not lost.is_set()


async def test_a_conversation_that_is_being_created_is_not_let_go(tmp_path: Path) -> None:
    async with open_file(tmp_path) as database:
        stores, leases = stores_on(database), LeaseStore(database)
        await stores.conversations.create(conversation())
        ownership = Ownership(leases, HERE, heart=Heart(ttl_s=0))
        await ownership.begin()
        with ownership.creating(A):
            await leases.take(HERE, A)
            await ownership.beat()
            assert await leases.held(HERE)
        await ownership.beat()
        assert not await leases.held(HERE)


async def test_a_conversation_that_is_not_used_is_left_to_whichever_server_gets_a_message(
    tmp_path: Path,
) -> None:
    used = True
    heart = Heart(ttl_s=LONG_S, beat_s=0.01, margin_s=0, unused_s=0.05)
    async with holding(tmp_path, heart, is_shared=True) as (ownership, leases, _, lost):
        ownership.is_used = lambda _: used
        await anyio.sleep(0.2)
        assert await leases.holder(A) == HERE
        used = False
        while await leases.holder(A) is not None:  # noqa: ASYNC110  nothing tells
            await anyio.sleep(0.01)
        assert not ownership.holds(A)
        assert not lost.is_set()
        assert await ownership.hold(A) == 2


async def test_a_conversation_that_is_used_again_while_others_are_taken_is_kept(
    tmp_path: Path,
) -> None:
    """Its turn would be another server's while it runs here."""
    async with open_file(tmp_path) as database:
        stores, leases = stores_on(database), LeaseStore(database)
        await stores.conversations.create(conversation())
        ownership = Ownership(leases, HERE, is_shared=True, heart=Heart(unused_s=0))
        ownership.is_used = lambda _: False
        await ownership.begin()
        assert await ownership.hold(A) == 1
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks, ownership._taking:  # noqa: SLF001
                tasks.start_soon(ownership._let_unused_go)  # noqa: SLF001
                await anyio.wait_all_tasks_blocked()
                assert await ownership.hold(A) == 1
        assert ownership.holds(A)
        assert await leases.holder(A) == HERE
