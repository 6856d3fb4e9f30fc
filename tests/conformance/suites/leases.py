"""What every store of nodes and leases must do, with two nodes that each have their own connection."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio
import pytest

from gateway.conversations.leases import Lease, LeaseLost, Node
from gateway.conversations.model import Turn
from gateway.ids import ApprovalId, ConversationId, NodeId
from tests.conformance.suites.approvals import answer_to, approval
from tests.conformance.suites.conversation_values import (
    ANN,
    AT,
    OpenStores,
    Stores,
    StoresSuite,
    conversation,
    ended,
    event,
    last_event,
    turn,
)

LONG_MS, OVER_MS = 3_600_000, 0
"""A life that lasts, and one that is over at once."""
HERE = Node(id=NodeId("here"), incarnation="1")
THERE = Node(id=NodeId("there"), incarnation="1")
A = ConversationId("cnv_a")


class LeaseStoreSuite(StoresSuite):
    """The contracts of `LeaseStore`."""

    async def test_a_conversation_is_held_by_one_living_node(self, opens: OpenStores) -> None:
        async with opens() as here, opens() as there:
            await _begin(here, there)
            one = await here.leases.take(HERE, A)
            assert one == Lease(conversation_id=A, epoch=1, last_seq=0)
            assert await there.leases.take(THERE, A) is None
            assert await here.leases.take(HERE, A) == one
            assert await there.leases.holder(A) == HERE
            assert await here.leases.held(HERE) == [one]
            assert await here.leases.held(THERE) == []

    async def test_one_living_node_has_a_lock(self, opens: OpenStores) -> None:
        async with opens() as here, opens() as there:
            await _begin(here, there)
            assert await here.leases.lock(HERE, "ws")
            assert await here.leases.lock(HERE, "ws")
            assert not await there.leases.lock(THERE, "ws")
            assert await there.leases.lock(THERE, "other")
            await there.leases.unlock(THERE, "ws")
            assert not await there.leases.lock(THERE, "ws"), "it was not theirs to give back"
            await here.leases.unlock(HERE, "ws")
            assert await there.leases.lock(THERE, "ws")
            await there.leases.bury(THERE)
            assert await here.leases.lock(HERE, "ws")

    async def test_a_node_is_found_while_it_lives(self, opens: OpenStores) -> None:
        async with opens() as here, opens() as there:
            reached = replace(HERE, url="http://10.0.0.1:8000", secret="s", process="1 2 3")
            await _begin(here, there)
            await here.leases.join(reached, ttl_ms=LONG_MS)
            await here.leases.take(reached, A)
            assert await there.leases.holder(A) == reached
            assert await there.leases.living() == [reached, THERE]
            await there.leases.drain(THERE, keep=())
            assert await here.leases.living() == [reached, THERE]
            assert await here.leases.living(takes_turns=True) == [reached]
            await there.leases.bury(replace(reached, incarnation="0"))
            assert await there.leases.holder(A) == reached
            await there.leases.bury(reached)
            assert await there.leases.holder(A) is None
            assert await there.leases.living() == [THERE]
            await there.leases.join(THERE, ttl_ms=LONG_MS)
            assert await there.leases.take(THERE, A) is not None

    async def test_what_a_node_noted_of_its_settings_is_found_while_it_lives(
        self, opens: OpenStores
    ) -> None:
        async with opens() as here, opens() as there:
            await _begin(here, there)
            reached = replace(HERE, url="http://10.0.0.1:8000")
            await here.leases.join(reached, ttl_ms=LONG_MS)
            assert await there.leases.settings() == {}
            await here.leases.note_settings(reached, "{}")
            await here.leases.note_settings(replace(reached, incarnation="0"), "of the last start")
            assert await there.leases.settings() == {"http://10.0.0.1:8000": "{}"}
            await there.leases.bury(reached)
            assert await there.leases.settings() == {}

    async def test_of_nodes_that_take_at_once_one_gets_it(self, opens: OpenStores) -> None:
        async with opens() as here, opens() as there:
            await _begin(here, there)
            names = [str(number) for number in range(10)]
            for name in names:
                await here.conversations.create(conversation(f"n{name}"))
            taken: list[tuple[Node, ConversationId]] = []

            async def take_all(stores: Stores, node: Node) -> None:
                for name in names:
                    where = ConversationId(f"cnv_n{name}")
                    if await stores.leases.take(node, where) is not None:
                        taken.append((node, where))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(take_all, here, HERE)
                tasks.start_soon(take_all, there, THERE)
            assert sorted(where for _, where in taken) == [f"cnv_n{name}" for name in names]

    async def test_what_an_expired_node_held_is_taken_with_a_higher_epoch(
        self, opens: OpenStores
    ) -> None:
        async with opens() as here, opens() as there:
            await _begin(here, there)
            await here.leases.take(HERE, A)
            await here.leases.beat(HERE, ttl_ms=OVER_MS)
            assert await there.leases.holder(A) is None
            taken = await there.leases.take(THERE, A)
            assert taken is not None
            assert taken.epoch == 2
            assert await here.leases.held(HERE) == []
            assert await here.leases.beat(HERE, ttl_ms=LONG_MS) == "late"
            assert await here.leases.beat(HERE, ttl_ms=LONG_MS) == "in_time"
            assert await here.leases.take(HERE, A) is None

    async def test_one_beat_keeps_all_leases_of_a_node(self, opens: OpenStores) -> None:
        async with opens() as here, opens() as there:
            await _begin(here, there)
            await here.conversations.create(conversation("b"))
            await here.leases.join(HERE, ttl_ms=OVER_MS)
            for where in (A, ConversationId("cnv_b")):
                await here.leases.take(HERE, where)
            await here.leases.beat(HERE, ttl_ms=LONG_MS)
            for where in (A, ConversationId("cnv_b")):
                assert await there.leases.take(THERE, where) is None

    async def test_a_node_that_begins_anew_ends_its_earlier_leases(self, opens: OpenStores) -> None:
        async with opens() as here, opens() as there:
            await _begin(here, there)
            await here.leases.take(HERE, A)
            again = Node(id=HERE.id, incarnation="2")
            await there.leases.join(again, ttl_ms=LONG_MS)
            assert await here.leases.beat(HERE, ttl_ms=LONG_MS) == "gone"
            assert await here.leases.holder(A) is None
            taken = await there.leases.take(again, A)
            assert taken is not None
            assert taken.epoch == 2
            await here.leases.leave(HERE)
            assert await there.leases.holder(A) == again
            await here.conversations.create(conversation("b"))
            assert await here.leases.take(HERE, ConversationId("cnv_b")) is None

    async def test_a_released_conversation_is_anyones_and_keeps_its_epoch(
        self, opens: OpenStores
    ) -> None:
        async with opens() as here, opens() as there:
            await _begin(here, there)
            await here.conversations.create(conversation("b"))
            await here.leases.take(HERE, A)
            await here.leases.take(HERE, ConversationId("cnv_b"))
            await there.leases.release(THERE, A)
            assert await there.leases.take(THERE, A) is None
            await here.leases.release(HERE, A)
            taken = await there.leases.take(THERE, A)
            assert taken is not None
            assert taken.epoch == 2
            assert [lease.epoch for lease in await here.leases.held(HERE)] == [1]

    async def test_who_leaves_releases_everything(self, opens: OpenStores) -> None:
        async with opens() as here, opens() as there:
            await _begin(here, there)
            await there.leases.take(THERE, A)
            await here.leases.leave(HERE)
            await there.leases.leave(THERE)
            await there.leases.leave(THERE)
            assert await here.leases.beat(HERE, ttl_ms=LONG_MS) == "gone"
            assert await here.leases.take(HERE, A) is None
            await here.leases.join(HERE, ttl_ms=LONG_MS)
            taken = await here.leases.take(HERE, A)
            assert taken is not None
            assert taken.epoch == 2

    async def test_who_drains_takes_nothing_and_keeps_what_it_needs(
        self, opens: OpenStores
    ) -> None:
        async with opens() as here, opens() as there:
            await _begin(here, there)
            for name in "bcd":
                await here.conversations.create(conversation(name))
            lease = await here.leases.take(HERE, A)
            await here.turns.accept(turn("1", "b"))
            await here.leases.take(HERE, ConversationId("cnv_c"))
            theirs = await there.leases.take(THERE, ConversationId("cnv_d"))
            await there.leases.drain(HERE, keep=[A])
            assert await here.leases.take(HERE, A) == lease
            assert await here.leases.held(HERE) == [lease]
            assert await here.leases.held(THERE) == [theirs]
            assert await here.leases.take(HERE, ConversationId("cnv_b")) is None
            assert await here.leases.take_unfinished(HERE) == []
            assert await there.leases.take(THERE, A) is None
            await here.leases.join(HERE, ttl_ms=LONG_MS)
            assert await here.leases.take(HERE, ConversationId("cnv_b")) is not None

    async def test_unfinished_turns_of_the_dead_are_taken_over(self, opens: OpenStores) -> None:
        async with opens() as here, opens() as there:
            await _begin(here, there)
            for name in "bcd":
                await here.conversations.create(conversation(name))
            for name in "abc":
                await here.turns.accept(turn(name, name, state="running"))
            done = await here.turns.accept(turn("d", "d"))
            await here.turns.finish([ended(done)], [event(7, done, 1)])
            await here.leases.take(HERE, A)
            await there.leases.take(THERE, ConversationId("cnv_b"))
            await here.leases.beat(HERE, ttl_ms=OVER_MS)
            taken = await there.leases.take_unfinished(THERE)
            assert {lease.conversation_id: lease.epoch for lease in taken} == {A: 2, "cnv_c": 1}
            assert await there.leases.take_unfinished(THERE) == []

    async def test_the_next_owner_knows_whether_turns_were_let_go(self, opens: OpenStores) -> None:
        async with opens() as here, opens() as there:
            await _begin(here, there)
            names = [ConversationId(f"cnv_{name}") for name in "abcd"]
            for name in "bcd":
                await here.conversations.create(conversation(name))
            for name in "abcd":
                await here.turns.accept(turn(name, name, state="running"))
            let_go, taken_alone, released, died = names
            for name in names:
                await here.leases.take(HERE, name)
            await there.leases.let_go(THERE, died)  # not its to let go
            for name in (let_go, taken_alone):
                await here.leases.let_go(HERE, name)
            await here.leases.release(HERE, released)
            assert {lease.conversation_id for lease in await here.leases.held(HERE)} == {died}
            await here.leases.beat(HERE, ttl_ms=OVER_MS)
            alone = await there.leases.take(THERE, taken_alone)
            assert alone is not None
            found = [alone, *await there.leases.take_unfinished(THERE, released_only=True)]
            assert {lease.conversation_id: lease.was_let_go for lease in found} == {
                let_go: True,
                taken_alone: True,
                released: False,
            }
            (last,) = await there.leases.take_unfinished(THERE)
            assert (last.conversation_id, last.epoch, last.was_let_go) == (died, 2, False)

    async def test_a_lease_knows_the_last_event_before_it(self, stores: Stores) -> None:
        await _begin(stores, stores)
        one = await stores.turns.accept(turn("1"))
        for epoch, seq in enumerate((4, 7)):
            await stores.events.append([event(seq, one, seq)], epochs={A: epoch})
            lease = await stores.leases.take(HERE, A)
            assert lease is not None
            assert lease.last_seq == seq
            await stores.leases.release(HERE, A)

    async def test_leases_go_with_their_conversation(self, stores: Stores) -> None:
        await _begin(stores, stores)
        assert await stores.leases.take(HERE, ConversationId("cnv_none")) is None
        await stores.leases.take(HERE, A)
        kept = conversation()
        await stores.conversations.delete(A, kept.created_at)
        assert await stores.leases.held(HERE) == []
        assert await stores.leases.take(HERE, A) is None

    async def test_nodes_and_leases_outlive_what_has_them_open(self, opens: OpenStores) -> None:
        async with opens() as stores:
            await _begin(stores, stores)
            lease = await stores.leases.take(HERE, A)
        async with opens() as again:
            assert await again.leases.held(HERE) == [lease]
            assert await again.leases.holder(A) == HERE


class FenceSuite(StoresSuite):
    """That an owner whom another one has followed stores nothing."""

    async def test_events_of_an_old_owner_are_left_out_and_others_stored(
        self, opens: OpenStores
    ) -> None:
        async with opens() as here, opens() as there:
            await _begin(here, there)
            mine = await here.turns.accept(turn("b", "b"), create=conversation("b"), node=HERE)
            one = await _follow(here, there)
            events = [event(1, one, 1), event(1, mine, 1)]
            epochs = {A: 1, mine.conversation_id: 1}
            assert list(await here.events.append(events, epochs=epochs)) == [A]
            assert await there.events.last_n(one.id) == 0
            assert await there.events.last_n(mine.id) == 1
            assert list(await there.events.append([events[0]], epochs={A: 2})) == []
            assert list(await here.events.append([event(2, one, 2)])) == [A]
            assert await there.events.last_n(one.id) == 1

    async def test_an_old_owner_ends_no_turn(self, opens: OpenStores) -> None:
        async with opens() as here, opens() as there:
            await _begin(here, there)
            mine = await here.turns.accept(turn("b", "b"), create=conversation("b"), node=HERE)
            one = await _follow(here, there)
            last = [last_event(1, one, 1), last_event(1, mine, 1)]
            epochs = {A: 1, mine.conversation_id: 1}
            ends = [ended(one), ended(mine)]
            assert list(await here.turns.finish(ends, last, epochs=epochs)) == [A]
            assert await there.turns.get(one.id) == one
            assert await there.events.last_n(one.id) == 0
            assert await there.turns.get(mine.id) == replace(ended(mine), epoch=1)
            assert list(await there.turns.finish(ends[:1], last[:1], epochs={A: 2})) == []
            assert await there.turns.get(one.id) == replace(ended(one), epoch=2)

    async def test_an_old_owner_accepts_and_starts_nothing(self, opens: OpenStores) -> None:
        async with opens() as here, opens() as there:
            await _begin(here, there)
            one = await _follow(here, there)
            with pytest.raises(LeaseLost):
                await here.turns.accept(turn("2", epoch=1))
            await here.turns.start(one.id, AT, epoch=1)
            assert list(await there.turns.unfinished()) == [one]
            await there.turns.start(one.id, AT, epoch=2)
            accepted = await there.turns.accept(turn("2", epoch=2))
            assert (accepted.seq, accepted.epoch) == (2, 2)
            assert [found.state for found in await there.turns.unfinished()] == [
                "running",
                "queued",
            ]

    async def test_an_old_owner_changes_nothing_beside_its_turn(self, opens: OpenStores) -> None:
        async with opens() as here, opens() as there:
            await _begin(here, there)
            one = await _follow(here, there)
            known = approval("known", one)
            given = approval("answered", one)
            for kept in (approval("open", one), given):
                await there.approvals.add(kept, epoch=2)
            await there.approvals.answer(answer_to(given))
            before = await there.approvals.of_turn(one.id)
            writes: list[Callable[[int], Awaitable[None]]] = [
                lambda epoch: here.conversations.bind_session(A, "s", epoch=epoch),
                lambda epoch: here.file_changes.put(one.id, {"files": []}, epoch=epoch),
                lambda epoch: here.approvals.add(known, epoch=epoch),
                lambda epoch: here.approvals.withdraw(ApprovalId("apr_open"), AT, epoch=epoch),
                lambda epoch: here.approvals.reopen(ApprovalId("apr_answered"), epoch=epoch),
            ]
            for write in writes:
                for epoch in (0, 1):
                    with pytest.raises(LeaseLost):
                        await write(epoch)
            assert await there.approvals.of_turn(one.id) == before
            assert await there.file_changes.get(one.id) is None
            found = await there.conversations.get(A, ANN)
            assert found is not None
            assert found.session_id is None
            await there.conversations.bind_session(A, "s", epoch=2)
            await there.file_changes.put(one.id, {"files": []}, epoch=2)
            await there.approvals.withdraw(ApprovalId("apr_open"), AT, epoch=2)
            await there.approvals.reopen(ApprovalId("apr_answered"), epoch=2)

    async def test_who_drains_begins_no_conversation(self, stores: Stores) -> None:
        await _begin(stores, stores)
        await stores.leases.drain(HERE, keep=())
        with pytest.raises(LeaseLost):
            await stores.turns.accept(turn("b", "b"), create=conversation("b"), node=HERE)
        assert await stores.conversations.get(ConversationId("cnv_b"), ANN) is None


async def _follow(here: Stores, there: Stores) -> Turn:
    """Take `A` for `HERE`, and then for `THERE`; return the turn that waits in it."""
    await here.leases.take(HERE, A)
    one = await here.turns.accept(turn("1", epoch=1))
    await here.leases.beat(HERE, ttl_ms=OVER_MS)
    lease = await there.leases.take(THERE, A)
    assert lease is not None
    assert lease.epoch == 2
    await here.leases.beat(HERE, ttl_ms=LONG_MS)
    return one


async def _begin(here: Stores, there: Stores) -> None:
    """Join two nodes, and make the conversation `A`."""
    await here.conversations.create(conversation())
    await here.leases.join(HERE, ttl_ms=LONG_MS)
    await there.leases.join(THERE, ttl_ms=LONG_MS)
