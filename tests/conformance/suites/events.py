"""What every store of events must do."""

import pytest

from gateway.conversations.model import Head, Turn
from gateway.ids import ConversationId, TurnId
from memory.errors import StoreConflict
from tests.conformance.suites.cancellation import Cut, both_cuts, cut_everywhere
from tests.conformance.suites.conversation_values import (
    AT,
    OpenStores,
    Stores,
    StoresSuite,
    conversation,
    ended,
    event,
    turn,
)


class EventStoreSuite(StoresSuite):
    """The contracts of `EventStore`."""

    async def test_events_come_back_in_order_and_as_they_were_written(self, stores: Stores) -> None:
        one, two = await _two_turns(stores)
        events = [
            event(n, one if n % 3 else two, n, data='{"t":"长🙂\\u0000"}') for n in range(1, 10)
        ]
        await stores.events.append(events[:4])
        await stores.events.append(events[4:])
        after = stores.events.after
        assert list(await after(one.conversation_id, 0, limit=99)) == [
            each for each in events if each.turn_id == one.id
        ]
        assert list(await after(two.conversation_id, 3, limit=1)) == [events[5]]
        assert await after(one.conversation_id, 9, limit=9) == []
        assert await after(ConversationId("cnv_none"), 0, limit=9) == []

    async def test_one_turns_events_are_its_own(self, stores: Stores) -> None:
        one = await stores.turns.accept(turn("1"), create=conversation())
        two = await stores.turns.accept(turn("2"))
        events = [event(1, one, 1), event(2, two, 1), event(3, one, 2), event(4, two, 2)]
        await stores.events.append(events)
        after, mine = stores.events.after, one.conversation_id
        assert list(await after(mine, 0, limit=9, turn_id=one.id)) == [events[0], events[2]]
        assert list(await after(mine, 1, limit=1, turn_id=two.id)) == [events[1]]
        assert await stores.events.last_n(one.id) == 2
        assert await stores.events.last_n(TurnId("trn_none")) == 0
        assert await stores.events.find(two.id, 2) == 4
        assert await stores.events.find(two.id, 3) is None

    async def test_what_is_behind_several_places_is_listed_by_conversation(
        self, stores: Stores
    ) -> None:
        made = [
            await stores.turns.accept(turn(name, name), create=conversation(name)) for name in "abc"
        ]
        events = [[event(at, one, at) for at in (1, 2, 3, 4)] for one in made]
        for own in events:
            await stores.events.append(own)
        a, b, c = (one.conversation_id for one in made)
        after_each, gone = stores.events.after_each, ConversationId("cnv_none")
        found = await after_each({b: 2, a: 3, c: 4, gone: 0}, limit=9)
        assert [each for each in found if each.conversation_id == a] == events[0][3:]
        assert [each for each in found if each.conversation_id == b] == events[1][2:]
        assert len(found) == 3
        assert list(await after_each({b: 1}, limit=2)) == events[1][1:3]
        assert list(await after_each({c: 4}, limit=2)) == []

    async def test_heads_say_where_conversations_end(self, stores: Stores) -> None:
        one, two = [
            await stores.turns.accept(turn(name), create=None if at else conversation())
            for at, name in enumerate(["a1", "a2"])
        ]
        await stores.conversations.create(conversation("c"))
        await stores.events.append([event(1, one, 1), event(2, one, 2)])
        await stores.turns.finish([ended(one)], [])
        a, c = one.conversation_id, ConversationId("cnv_c")
        assert await stores.events.heads([a, c, ConversationId("cnv_none")]) == {
            a: Head(last_seq=2, ended=one.id),
            c: Head(last_seq=0, ended=None),
        }
        await stores.turns.finish([ended(two)], [])
        assert (await stores.events.heads([a]))[a].ended == two.id
        assert await stores.events.heads([]) == {}

    async def test_a_calls_events_are_found_also_from_a_copy_of_its_turn(
        self, stores: Stores
    ) -> None:
        one = await stores.turns.accept(turn("1"), create=conversation())
        start, end = "tool.started", "tool.finished"
        events = [
            event(1, one, 1, type=start, data='{"index":1}'),
            event(2, one, 2),
            event(3, one, 3, type=start, data='{"index":2}'),
            event(4, one, 4, type=end, data='{"index":1}'),
            event(5, one, 5, type=end, data="{}"),
        ]
        await stores.events.append(events)
        await stores.turns.finish([ended(one)], [])
        await stores.turns.copy_history(one.conversation_id, one.seq, conversation("b"))
        (copy,) = await stores.turns.history(ConversationId("cnv_b"), limit=9)
        for turn_id in (one.id, copy.id):
            found = await stores.events.of_call(turn_id, 1)
            assert list(found) == [events[0], events[3], events[4]]
        assert await stores.events.of_call(TurnId("trn_none"), 1) == []

    async def test_long_data_is_kept_exactly(self, stores: Stores) -> None:
        one, _ = await _two_turns(stores)
        long = event(1, one, 1, data='"' + "长" * 200_000 + '"')
        await stores.events.append([long])
        assert list(await stores.events.after(one.conversation_id, 0, limit=1)) == [long]

    async def test_a_batch_is_stored_whole_or_not_at_all(self, stores: Stores) -> None:
        one, two = await _two_turns(stores)
        await stores.events.append([event(1, one, 1)])
        for clash in (event(1, one, 2), event(3, one, 1)):  # another's seq, another's n
            with pytest.raises(StoreConflict):
                await stores.events.append([event(2, two, 1), clash])
            assert await stores.events.after(two.conversation_id, 0, limit=9) == []
        assert list(await stores.events.after(one.conversation_id, 0, limit=9)) == [
            event(1, one, 1)
        ]

    async def test_a_batch_may_be_written_again(self, stores: Stores) -> None:
        one, _ = await _two_turns(stores)
        events = [event(n, one, n) for n in range(1, 4)]
        await stores.events.append(events[:2])
        await stores.events.append(events)
        assert list(await stores.events.after(one.conversation_id, 0, limit=9)) == events

    async def test_each_conversation_has_an_order_of_its_own(self, opens: OpenStores) -> None:
        async with opens() as stores:
            one, two = await _two_turns(stores)
            assert await stores.events.last_seq(one.conversation_id) == 0
            events = [event(1, one, 1), event(1, two, 1), event(7, two, 2), event(2, one, 2)]
            await stores.events.append(events)
            assert await stores.events.after(one.conversation_id, 1, limit=9) == [events[3]]
            assert await stores.events.after(two.conversation_id, 1, limit=9) == [events[2]]
        async with opens() as stores:
            assert await stores.events.last_seq(one.conversation_id) == 2
            assert await stores.events.last_seq(two.conversation_id) == 7
            await stores.conversations.delete(two.conversation_id, AT)
            assert await stores.events.last_seq(one.conversation_id) == 2
            assert await stores.events.last_seq(two.conversation_id) == 0

    async def test_a_deleted_conversation_takes_no_more_events(self, stores: Stores) -> None:
        one, two = await _two_turns(stores)
        await stores.conversations.delete(one.conversation_id, AT)
        await stores.events.append([event(1, one, 1), event(2, two, 1)])
        assert await stores.events.after(one.conversation_id, 0, limit=9) == []
        assert await stores.events.find(two.id, 1) == 2

    async def test_what_was_committed_is_seen_at_once(self, stores: Stores) -> None:
        one, _ = await _two_turns(stores)
        for n in range(1, 50):
            await stores.events.append([event(n, one, n)])
            assert await stores.events.find(one.id, n) == n
            assert await stores.events.last_n(one.id) == n

    @both_cuts
    async def test_a_write_that_is_cancelled_anywhere_is_whole_or_absent(
        self, stores: Stores, cut: Cut
    ) -> None:
        one, two = await _two_turns(stores)

        async def cut_at(step: int) -> bool:
            seq = 3 * step
            batch = [event(seq, one, seq), event(seq + 1, one, seq + 1)]
            was_cut = await cut(stores.events.append(batch), step)
            found = list(await stores.events.after(one.conversation_id, seq - 1, limit=9))
            assert found in ([], batch)
            await stores.events.append([event(seq + 2, two, seq)])
            return was_cut

        await cut_everywhere(cut_at)


async def _two_turns(stores: Stores) -> tuple[Turn, Turn]:
    one = await stores.turns.accept(turn("a1", "a"), create=conversation("a"))
    two = await stores.turns.accept(turn("b1", "b"), create=conversation("b"))
    return one, two
