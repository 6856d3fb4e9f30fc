"""What every store of turns must do."""

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

import anyio
import pytest

from gateway.conversations.model import Quota, UserDay
from gateway.conversations.store import (
    KEY_OUTLIVES,
    IdempotencyKey,
    KeyedTurn,
    QuotaReached,
    SessionTurn,
)
from gateway.ids import ConversationId, TurnId
from memory.errors import StoreConflict
from tests.conformance.suites.cancellation import Cut, both_cuts, cut_everywhere
from tests.conformance.suites.conversation_values import (
    ANN,
    AT,
    BOB,
    TEXTS,
    WAIT_S,
    OpenStores,
    Stores,
    StoresSuite,
    at,
    conversation,
    ended,
    event,
    last_event,
    turn,
)


class TurnStoreSuite(StoresSuite):
    """The contracts of `TurnStore`."""

    @pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:6])
    async def test_a_turn_comes_back_as_it_was_written(self, stores: Stores, text: str) -> None:
        await stores.conversations.create(conversation())
        one = await stores.turns.accept(turn(message=text))
        assert one == turn(message=text, seq=1)
        assert await stores.turns.get(one.id) == one
        done = ended(one, result={"reply": text, "nested": [1, 2.5, None, {"深": True}]})
        await stores.turns.finish([done], [last_event(1, one, 1)])
        assert await stores.turns.get(one.id) == done

    async def test_what_was_read_is_a_copy(self, stores: Stores) -> None:
        await stores.conversations.create(conversation())
        one = await stores.turns.accept(turn())
        given = ended(one, result={"notices": []})
        await stores.turns.finish([given], [])
        assert given.result is not None
        given.result["notices"].append("mine")
        read = await stores.turns.get(one.id)
        assert read is not None
        assert read.result == {"notices": []}
        read.result["notices"].append("mine")
        again = await stores.turns.get(one.id)
        assert again is not None
        assert again.result == {"notices": []}

    async def test_a_turn_may_be_accepted_as_running_with_its_first_event(
        self, stores: Stores
    ) -> None:
        running = turn(state="running", started_at=AT)
        one = await stores.turns.accept(
            running, create=conversation(), events=[event(1, running, 1)]
        )
        assert one == replace(running, seq=1)
        assert await stores.turns.get(one.id) == one
        assert list(await stores.turns.unfinished()) == [one]
        assert list(await stores.events.after(one.conversation_id, 0, limit=9)) == [
            event(1, one, 1)
        ]
        clash = replace(running, id=TurnId("trn_b1"))
        with pytest.raises(StoreConflict):
            await stores.turns.accept(clash, events=[event(1, clash, 1)])
        assert await stores.turns.get(clash.id) is None

    async def test_a_lone_surrogate_in_a_result_does_not_stop_it(self, stores: Stores) -> None:
        """A result holds what the agent and its tools said, whatever that was."""
        await stores.conversations.create(conversation())
        one = await stores.turns.accept(turn())
        await stores.turns.finish([ended(one, result={"reply": "a\ud800b", "x": object()})], [])
        read = await stores.turns.get(one.id)
        assert read is not None
        assert read.state == "completed"

    async def test_seq_counts_from_one_within_each_conversation(self, stores: Stores) -> None:
        for name in "ab":
            await stores.conversations.create(conversation(name))
        seqs = []
        for n in range(1, 7):
            one = await stores.turns.accept(turn(str(n), "ab"[n % 2]))
            seqs.append((one.conversation_id, one.seq))
        assert seqs == [(f"cnv_{'ab'[n % 2]}", (n + 1) // 2) for n in range(1, 7)]

    async def test_writers_at_once_share_the_numbers_without_gap(self, stores: Stores) -> None:
        order: list[int] = []
        numbers: list[int] = []
        await stores.conversations.create(conversation())

        async def write(writer: int) -> None:
            for n in range(10):
                one = await stores.turns.accept(turn(f"{writer}-{n}"))
                order.append(writer)
                numbers.append(one.seq)

        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                for writer in range(5):
                    tasks.start_soon(write, writer)
        assert sorted(numbers) == list(range(1, 51))
        switches = sum(entry != other for entry, other in pairwise(order))
        assert switches > 5, "the writers did not run at once"

    async def test_accepting_names_the_conversation_once_and_moves_its_activity(
        self, stores: Stores
    ) -> None:
        await stores.turns.accept(
            turn("1", message="  first\n\nline  ", created_at=at(3)), create=conversation()
        )
        await stores.turns.accept(turn("2", message="second", created_at=at(2)))
        found = await stores.conversations.get(conversation().id, ANN)
        assert found == conversation(title="first line", last_activity_at=at(3), turns=2)
        await stores.turns.accept(
            turn("3", "long", message="长" * 500), create=conversation("long")
        )
        long = await stores.conversations.get(ConversationId("cnv_long"), ANN)
        assert long is not None
        assert 0 < len(long.title) <= 80

    async def test_accept_is_all_or_nothing(self, stores: Stores) -> None:
        key = IdempotencyKey(key="k", request_hash="h")
        first = await stores.turns.accept(turn("1"), create=conversation(), key=key)
        with pytest.raises(StoreConflict):  # the key is taken
            await stores.turns.accept(turn("2", "b"), create=conversation("b"), key=key)
        assert await stores.conversations.get(ConversationId("cnv_b"), ANN) is None
        assert await stores.turns.get(TurnId("trn_2")) is None
        with pytest.raises(StoreConflict):  # there is no such conversation
            await stores.turns.accept(turn("3", "none"), key=replace(key, key="k3"))
        assert await stores.turns.find_key(ANN, "k3") is None
        with pytest.raises(StoreConflict):  # the turn's id is taken
            await stores.turns.accept(
                turn("1", message="other", created_at=at(9)), project_id="pool"
            )
        found = await stores.conversations.get(conversation().id, ANN)
        assert found is not None
        assert (found.turns, found.last_activity_at, found.project_id) == (1, AT, None)
        assert await stores.turns.find_key(ANN, "k") == KeyedTurn(
            turn_id=first.id, request_hash="h"
        )

    async def test_a_turn_may_move_its_conversation_to_a_project(self, stores: Stores) -> None:
        await stores.turns.accept(turn("1"), create=conversation())
        for project_id, expected in ((None, None), ("pool", "pool"), (None, "pool")):
            await stores.turns.accept(turn(f"of {expected} {project_id}"), project_id=project_id)
            found = await stores.conversations.get(conversation().id, ANN)
            assert found is not None
            assert found.project_id == expected

    async def test_a_notice_is_added_to_the_result_of_a_completed_turn_alone(
        self, stores: Stores
    ) -> None:
        one = await stores.turns.accept(turn("1"), create=conversation())
        two = await stores.turns.accept(turn("2"))
        notice = {"code": "late", "message": "“quoted” {x}", "quotes": ["quoted"]}
        result: dict[str, Any] = {"reply": "done", "notices": [{"code": "kill", "message": "x"}]}
        await stores.turns.finish([ended(one, result=result)], [event(1, one, 1)])
        assert not await stores.turns.add_notice(two.id, notice)
        assert not await stores.turns.add_notice(TurnId("trn_none"), notice)
        assert await stores.turns.add_notice(one.id, notice)
        found = await stores.turns.get(one.id)
        assert found is not None
        assert found.result == {**result, "notices": [*result["notices"], notice]}

    async def test_a_key_belongs_to_its_user(self, stores: Stores) -> None:
        key = IdempotencyKey(key="same", request_hash="h")
        await stores.turns.accept(turn("1", "a"), create=conversation("a"), key=key)
        assert await stores.turns.find_key(BOB, "same") is None
        await stores.turns.accept(
            turn("2", "b", BOB), create=conversation("b", BOB), key=replace(key)
        )
        found = await stores.turns.find_key(BOB, "same")
        assert found is not None
        assert found.turn_id == "trn_2"
        assert await stores.turns.find_key(ANN, "other") is None

    async def test_a_key_is_withdrawn_unless_a_message_has_it(self, stores: Stores) -> None:
        key = IdempotencyKey(key="k", request_hash="h")
        await stores.turns.withdraw_key(ANN, "k", AT)
        with pytest.raises(StoreConflict):
            await stores.turns.accept(turn("1"), create=conversation(), key=key)
        assert await stores.turns.get(TurnId("trn_1")) is None
        known = await stores.turns.find_key(ANN, "k")
        assert known is not None
        assert known.turn_id == ""
        taken = replace(key, key="taken")
        await stores.turns.accept(turn("2"), create=conversation(), key=taken)
        for name in ("k", "taken"):
            with pytest.raises(StoreConflict):
                await stores.turns.withdraw_key(ANN, name, AT)
        await stores.turns.withdraw_key(BOB, "taken", AT)
        await stores.conversations.delete(
            ConversationId("cnv_none"), AT + KEY_OUTLIVES + timedelta(seconds=1)
        )
        assert await stores.turns.find_key(ANN, "k") is None
        assert await stores.turns.find_key(ANN, "taken") is not None

    async def test_a_quota_counts_the_turns_of_a_user_that_are_unfinished(
        self, stores: Stores
    ) -> None:
        quota = Quota(running_turns=2)
        await stores.conversations.create(conversation())
        await stores.conversations.create(conversation("b", BOB))
        first = await stores.turns.accept(turn("a1"), quota=quota)
        await stores.turns.accept(turn("a2"), quota=quota)
        await stores.turns.accept(turn("b1", "b", BOB), quota=quota)
        with pytest.raises(QuotaReached, match="running_turns"):
            await stores.turns.accept(turn("a3"), quota=quota)
        assert await stores.turns.get(turn("a3").id) is None
        assert await stores.turns.count_unfinished(ANN) == 2
        await stores.turns.finish([ended(first)], [])
        assert await stores.turns.count_unfinished(ANN) == 1
        await stores.turns.accept(turn("a4"), quota=quota)

    async def test_a_quota_counts_the_conversations_of_a_user_at_work(self, stores: Stores) -> None:
        quota = Quota(live_agents=1)
        for name, user in (("a", ANN), ("b", ANN), ("c", BOB)):
            await stores.conversations.create(conversation(name, user))
        first = await stores.turns.accept(turn("a1"), quota=quota)
        await stores.turns.accept(turn("c1", "c", BOB), quota=quota)
        second = await stores.turns.accept(turn("a2"), quota=quota)  # by the agent of the first
        assert await stores.turns.count_at_work(ANN) == 1
        await stores.turns.finish([ended(first)], [])
        with pytest.raises(QuotaReached, match="live_agents"):
            await stores.turns.accept(turn("b1", "b"), quota=quota)
        await stores.turns.finish([ended(second)], [])
        assert await stores.turns.count_at_work(ANN) == 0
        await stores.turns.accept(turn("b2", "b"), quota=quota)

    async def test_a_quota_counts_what_a_user_used_on_a_day(self, stores: Stores) -> None:
        today, tomorrow = AT.date(), (AT + timedelta(days=1)).date()
        await stores.conversations.create(conversation())
        one = await stores.turns.accept(turn("a1"), quota=Quota(daily_turns=1))
        with pytest.raises(QuotaReached, match="daily_turns"):
            await stores.turns.accept(turn("a2"), quota=Quota(daily_turns=1))
        assert await stores.turns.used_on(ANN, today) == UserDay(turns=1)
        dear = ended(one, result={"cost_usd": 0.75})
        ahead = replace(dear, state="running")
        for ending in (ahead, dear, dear):  # written ahead, and again: it counts once
            await stores.turns.finish([ending], [])
        assert await stores.turns.used_on(ANN, today) == UserDay(turns=1, cost_usd=0.75)
        await stores.turns.accept(turn("a3"), quota=Quota(daily_usd=0.76))
        with pytest.raises(QuotaReached, match="daily_usd"):
            await stores.turns.accept(turn("a4"), quota=Quota(daily_usd=0.75))
        later = turn("a5", created_at=AT + timedelta(days=1))
        await stores.turns.accept(later, quota=Quota(daily_turns=1, daily_usd=0.75))
        await stores.conversations.delete(one.conversation_id, at(9))
        assert await stores.turns.used_on(ANN, today) == UserDay(turns=2, cost_usd=0.75)
        assert await stores.turns.used_on(ANN, tomorrow) == UserDay(turns=1)
        assert await stores.turns.used_on(BOB, today) == UserDay()

    async def test_messages_at_once_share_a_quota(self, stores: Stores) -> None:
        taken: list[str] = []

        async def accept(name: str) -> None:
            with suppress(QuotaReached):
                taken.append((await stores.turns.accept(turn(name), quota=quota)).id)

        quota = Quota(daily_turns=3)
        await stores.conversations.create(conversation())
        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(accept, f"a{number}")
        assert len(taken) == 3
        assert await stores.turns.used_on(ANN, AT.date()) == UserDay(turns=3)

    async def test_only_a_queued_turn_is_started(self, stores: Stores) -> None:
        await stores.conversations.create(conversation())
        one = await stores.turns.accept(turn())
        await stores.turns.start(one.id, at(1))
        running = replace(one, state="running", started_at=at(1))
        assert await stores.turns.get(one.id) == running
        await stores.turns.start(one.id, at(2))
        assert await stores.turns.get(one.id) == running
        done = ended(one)
        await stores.turns.finish([done], [])
        await stores.turns.start(one.id, at(3))
        assert await stores.turns.get(one.id) == done
        await stores.turns.start(TurnId("trn_none"), at(1))

    async def test_an_ending_and_its_event_are_one(self, stores: Stores) -> None:
        await stores.conversations.create(conversation())
        one = await stores.turns.accept(turn("1"))
        two = await stores.turns.accept(turn("2"))
        await stores.events.append([event(1, one, 1)])
        with pytest.raises(StoreConflict):
            await stores.turns.finish([ended(two)], [last_event(1, two, 1)])
        assert await stores.turns.get(two.id) == two
        events = [event(2, one, 2), last_event(3, one, 3), last_event(4, two, 1)]
        await stores.turns.finish([ended(one), ended(two, 2)], events)
        assert await stores.turns.get(one.id) == ended(one)
        assert await stores.turns.get(two.id) == ended(two, 2)
        assert list(await stores.events.after(one.conversation_id, 1, limit=9)) == events
        found = await stores.conversations.get(conversation().id, ANN)
        assert found is not None
        assert found.last_activity_at == at(2.5)

    async def test_an_ending_may_be_written_again(self, stores: Stores) -> None:
        """Where a commit's answer was lost, the same is sent once more."""
        await stores.conversations.create(conversation())
        one = await stores.turns.accept(turn())
        for _ in range(2):
            await stores.turns.finish([ended(one)], [last_event(1, one, 1)])
        assert await stores.turns.get(one.id) == ended(one)
        assert len(await stores.events.after(one.conversation_id, 0, limit=9)) == 1

    async def test_how_a_turn_ended_may_be_written_ahead_of_its_end(
        self, opens: OpenStores
    ) -> None:
        """It still runs then, and a start after a crash finds both."""
        async with opens() as stores:
            await stores.conversations.create(conversation())
            one = await stores.turns.accept(turn())
            await stores.turns.start(one.id, at(1))
            noted = replace(ended(one), state="running")
            await stores.turns.finish([noted], [])
            assert await stores.turns.get(one.id) == noted
        async with opens() as stores:
            assert list(await stores.turns.unfinished()) == [noted]
            await stores.turns.finish([ended(one)], [last_event(1, one, 1)])
            assert await stores.turns.get(one.id) == ended(one)
            assert list(await stores.turns.unfinished()) == []

    async def test_an_ending_after_the_deletion_is_left_out(self, stores: Stores) -> None:
        await stores.conversations.create(conversation())
        one = await stores.turns.accept(turn())
        await stores.conversations.delete(one.conversation_id, AT)
        await stores.turns.finish([ended(one)], [last_event(1, one, 1)])
        assert await stores.turns.get(one.id) is None
        assert await stores.events.after(one.conversation_id, 0, limit=9) == []

    async def test_the_unfinished_are_the_queued_and_running_as_they_were_accepted(
        self, opens: OpenStores
    ) -> None:
        """Also where the clock was set back meanwhile."""
        async with opens() as stores:
            for name in "ab":
                await stores.conversations.create(conversation(name))
            made = [
                await stores.turns.accept(turn(str(n), "ab"[n % 2], created_at=at(10 - n)))
                for n in range(5)
            ]
            await stores.turns.start(made[1].id, at(20))
            await stores.turns.finish([ended(made[2])], [])
            await stores.turns.finish([replace(made[3], state="withdrawn")], [])
            running = replace(made[1], state="running", started_at=at(20))
            assert list(await stores.turns.unfinished()) == [running, made[0], made[4]]
        async with opens() as stores:
            assert list(await stores.turns.unfinished()) == [running, made[0], made[4]]

    async def test_the_history_is_the_last_turns_oldest_first(self, stores: Stores) -> None:
        await stores.conversations.create(conversation())
        await stores.conversations.create(conversation("b"))
        await stores.turns.accept(turn("other", "b"))
        made = [await stores.turns.accept(turn(str(n))) for n in range(6)]
        await stores.turns.finish([replace(made[4], state="withdrawn")], [])
        kept = [item for item in made if item is not made[4]]
        history, mine = stores.turns.history, conversation().id
        assert list(await history(mine, limit=99)) == kept
        assert list(await history(mine, limit=2)) == kept[-2:]
        assert list(await history(mine, limit=2, before_seq=kept[-2].seq)) == kept[1:3]
        assert list(await history(mine, limit=2, before_seq=1)) == []
        assert list(await history(ConversationId("cnv_none"), limit=2)) == []

    async def test_a_session_holds_nothing_up_to_the_turn_in_which_it_was_summarised(
        self, stores: Stores
    ) -> None:
        held = conversation(session_id="s1")
        await stores.conversations.create(held)
        made = [await stores.turns.accept(turn(str(n))) for n in range(4)]
        memory = {"memory": {"injected": [{"id": "fac_1", "revision": 2}]}}
        summarised = memory | {"notices": [{"code": "conversation_summarised"}]}
        results = [memory, summarised, memory, memory]
        for count in (1, 2, 4):
            done = [
                ended(item, n + 1, result=result)
                for n, (item, result) in enumerate(zip(made[:count], results, strict=False))
            ]
            await stores.turns.finish(done[-2:] if count > 1 else done, [])
            shown = {entry.turn_id: entry.shown for entry in await stores.turns.in_session(held)}
            assert shown == {
                item.id: {"fac_1": 2} for item in made[:1] * (count == 1) + made[2:count]
            }
        assert await stores.turns.in_session(replace(held, session_id=None)) == []

    async def test_a_session_holds_also_a_turn_that_ended_after_a_later_one(
        self, stores: Stores
    ) -> None:
        held = conversation(session_id="s1")
        await stores.conversations.create(held)
        made = [await stores.turns.accept(turn(str(n))) for n in range(3)]
        result = {"memory": {"injected": [{"id": "fac_1", "revision": 2}]}}
        for count, place in enumerate((1, 0, 2), start=1):
            await stores.turns.finish([ended(made[place], place + 1, result=result)], [])
            done = made[:count] if count > 1 else made[1:2]
            assert await stores.turns.in_session(held) == [
                SessionTurn(turn_id=entry.id, shown={"fac_1": 2}) for entry in done
            ]

    async def test_a_copied_history_is_a_conversation_of_its_own(self, stores: Stores) -> None:
        await stores.conversations.create(conversation())
        made = [await stores.turns.accept(turn(str(n))) for n in range(5)]
        await stores.turns.finish([replace(made[1], state="withdrawn")], [])
        done = [ended(made[n], n + 1, session_id=f"s{n}") for n in (0, 2, 3)]
        await stores.turns.finish(done, [last_event(1, made[0], 1)])
        target = conversation("f", BOB, title="fork", session_id="s2", fork_at="m1")
        await stores.turns.copy_history(conversation().id, made[2].seq, target)
        copies = list(await stores.turns.history(target.id, limit=9))
        assert await stores.conversations.get(target.id, BOB) == replace(target, turns=2)
        assert len({*[entry.id for entry in copies], *[item.id for item in made]}) == 7
        for copy, source in zip(copies, done[:2], strict=True):
            assert copy.result is not None
            assert copy.result["turn_id"] == copy.id
            assert copy.result["conversation_id"] == target.id
            own = ("id", "conversation_id", "user_id", "seq", "result")
            assert replace(copy, **{name: getattr(source, name) for name in own}) == source
        assert [entry.user_id for entry in copies] == [BOB, BOB]
        assert [entry.seq for entry in copies] == sorted(entry.seq for entry in copies)
        later = await stores.turns.accept(turn("later", "f", BOB))
        assert later.seq > copies[-1].seq
        await stores.conversations.delete(conversation().id, AT)
        assert list(await stores.turns.history(target.id, limit=2)) == [copies[1], later]

    async def test_a_fork_point_is_the_last_turn_that_left_a_session_and_an_entry(
        self, stores: Stores
    ) -> None:
        await stores.conversations.create(conversation())
        made = [await stores.turns.accept(turn(str(n))) for n in range(4)]
        said = ended(made[1])
        silent = ended(made[2], last_entry_id=None)
        await stores.turns.finish([ended(made[3]), silent, said], [])
        assert await stores.turns.fork_point(conversation().id, made[0].seq) is None
        for item in made[1:3]:
            assert await stores.turns.fork_point(conversation().id, item.seq) == said
        other = await stores.turns.accept(turn("b1", "b"), create=conversation("b"))
        assert await stores.turns.fork_point(other.conversation_id, 9) is None

    async def test_a_history_is_copied_whole_or_not_at_all(self, stores: Stores) -> None:
        for name in "ab":
            one = await stores.turns.accept(turn(name, name), create=conversation(name))
            await stores.turns.finish([ended(one)], [])
        with pytest.raises(StoreConflict):
            await stores.turns.copy_history(ConversationId("cnv_a"), 9, conversation("b"))
        assert len(await stores.turns.history(ConversationId("cnv_b"), limit=9)) == 1

    @both_cuts
    async def test_a_write_that_is_cancelled_anywhere_is_whole_or_absent(
        self, stores: Stores, cut: Cut
    ) -> None:
        taken: list[bool] = []

        async def cut_at(step: int) -> bool:
            name = str(step)
            key = IdempotencyKey(key=name, request_hash="h")
            accept = stores.turns.accept(turn(name, name), create=conversation(name), key=key)
            was_cut = await cut(accept, step)
            conversation_is_there = await stores.conversations.get(
                ConversationId(f"cnv_{name}"), ANN
            )
            there = {
                conversation_is_there is not None,
                await stores.turns.get(TurnId(f"trn_{name}")) is not None,
                await stores.turns.find_key(ANN, name) is not None,
            }
            assert len(there) == 1, "half of it was written"
            after = await stores.turns.accept(
                turn(f"{name}-2", f"{name}-2"), create=conversation(f"{name}-2")
            )
            seq = await stores.events.last_seq(after.conversation_id) + 1
            await cut(stores.turns.finish([ended(after)], [last_event(seq, after, 1)]), step)
            read = await stores.turns.get(after.id)
            assert read in (after, ended(after))
            assert await stores.events.find(after.id, 1) == (seq if read == ended(after) else None)
            taken.extend(there & {True})
            return was_cut

        await cut_everywhere(cut_at)
        assert taken
