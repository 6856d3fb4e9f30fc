"""A user's schedules: list, show, add, change, run and delete them."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfoNotFoundError

import anyio.to_thread

from gateway.chat.intake import Intake
from gateway.chat.parts import ChatParts, ConversationAccess
from gateway.chat.schedule_runner import ScheduleRunner, change_schedule, request_of
from gateway.conversations.cron_times import CronFault, check_times_blocking, due_times_blocking
from gateway.conversations.model import Turn
from gateway.conversations.schedules import Schedule
from gateway.errors import Conflict, NotFound, UnprocessableEntity
from gateway.ids import UserId, new_schedule_id
from gateway.turns.requests import Accepted
from memory.errors import StoreUnavailable

_log = logging.getLogger(__name__)

_SHOWN_TIMES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleView:
    """A schedule with what comes of it."""

    schedule: Schedule
    next_runs: Sequence[datetime]
    """The next times at which it is due; the first may have passed if it waits."""
    last_turn: Turn | None
    """None if it never ran, or its turn was deleted."""


class Schedules:
    """The schedules of users. A method that is given the id of no schedule of the user raises
    `NotFound`.
    """

    def __init__(self, parts: ChatParts, access: ConversationAccess, intake: Intake) -> None:
        self._parts = parts
        self._store = parts.schedules
        self._access = access
        self._intake = intake
        self.runner = ScheduleRunner(parts, intake)

    async def listed(self, user_id: UserId) -> list[ScheduleView]:
        """List a user's schedules, oldest first."""
        return [await self._view(schedule) for schedule in await self._store.listed(user_id)]

    async def get(self, user_id: UserId, schedule_id: str) -> ScheduleView:
        """Return one schedule."""
        return await self._view(await self._find(user_id, schedule_id))

    async def create(self, user_id: UserId, fields: Mapping[str, Any]) -> ScheduleView:
        """Add a schedule; `fields` are those that a user sets.

        Raises:
            NotFound: there is no such conversation.
            UnprocessableEntity: it never comes due, or names a conversation and a project.
            Conflict: the user has too many, or schedules are off.
        """
        self._refuse_when_off()
        now = self._parts.now()
        schedule = Schedule(
            id=new_schedule_id(), user_id=user_id, created_at=now, due_at=None, **fields
        )
        schedule = await self._checked(schedule, is_moved=True, is_rescheduled=True)
        limit = self._parts.max_schedules
        if not await self._store.add(schedule, limit=limit):
            raise Conflict(
                f"You have {limit} schedules, the most that this server takes; delete one first.",
                code="too_many_schedules",
                details={"max_schedules": limit},
            )
        self.runner.wake()
        return await self._view(schedule)

    async def change(
        self, user_id: UserId, schedule_id: str, fields: Mapping[str, Any]
    ) -> ScheduleView:
        """Change some of the fields that a user sets; raises as `create` does."""
        async with self.runner.changing:
            schedule = await self._changed(user_id, schedule_id, fields)
            while not await self._store.put(schedule):  # another server has changed it meanwhile
                schedule = await self._changed(user_id, schedule_id, fields)
        self.runner.wake()
        return await self._view(schedule)

    async def _changed(
        self, user_id: UserId, schedule_id: str, fields: Mapping[str, Any]
    ) -> Schedule:
        """Return a schedule as it is to become."""
        before = await self._find(user_id, schedule_id)
        self._refuse_when_off()
        schedule = replace(before, **fields, problem=None)
        is_rescheduled = (before.cron, before.time_zone, before.enabled) != (
            *(schedule.cron, schedule.time_zone, schedule.enabled),
        )
        is_moved = schedule.conversation_id != before.conversation_id
        return await self._checked(schedule, is_moved=is_moved, is_rescheduled=is_rescheduled)

    async def delete(self, user_id: UserId, schedule_id: str) -> None:
        """Delete a schedule; a turn of it that runs or waits goes on."""
        async with self.runner.changing:
            if not await self._store.delete(user_id, schedule_id):
                raise _unknown()

    async def run(
        self,
        user_id: UserId,
        schedule_id: str,
        key: str | None,
        *,
        forward_key: str | None = None,
        is_in_doubt: bool = False,
    ) -> Accepted:
        """Send the message now, whether or not it is due; a repeated key sends nothing and returns
        the first turn again. Without a key, a message that was stored is no error, even if the run
        cannot be noted.

        `forward_key` is used without a `key`; `is_in_doubt` if another server may be storing the
        message under it. Raises as `Intake.accept` does, and `Conflict` if schedules are off.
        """
        used, is_in_doubt = key or forward_key, is_in_doubt and key is None
        async with self.runner.changing:
            schedule = await self._find(user_id, schedule_id)
            self._refuse_when_off()
            known = None if used is None else await self._parts.turns.find_key(user_id, used)
            request = replace(request_of(schedule, None, 0, used), is_in_doubt=is_in_doubt)
            accepted = await self._intake.accept(user_id, request)
            turn = known and await self._parts.turns.get(accepted.turn_id)
            at = turn.created_at if turn else self._parts.now()
            if turn and schedule.last_at is not None and at <= schedule.last_at:
                return accepted  # otherwise the server ended before the run could be noted
            run = partial(
                replace,
                last_due_at=None,
                last_at=at,
                last_turn_id=accepted.turn_id,
                last_missed=0,
            )
            try:
                await change_schedule(self._store, schedule, run)
            except StoreUnavailable:
                if key is not None:
                    raise  # a repetition notes it
                _log.warning("schedule_run_not_noted", extra={"schedule_id": schedule_id})
        return accepted

    async def _find(self, user_id: UserId, schedule_id: str) -> Schedule:
        schedule = await self._store.get(user_id, schedule_id)
        if schedule is None:
            raise _unknown()
        return schedule

    async def _checked(
        self, schedule: Schedule, *, is_moved: bool, is_rescheduled: bool
    ) -> Schedule:
        """Return a schedule with its due time; `is_moved` if its conversation is chosen now."""
        if schedule.conversation_id is not None and schedule.project_id is not None:
            raise UnprocessableEntity(
                "`project_id` is for new conversations; leave it or `conversation_id` out.",
                details={"field": "project_id"},
            )
        if schedule.conversation_id is not None and (is_moved or schedule.enabled):
            await self._access.find(schedule.user_id, schedule.conversation_id)
        if not is_rescheduled:
            return schedule
        cron = " ".join(schedule.cron.split())
        try:
            first = await anyio.to_thread.run_sync(
                check_times_blocking, cron, schedule.time_zone, self._parts.now()
            )
        except CronFault as exc:
            raise UnprocessableEntity(str(exc), details={"field": exc.field}) from None
        return replace(schedule, cron=cron, due_at=first if schedule.enabled else None)

    async def _view(self, schedule: Schedule) -> ScheduleView:
        last = schedule.last_turn_id
        return ScheduleView(
            schedule=schedule,
            next_runs=await anyio.to_thread.run_sync(self._next_runs_blocking, schedule),
            last_turn=None if last is None else await self._parts.turns.get(last),
        )

    def _next_runs_blocking(self, schedule: Schedule) -> list[datetime]:
        if schedule.due_at is None or not self._parts.runs_schedules:
            return []
        following = due_times_blocking(
            schedule.cron, schedule.time_zone, max(schedule.due_at, self._parts.now())
        )
        try:
            return [schedule.due_at, *islice(following, _SHOWN_TIMES - 1)]
        except ZoneInfoNotFoundError:  # an upgrade of the system may remove a name
            return [schedule.due_at]

    def _refuse_when_off(self) -> None:
        if not self._parts.runs_schedules:
            raise Conflict(
                "This server runs no schedules; CANDOR_SCHEDULES=on switches them on.",
                code="schedules_off",
            )


def _unknown() -> NotFound:
    return NotFound("There is no such schedule.")
