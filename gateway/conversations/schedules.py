"""Schedules, messages that are sent at the times of a cron expression, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from gateway.ids import ConversationId, ScheduleId, TurnId, UserId


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledRun:
    """What a turn says of the schedule that sent its message."""

    schedule_id: ScheduleId
    name: str
    """The schedule's name then."""
    due_at: datetime | None
    """The first due time that the run stands for; None: a person started it."""
    missed: int = 0
    """How many due times had no run in time; this one stands for all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A message that a person has sent again and again."""

    id: ScheduleId
    user_id: UserId
    name: str
    cron: str
    """Five fields; see `gateway.conversations.cron_times`."""
    time_zone: str
    """A name of the IANA database."""
    message: str
    conversation_id: ConversationId | None
    """Where the message goes; None: each run starts a conversation."""
    project_id: str | None
    """Of the conversations that it starts."""
    enabled: bool
    created_at: datetime
    due_at: datetime | None
    """The first due time that had no run yet; None if it is off, or no further one comes."""
    last_due_at: datetime | None = None
    """Of the last run; None also if a person started that."""
    last_at: datetime | None = None
    """When the last run was accepted; None: there was none."""
    last_turn_id: TurnId | None = None
    last_missed: int = 0
    problem: Mapping[str, str] | None = None
    """Why it does not run now: `code`, `message` and `at`; None if nothing is wrong."""
    revision: int = field(default=0, compare=False)
    """How often it was changed."""
