"""What every store of schedules must do."""

from dataclasses import replace
from typing import Any

from gateway.conversations.schedules import Schedule, ScheduledRun
from gateway.ids import ConversationId, ScheduleId, TurnId, UserId
from tests.conformance.suites.conversation_values import (
    ANN,
    AT,
    BOB,
    TEXTS,
    Stores,
    StoresSuite,
    at,
    conversation,
    ended,
    turn,
)

ROOM = 9


def schedule(key: str = "a", user_id: UserId = ANN, **fields: Any) -> Schedule:
    """Make a schedule with the id `sch_<key>` that is due at `AT`."""
    blank = Schedule(
        id=ScheduleId(f"sch_{key}"),
        user_id=user_id,
        name=f"name of {key}",
        cron="0 8 * * *",
        time_zone="Europe/Berlin",
        message=f"message of {key}",
        conversation_id=None,
        project_id=None,
        enabled=True,
        created_at=AT,
        due_at=AT,
    )
    return replace(blank, **fields)


class ScheduleStoreSuite(StoresSuite):
    """The contracts of `ScheduleStore`."""

    async def test_a_schedule_is_kept_whole(self, stores: Stores) -> None:
        for number, text in enumerate(TEXTS):
            kept = schedule(
                str(number),
                name=text,
                message=text,
                project_id=text,
                last_due_at=at(-9),
                last_at=at(-8),
                last_turn_id=TurnId("trn_a1"),
                last_missed=7,
                problem={"code": "overloaded", "message": text, "at": "2026-11-20T12:00:00.000Z"},
            )
            assert await stores.schedules.add(kept, limit=ROOM)
            assert await stores.schedules.get(ANN, kept.id) == kept
            changed = replace(kept, enabled=False, due_at=None, problem=None, cron="1 1 * * *")
            await stores.schedules.put(changed)
            assert await stores.schedules.get(ANN, kept.id) == changed

    async def test_a_change_of_what_was_changed_meanwhile_is_refused(self, stores: Stores) -> None:
        assert await stores.schedules.add(schedule(), limit=ROOM)
        (read,) = await stores.schedules.listed(ANN)
        assert await stores.schedules.put(replace(read, name="first"))
        assert not await stores.schedules.put(replace(read, name="second"))
        (found,) = await stores.schedules.listed(ANN)
        assert (found.name, found.revision) == ("first", read.revision + 1)
        assert await stores.schedules.put(replace(found, name="third"))
        assert not await stores.schedules.put(schedule("gone"))

    async def test_schedules_are_their_users_alone(self, stores: Stores) -> None:
        own, others = schedule("a"), schedule("b", BOB)
        for one in (own, schedule("c"), others):
            assert await stores.schedules.add(one, limit=ROOM)
        assert await stores.schedules.listed(ANN) == [own, schedule("c")]
        assert await stores.schedules.get(ANN, others.id) is None
        assert not await stores.schedules.delete(ANN, others.id)
        await stores.schedules.put(replace(others, user_id=ANN))
        assert await stores.schedules.listed(BOB) == [others]
        assert await stores.schedules.delete(BOB, others.id)
        assert await stores.schedules.listed(BOB) == []

    async def test_a_user_has_no_more_than_the_limit(self, stores: Stores) -> None:
        assert await stores.schedules.add(schedule("a"), limit=1)
        assert not await stores.schedules.add(schedule("b"), limit=1)
        assert await stores.schedules.add(schedule("c", BOB), limit=1)
        assert await stores.schedules.listed(ANN) == [schedule("a")]

    async def test_what_is_due_is_listed_by_its_time(self, stores: Stores) -> None:
        due, long_due = schedule("a"), schedule("b", BOB, due_at=at(-60))
        later, off = schedule("c", due_at=at(1)), schedule("d", enabled=False, due_at=None)
        for one in (due, long_due, schedule("e", due_at=at(2)), later, off):
            await stores.schedules.add(one, limit=ROOM)
        assert await stores.schedules.due(AT) == [long_due, due]
        assert await stores.schedules.next_due(AT) == at(1)
        assert await stores.schedules.next_due(at(2)) is None

    async def test_the_end_of_its_conversation_switches_a_schedule_off(
        self, stores: Stores
    ) -> None:
        await stores.turns.accept(turn("a1"), create=conversation("a"))
        bound = schedule("a", conversation_id=ConversationId("cnv_a"))
        for one in (bound, schedule("b")):
            await stores.schedules.add(one, limit=ROOM)
        await stores.conversations.delete(ConversationId("cnv_a"), at(5))
        await stores.schedules.put(replace(bound, last_missed=3))  # by one who read it before
        off, other = await stores.schedules.listed(ANN)
        assert other == schedule("b")
        assert off.problem is not None
        assert off.problem["code"] == "conversation_deleted"
        assert replace(off, problem=None) == replace(bound, enabled=False, due_at=None)

    async def test_the_end_of_a_conversation_leaves_the_schedules_of_other_users(
        self, stores: Stores
    ) -> None:
        await stores.turns.accept(turn("a1"), create=conversation("a"))
        others = schedule("b", BOB, conversation_id=ConversationId("cnv_a"))
        others = replace(others, enabled=False, due_at=None)
        assert await stores.schedules.add(others, limit=ROOM)
        await stores.conversations.delete(ConversationId("cnv_a"), at(5))
        assert await stores.schedules.listed(BOB) == [others]

    async def test_a_turn_keeps_the_run_that_sent_it(self, stores: Stores) -> None:
        run = ScheduledRun(schedule_id=ScheduleId("sch_a"), name="早", due_at=AT, missed=2)
        for name, sent in (("a1", run), ("a2", replace(run, due_at=None)), ("a3", None)):
            one = turn(name, schedule=sent)
            create = conversation("a") if name == "a1" else None
            one = await stores.turns.accept(one, create=create)
            await stores.turns.finish([ended(one)], [])
            found = await stores.turns.get(one.id)
            assert found is not None
            assert found.schedule == sent
        await stores.turns.copy_history(ConversationId("cnv_a"), 1, conversation("b"))
        (copy,) = await stores.turns.history(ConversationId("cnv_b"), limit=9)
        assert copy.schedule == run
