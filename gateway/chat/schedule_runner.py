"""Send the messages of schedules when they are due.

A due message goes through `Intake.accept` under an idempotency key that is made of the schedule and
its due time, so that a crash, or a second loop, never sends it twice. One run stands for all due
times that had none in time. If a message cannot be taken now, its schedule stays due, says why, and
is tried again.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final
from zoneinfo import ZoneInfoNotFoundError

import anyio
import anyio.to_thread

from gateway.chat.intake import Intake
from gateway.chat.parts import ChatParts
from gateway.conversations.cron_times import due_times_blocking, missed_blocking
from gateway.conversations.schedules import Schedule, ScheduledRun
from gateway.conversations.sql.schedules import ScheduleStore
from gateway.errors import GatewayError, NotFound, ShuttingDown
from gateway.ids import TurnId, UserId
from gateway.turns.ownership import HeldElsewhere
from gateway.turns.requests import ChatRequest
from memory.clock import rfc3339
from memory.errors import StoreDamaged, StoreUnavailable

_log = logging.getLogger(__name__)

LONGEST_SLEEP_S: Final = 60.0
"""The clock may be set, or the machine asleep, meanwhile."""
_LOOK_AGAIN_S: Final = 1.0
"""After a look that failed, which is a line in the log."""
_MOST_TRIES: Final = 9
SHARED_SLEEP_S: Final = 2.0
"""Where other servers add schedules, too."""

_NO_ZONE: Final = "This server does not know the time zone {} any more; choose another one."
_SET_BACK: Final = timedelta(minutes=1)
"""A clock that went back by more was set; what was due within less has had its run."""

ServesUser = Callable[[UserId], bool]
"""True if the server still serves a user; nothing runs for others."""


class ScheduleRunner:
    """Runs schedules."""

    def __init__(self, parts: ChatParts, intake: Intake) -> None:
        self._parts = parts
        self._intake = intake
        self.changing = anyio.Lock()
        """Held while a schedule is read and changed."""
        self._changed = anyio.Event()
        self._last_look: datetime | None = None
        """By the clock, which may be set back."""

    def wake(self) -> None:
        """Look again at what is due: a schedule was added or changed."""
        self._changed.set()

    async def run(self, serves: ServesUser) -> None:
        """Run what is due until cancelled; first what was due while the server was not running.

        While the database is out of reach it is asked again and again. Raise `StoreDamaged` if what
        is due cannot be read.
        """
        while True:
            self._changed = anyio.Event()
            try:
                wait_s = await self.run_due(serves)
            except StoreDamaged:  # waiting does not help
                raise
            except StoreUnavailable as exc:
                _log.warning("schedules_unknown", extra={"reason": str(exc)})
                wait_s = _LOOK_AGAIN_S
            with anyio.move_on_after(wait_s):
                await self._changed.wait()

    async def run_due(self, serves: ServesUser) -> float:
        """Run what is due now; return the seconds until it should be looked at again."""
        for schedule in await self._parts.schedules.due(self._parts.now()):
            if not serves(schedule.user_id) or not await self._is_ours(schedule):
                continue
            try:
                async with self.changing:
                    await self._run_one(schedule)
            except ZoneInfoNotFoundError:  # an upgrade of the system may remove a name
                await self._tell(schedule, "time_zone_unknown", _NO_ZONE.format(schedule.time_zone))
            except Exception:  # noqa: BLE001  one schedule must not stop the others
                _log.exception("schedule_failed", extra={"schedule_id": schedule.id})
        now = self._parts.now()
        await self._follow_clock(now)
        following = await self._parts.schedules.next_due(now)
        longest_s = SHARED_SLEEP_S if self._parts.duty.is_shared else LONGEST_SLEEP_S
        if following is None:
            return longest_s
        return min(longest_s, max(0.0, (following - now).total_seconds()))

    async def _follow_clock(self, now: datetime) -> None:
        """Compute due times again if the clock was set back, maybe while no server ran.

        They were computed too late by a clock that was ahead.
        """
        last = self._last_look
        if last is None or now < last - _SET_BACK:
            schedules = await self._parts.schedules.later(now)
            find = partial(_find_earlier_blocking, schedules, now)
            for schedule, due_at in await anyio.to_thread.run_sync(lambda: list(find())):
                async with self.changing:
                    # not if it was changed since: it is due by the present clock then
                    await self._parts.schedules.put(replace(schedule, due_at=due_at))
        self._last_look = now

    async def _is_ours(self, schedule: Schedule) -> bool:
        """Return whether this server sends a message: one for a new conversation is sent by that
        which has the duty, any other by that which holds the conversation, or can take it.
        """
        if schedule.conversation_id is None:
            return self._parts.duty.is_held
        return await self._parts.ownership.elsewhere(schedule.conversation_id) is None

    async def _run_one(self, listed: Schedule) -> None:
        schedule = await self._parts.schedules.get(listed.user_id, listed.id)
        now = self._parts.now()
        if schedule is None or schedule.due_at is None or schedule.due_at > now:
            return  # it was changed meanwhile
        due_at, key = schedule.due_at, f"schedule:{schedule.id}:{rfc3339(schedule.due_at)}"
        known = await self._parts.turns.find_key(schedule.user_id, key)
        if known is not None:  # the server ended before it could be noted
            turn = await self._parts.turns.get(known.turn_id)
            run = turn and turn.schedule
            at = min(turn.created_at, now) if turn else now  # the clock may have been ahead
            await self._note_run(schedule, known.turn_id, due_at, at, run.missed if run else 0)
            return
        if await self._is_unfinished(schedule):
            await self._tell(
                schedule, "still_running", "Its last run has not ended; this one waits for that."
            )
            return
        count = partial(missed_blocking, schedule.cron, schedule.time_zone, due_at, now)
        missed = await anyio.to_thread.run_sync(count)
        turn_id = await self._send(schedule, due_at, missed, key)
        if turn_id is not None:
            await self._note_run(schedule, turn_id, due_at, now, missed)

    async def _send(
        self, schedule: Schedule, due_at: datetime, missed: int, key: str
    ) -> TurnId | None:
        """Send a due message; return its turn, or None if it was not taken."""
        try:
            accepted = await self._intake.accept(
                schedule.user_id, request_of(schedule, due_at, missed, key)
            )
        except (ShuttingDown, HeldElsewhere):  # another server sends it
            return None
        except NotFound as exc:  # its conversation is just being deleted
            off = replace(schedule, enabled=False, due_at=None)
            await self._tell(off, "conversation_deleted", exc.message)
            return None
        except GatewayError as exc:
            await self._tell(schedule, exc.specific_code, exc.message)
            return None
        return accepted.turn_id

    async def _is_unfinished(self, schedule: Schedule) -> bool:
        """Return whether the turn of the last run waits or runs, here or elsewhere."""
        last = schedule.last_turn_id
        if last is None or self._parts.lanes.find(last) is not None:
            return last is not None
        turn = await self._parts.turns.get(last) if self._parts.duty.is_shared else None
        return turn is not None and turn.state in {"queued", "running"}

    async def _note_run(
        self, schedule: Schedule, turn_id: TurnId, due_at: datetime, at: datetime, missed: int
    ) -> None:
        """Note the run of a due time that was accepted `at`, and what is due next."""
        times = partial(due_times_blocking, schedule.cron, schedule.time_zone, at)
        following = await anyio.to_thread.run_sync(lambda: next(times(), None))

        def noted(now: Schedule) -> Schedule:
            return replace(
                now,
                due_at=following if now.due_at == due_at else now.due_at,
                last_due_at=due_at,
                last_at=at,
                last_turn_id=turn_id,
                last_missed=missed,
                problem=None,
            )

        await change_schedule(self._parts.schedules, schedule, noted)

    async def _tell(self, schedule: Schedule, code: str, message: str) -> None:
        """Note why a schedule does not run now."""
        if schedule.problem is not None and schedule.problem["code"] == code:
            return
        _log.warning("schedule_waits", extra={"schedule_id": schedule.id, "code": code})
        problem = {"code": code, "message": message, "at": rfc3339(self._parts.now())}
        await self._parts.schedules.put(replace(schedule, problem=problem))


def _find_earlier_blocking(
    schedules: Iterable[Schedule], now: datetime
) -> Iterator[tuple[Schedule, datetime]]:
    """Yield the schedules that are due before the time that they have, with the right one."""
    for schedule in schedules:
        try:
            first = next(due_times_blocking(schedule.cron, schedule.time_zone, now), None)
        except ZoneInfoNotFoundError:  # its next run says so
            continue
        except Exception:  # noqa: BLE001  one schedule must not stop the others
            _log.exception("schedule_failed", extra={"schedule_id": schedule.id})
            continue
        if first is not None and schedule.due_at is not None and first < schedule.due_at:
            yield schedule, first


async def change_schedule(
    store: ScheduleStore, schedule: Schedule, change: Callable[[Schedule], Schedule]
) -> None:
    """Change a schedule, also if another server has changed it since it was read; nothing happens
    if it is gone.
    """
    known: Schedule | None = schedule
    for _ in range(_MOST_TRIES):
        if known is None or await store.put(change(known)):
            return
        known = await store.get(schedule.user_id, schedule.id)


def request_of(
    schedule: Schedule, due_at: datetime | None, missed: int, key: str | None
) -> ChatRequest:
    """Return the message that a run sends."""
    return ChatRequest(
        message=schedule.message,
        conversation_id=schedule.conversation_id,
        project_id=schedule.project_id,
        idempotency_key=key,
        schedule=ScheduledRun(
            schedule_id=schedule.id, name=schedule.name, due_at=due_at, missed=missed
        ),
    )
