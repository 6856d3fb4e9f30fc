"""Messages that schedules send, by a clock that the test holds."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import anyio
import anyio.lowlevel
import pytest

from gateway.chat.schedule_runner import LONGEST_SLEEP_S, ScheduleRunner
from gateway.chat.schedules import ScheduleView
from gateway.conversations.model import Turn
from gateway.conversations.sql.schedules import ScheduleStore
from gateway.ids import LOCAL_USER as ME
from gateway.turns.requests import Accepted
from memory.errors import StoreDamaged, StoreUnavailable
from tests.support.services import HANG, RunningServices, running_services, script

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
HOURLY = {"cron": "0 * * * *", "time_zone": "Europe/Berlin"}


@dataclass
class Scene:
    """A server whose clock the test sets."""

    services: RunningServices
    now: datetime = NOON
    tick: timedelta = timedelta()
    """How much the clock goes on each time that the server looks at it."""

    def look(self) -> datetime:
        self.now += self.tick
        return self.now

    @property
    def runner(self) -> ScheduleRunner:
        return self.services.chat.schedules.runner

    async def add(self, message: str = "hello", **fields: Any) -> str:
        """Add a schedule that is due each hour; return its id."""
        given = {"conversation_id": None, "project_id": None, "enabled": True, "name": "Hours"}
        fields = {**given, **HOURLY, "message": message, **fields}
        return (await self.services.chat.schedules.create(ME, fields)).schedule.id

    async def at(self, hours: float) -> float:
        """Run what is due so many hours after noon."""
        self.now = NOON + timedelta(hours=hours)
        return await self.runner.run_due(lambda _: True)

    async def view(self, schedule_id: str) -> ScheduleView:
        return await self.services.chat.schedules.get(ME, schedule_id)

    async def turns(self) -> list[Turn]:
        """Wait until all turns have ended; list those of all conversations."""
        views = await self.services.views()
        found = [await self.services.messages_of(view.conversation.id) for view in views]
        turns = [turn for history in found for turn in history]
        for turn in turns:
            await self.services.result_of(
                Accepted(conversation_id=turn.conversation_id, turn_id=turn.id)
            )
        return turns

    async def ran(self, schedule_id: str) -> None:
        """Wait until a schedule has run."""
        with anyio.fail_after(30):
            while (await self.view(schedule_id)).last_turn is None:  # noqa: ASYNC110  no signal
                await anyio.sleep(0.01)

    def lose_zone(self, schedule_id: str) -> None:
        """Set a time zone that the server does not know."""
        sql = "UPDATE schedules SET time_zone = 'Asia/Gone' WHERE id = ?"
        file = self.services.settings.data_dir / "candor.sqlite3"
        with closing(sqlite3.connect(file)) as database, database:
            database.execute(sql, (schedule_id,))

    async def ended(self, schedule_id: str) -> dict[str, Any]:
        """Wait for the turn of a schedule's last run; return its result."""
        last = (await self.view(schedule_id)).last_turn
        assert last is not None
        return await self.services.result_of(
            Accepted(conversation_id=last.conversation_id, turn_id=last.id)
        )


@asynccontextmanager
async def scene(
    root: Path, monkeypatch: pytest.MonkeyPatch, **settings: Any
) -> AsyncIterator[Scene]:
    held: list[Scene] = []
    monkeypatch.setattr("gateway.assemble.utc_now", lambda: held[0].look() if held else NOON)
    async with running_services(root, **{"schedules": "on", **settings}) as services:
        held.append(Scene(services))
        yield held[0]


async def test_a_due_message_is_a_turn_of_its_conversation_that_says_where_it_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, monkeypatch) as s:
        place = (await s.services.ask("hello"))["conversation_id"]
        schedule_id = await s.add("and now?", conversation_id=place)
        assert await s.at(59.5 / 60) == 30
        assert await s.at(30 / 60) == LONGEST_SLEEP_S
        assert (await s.view(schedule_id)).last_turn is None
        await s.at(1)
        result = await s.ended(schedule_id)
        view = await s.view(schedule_id)
        lines = await s.services.journal_of(result)
        messages = await s.services.messages_of(place)
    sent = {"schedule_id": schedule_id, "name": "Hours", "missed": 0}
    sent["due_at"] = "2026-11-20T13:00:00.000Z"
    assert [turn.message for turn in messages] == ["hello", "and now?"]
    assert [turn.schedule is None for turn in messages] == [True, False]
    assert (result["outcome"], result["schedule"]) == ("answered", sent)
    assert [line["schedule"] for line in lines if line["kind"] == "request"] == [sent]
    assert "runs_missed" not in str(result["notices"])
    assert view.last_turn == messages[1]
    assert view.next_runs == [NOON + timedelta(hours=n) for n in (2, 3, 4)]
    assert view.schedule.last_due_at == NOON + timedelta(hours=1)


async def test_without_a_conversation_each_run_starts_one_in_its_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, monkeypatch) as s:
        schedule_id = await s.add(project_id="garden")
        for hour in (1, 2):
            await s.at(hour)
            await s.ended(schedule_id)
        views = await s.services.views()
    assert [view.conversation.project_id for view in views] == ["garden", "garden"]


@pytest.mark.parametrize(("message", "told"), [("hello", "in time"), ("你好", "没有按时运行")])
async def test_missed_runs_are_told_and_made_up_for_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, message: str, told: str
) -> None:
    async with scene(tmp_path, monkeypatch) as s:
        schedule_id = await s.add(message)
    async with scene(tmp_path, monkeypatch) as s:
        await s.at(3.3)
        await s.at(3.3)
        result = await s.ended(schedule_id)
        (turn,) = await s.turns()
        view = await s.view(schedule_id)
    (notice,) = (one for one in result["notices"] if one["code"] == "runs_missed")
    assert "3" in notice["message"]
    assert told in notice["message"]
    assert result["schedule"]["missed"] == view.schedule.last_missed == 3
    assert turn.id == view.schedule.last_turn_id
    assert view.next_runs[0] == NOON + timedelta(hours=4)


@pytest.mark.parametrize("looks", range(1, 7))
async def test_a_due_time_that_falls_while_the_server_starts_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: int
) -> None:
    """It falls before each of the moments at which the server looks at the clock: the first runs
    make up for 13:00 alone, the later ones stand for 14:00, too.
    """
    async with scene(tmp_path, monkeypatch) as s:
        schedule_id = await s.add()
    async with scene(tmp_path, monkeypatch) as s:
        s.now = NOON + timedelta(hours=2, seconds=-looks)
        s.tick = timedelta(seconds=1)
        await s.runner.run_due(lambda _: True)
        s.tick = timedelta()
        await s.turns()
        await s.at(2.01)
        turns = await s.turns()
        view = await s.view(schedule_id)
    two = NOON + timedelta(hours=2)
    told = [(turn.schedule.due_at, turn.schedule.missed) for turn in turns if turn.schedule]
    first, *more = sorted(told)
    assert first == (NOON + timedelta(hours=1), 1)
    assert more == [(two, 0)] or (not more and turns[0].created_at >= two)
    assert view.next_runs[0] == NOON + timedelta(hours=3)


@pytest.mark.parametrize("message", ["hello", "你好"])
@pytest.mark.parametrize("server", ["that runs", "that starts"])
async def test_after_a_clock_that_was_a_year_ahead_a_schedule_is_due_by_the_right_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, message: str, server: str
) -> None:
    async with scene(tmp_path, monkeypatch) as s:
        schedule_id = await s.add(message)
        broken_id = await s.add("never")
        await s.at(365 * 24)
        for ran in (schedule_id, broken_id):
            await s.ended(ran)
        s.lose_zone(broken_id)
        if server == "that runs":
            await is_due_by_the_right_clock(s, schedule_id)
    if server == "that starts":
        async with scene(tmp_path, monkeypatch) as s:
            await is_due_by_the_right_clock(s, schedule_id)


async def is_due_by_the_right_clock(s: Scene, schedule_id: str) -> None:
    """Look by the right clock: the run of a year later stood for 13:00, too, and not for 14:00."""
    for hours, next_hour in ((0.5, 1), (1, 2)):
        await s.at(hours)
        assert (await s.view(schedule_id)).next_runs[0] == NOON + timedelta(hours=next_hour)
    assert len(await s.turns()) == 2
    await s.at(2)
    result = await s.ended(schedule_id)
    assert result["schedule"]["due_at"] == "2026-11-20T14:00:00.000Z"
    assert result["schedule"]["missed"] == 0
    assert (await s.view(schedule_id)).next_runs[0] == NOON + timedelta(hours=3)


async def test_a_schedule_whose_time_zone_the_server_lost_says_so_and_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, monkeypatch) as s:
        lost_id, kept_id = await s.add("hello"), await s.add("你好")
        s.lose_zone(lost_id)
        await s.at(1)
        await s.ended(kept_id)
        lost, kept = await s.services.chat.schedules.listed(ME)
        assert (lost.schedule.id, lost.last_turn) == (lost_id, None)
        assert lost.next_runs == [NOON + timedelta(hours=1)]
        assert lost.schedule.problem is not None
        assert lost.schedule.problem["code"] == "time_zone_unknown"
        assert "Asia/Gone" in lost.schedule.problem["message"]
        assert kept.next_runs[0] == NOON + timedelta(hours=2)
        change = {"time_zone": "Asia/Kolkata"}
        found = await s.services.chat.schedules.change(ME, lost_id, change)
        assert found.schedule.problem is None
        assert found.next_runs[0] == NOON + timedelta(hours=1.5)


async def test_a_clock_that_goes_back_a_little_runs_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, monkeypatch) as s:
        schedule_id = await s.add()
        for hours in (1, 1 - 0.5 / 60, 1 - 10 / 60, 1, 1.01):
            await s.at(hours)
            await s.turns()
        assert len(await s.turns()) == 1
        assert (await s.view(schedule_id)).next_runs[0] == NOON + timedelta(hours=2)


async def fail(*_: object) -> None:
    """Fail as a store does that is out of reach."""
    await anyio.lowlevel.checkpoint()
    raise StoreUnavailable("lost")


async def test_a_run_whose_note_was_lost_is_not_run_again_and_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the server is killed between the acceptance and its note."""
    async with scene(tmp_path, monkeypatch) as s:
        first, second = await s.add("one"), await s.add("two")
        with monkeypatch.context() as patched:
            patched.setattr(ScheduleStore, "put", fail)
            await s.at(1.5)
        assert {turn.message for turn in await s.turns()} == {"one", "two"}
        assert (await s.view(first)).schedule.last_at is None
        await s.at(2.5)
        assert len(await s.turns()) == 2
        assert (await s.view(second)).schedule.last_missed == 1
        await s.at(2.5)
        turns = await s.turns()
    assert [turn.schedule and turn.schedule.missed for turn in turns] == [1, 1, 1, 1]


async def test_a_repeated_key_leaves_the_last_run_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, monkeypatch) as s:
        schedule_id, run = await s.add(), s.services.chat.schedules.run
        first = await run(ME, schedule_id, "once")
        noted = (await s.view(schedule_id)).schedule
        s.now += timedelta(hours=1)
        assert await run(ME, schedule_id, "once") == first
        assert (await s.view(schedule_id)).schedule == noted
        await run(ME, schedule_id, "other")
        noted = (await s.view(schedule_id)).schedule
        s.now += timedelta(hours=1)
        assert await run(ME, schedule_id, "once") == first
        assert (await s.view(schedule_id)).schedule == noted
        assert len(await s.turns()) == 2


async def test_a_repeated_key_notes_a_run_whose_note_was_lost_at_its_own_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the server is killed between the acceptance and its note."""
    async with scene(tmp_path, monkeypatch) as s:
        schedule_id, run = await s.add(), s.services.chat.schedules.run
        with monkeypatch.context() as patched:
            patched.setattr(ScheduleStore, "put", fail)
            with pytest.raises(StoreUnavailable):
                await run(ME, schedule_id, "once")
        (turn,) = await s.turns()
        s.now = NOON + timedelta(hours=1)
        assert (await run(ME, schedule_id, "once")).turn_id == turn.id
        last = (await s.view(schedule_id)).schedule
    assert (last.last_at, last.last_turn_id) == (NOON, turn.id)


@pytest.mark.parametrize("message", ["hello", "你好"])
async def test_a_run_without_a_key_that_cannot_be_noted_is_no_error_that_invites_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, message: str
) -> None:
    async with scene(tmp_path, monkeypatch) as s:
        schedule_id = await s.add(message)
        with monkeypatch.context() as patched:
            patched.setattr(ScheduleStore, "put", fail)
            accepted = await s.services.chat.schedules.run(ME, schedule_id, None)
        (turn,) = await s.turns()
        assert (accepted.turn_id, turn.message) == (turn.id, message)


async def test_two_loops_run_a_due_time_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, monkeypatch) as s:
        await s.add()
        other = ScheduleRunner(s.runner._parts, s.services.chat.intake)  # noqa: SLF001
        s.now = NOON + timedelta(hours=1)
        async with anyio.create_task_group() as loops:
            for runner in (s.runner, other):
                loops.start_soon(runner.run_due, lambda _: True)
        assert len(await s.turns()) == 1


async def test_the_loop_runs_what_was_missed_and_what_comes_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, monkeypatch) as s, anyio.create_task_group() as loop:
        first = await s.add()
        s.now = NOON + timedelta(hours=1.5)
        loop.start_soon(s.runner.run, lambda user_id: user_id == ME)
        await s.ran(first)
        s.now = NOON + timedelta(hours=1.99)
        second = await s.add("later")
        s.now = NOON + timedelta(hours=2)
        s.runner.wake()
        await s.ran(second)
        await s.turns()
        loop.cancel_scope.cancel()


async def test_the_loop_goes_on_when_the_database_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, monkeypatch) as s, anyio.create_task_group() as loop:
        schedule_id = await s.add()
        s.now = NOON + timedelta(hours=1)
        asked = anyio.Event()
        with monkeypatch.context() as patched:

            async def due(*_: object) -> None:
                asked.set()
                await fail()

            patched.setattr(ScheduleStore, "due", due)
            loop.start_soon(s.runner.run, lambda user_id: user_id == ME)
            await asked.wait()
        s.runner.wake()
        await s.ran(schedule_id)
        await s.turns()
        loop.cancel_scope.cancel()


async def test_the_loop_fails_by_schedules_that_are_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that it counts as a failure to report."""
    async with scene(tmp_path, monkeypatch) as s:
        broken = AsyncMock(side_effect=StoreDamaged("The database file is damaged."))
        monkeypatch.setattr(ScheduleStore, "due", broken)
        with anyio.fail_after(30), pytest.raises(StoreDamaged):
            await s.runner.run(lambda user_id: user_id == ME)


async def test_a_refused_message_stays_due_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, monkeypatch, max_running_turns=1) as s:
        schedule_id = await s.add()
        running = await s.services.begin()
        await s.at(1)
        refused = (await s.view(schedule_id)).schedule
        await s.services.stop(running)
        await s.services.chat.schedules.change(ME, schedule_id, {"name": "Later"})
        await s.at(1.1)
        result = await s.ended(schedule_id)
        ran = (await s.view(schedule_id)).schedule
    assert refused.problem is not None
    assert refused.problem["code"] == "overloaded"
    assert refused.due_at == NOON + timedelta(hours=1)
    assert (ran.problem, ran.last_missed, result["outcome"]) == (None, 1, "answered")
    assert result["schedule"]["name"] == "Later"
    assert result["schedule"]["due_at"] == "2026-11-20T13:00:00.000Z"


async def test_a_run_waits_for_the_last_one_of_its_schedule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, monkeypatch) as s:
        schedule_id = await s.add(HANG)
        await s.at(1)
        first = (await s.view(schedule_id)).last_turn
        assert first is not None
        await s.at(2)
        waiting = await s.view(schedule_id)
        assert waiting.schedule.problem is not None
        assert waiting.schedule.problem["code"] == "still_running"
        assert waiting.last_turn is not None
        assert waiting.last_turn.id == first.id
        await s.services.stop(Accepted(conversation_id=first.conversation_id, turn_id=first.id))
        await s.at(2.01)
        second = (await s.view(schedule_id)).last_turn
        assert second is not None
        assert second.id != first.id
        await s.services.stop(Accepted(conversation_id=second.conversation_id, turn_id=second.id))


async def test_a_due_message_waits_its_turn_in_a_busy_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, monkeypatch) as s:
        running = await s.services.begin()
        schedule_id = await s.add(conversation_id=running.conversation_id)
        await s.at(1)
        (waiting,) = (await s.services.view(running.conversation_id)).queue
        await s.services.stop(running)
        result = await s.ended(schedule_id)
    assert (result["turn_id"], result["outcome"]) == (waiting.id, "answered")


async def test_deleting_its_conversation_switches_a_schedule_off_until_it_gets_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, monkeypatch) as s:
        place = (await s.services.ask("hello"))["conversation_id"]
        schedule_id = await s.add(conversation_id=place)
        await s.services.delete(place)
        await s.at(1)
        off = await s.view(schedule_id)
        changed = {"conversation_id": None, "enabled": True}
        on = await s.services.chat.schedules.change(ME, schedule_id, changed)
    assert off.schedule.problem is not None
    assert off.schedule.problem["code"] == "conversation_deleted"
    assert (off.schedule.enabled, off.next_runs, off.last_turn) == (False, [], None)
    assert (on.schedule.problem, on.next_runs[0]) == (None, NOON + timedelta(hours=2))


async def test_nothing_runs_for_a_user_who_is_not_served_or_while_the_server_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, monkeypatch) as s:
        schedule_id = await s.add()
        s.now = NOON + timedelta(hours=1)
        await s.runner.run_due(lambda _: False)
        await s.services.chat.intake.shut_down(grace_s=0)
        await s.at(1)
        view = await s.view(schedule_id)
    assert (view.last_turn, view.schedule.problem) == (None, None)
    assert view.schedule.due_at == NOON + timedelta(hours=1)


async def test_what_came_due_while_a_schedule_was_off_is_not_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, monkeypatch) as s:
        schedule_id = await s.add(enabled=False)
        await s.at(3.5)
        on = await s.services.chat.schedules.change(ME, schedule_id, {"enabled": True})
        renamed = await s.services.chat.schedules.change(ME, schedule_id, {"name": "x"})
        moved = await s.services.chat.schedules.change(ME, schedule_id, {"cron": "30  * * * *"})
        assert await s.turns() == []
    assert on.next_runs[0] == renamed.next_runs[0] == NOON + timedelta(hours=4)
    assert (moved.next_runs[0], moved.schedule.cron) == (
        NOON + timedelta(hours=4.5),
        "30 * * * *",
    )


async def test_deleting_a_schedule_ends_nothing_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, monkeypatch) as s:
        schedule_id = await s.add(script({"delay_ms": 50}, {"text": "I am done."}))
        await s.at(1)
        await s.services.chat.schedules.delete(ME, schedule_id)
        (turn,) = await s.turns()
        assert (await s.services.messages_of(turn.conversation_id))[0].result is not None
        assert await s.services.chat.schedules.listed(ME) == []
        await s.at(9)
        assert len(await s.turns()) == 1


async def test_the_turn_of_a_schedule_asks_and_waits_as_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = {"tool": "Write", "input": {"file_path": "b.txt", "content": "beta"}}
    async with scene(tmp_path, monkeypatch, approvals="on") as s:
        schedule_id = await s.add(script(write, {"text": "Written."}))
        await s.at(1)
        turn = (await s.view(schedule_id)).last_turn
        assert turn is not None
        accepted = Accepted(conversation_id=turn.conversation_id, turn_id=turn.id)
        await s.services.answer(await s.services.pending_in(accepted), "allow")
        result = await s.services.result_of(accepted)
    assert [tool["status"] for tool in result["tools"]] == ["ok"]


async def test_a_scheduled_message_is_the_persons_own_words_for_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, monkeypatch) as s:
        schedule_id = await s.add("Remember: the backups are kept in the cellar.")
        await s.at(1)
        result = await s.ended(schedule_id)
    (saved,) = result["memory"]["saved"]
    assert "cellar" in saved["title"]
