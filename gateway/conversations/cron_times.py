"""The due times of a cron expression in a time zone.

Blocking: zones are files, and a rare time takes long to find.

As in Debian's cron each wall time counts once: one that the clock skips is due right after the gap,
one that comes twice is due the first time. An expression whose minute or hour begins with `*` keeps
its pace instead: it is not due in a gap, and due in both hours of a repeated one.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from heapq import merge
from itertools import chain, islice, takewhile
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

MAX_COUNTED: Final = 1000
"""More due times than these are not counted."""
_ON_TIME: Final = timedelta(minutes=2)
"""A run that begins so soon after its due time was not missed."""
_FIELDS: Final = 5
_REPEATED: Final = timedelta(hours=3)
"""No clock is set back farther than this."""
_MINUTE: Final = timedelta(minutes=1)


_OF_THE_MACHINE: Final = frozenset({"localtime"})
"""Names of the machine's own files among those of the database."""


class CronFault(ValueError):
    """A cron expression or a time zone cannot be used; `field` names which."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


def check_times_blocking(cron: str, time_zone: str, now: datetime) -> datetime:
    """Return the first due time after `now`. Raise `CronFault` if there can be none."""
    if time_zone not in available_timezones() - _OF_THE_MACHINE:
        raise CronFault(
            "time_zone",
            "`time_zone` must be a name of the IANA time zone database, such as UTC.",
        )
    if len(cron.split()) != _FIELDS:
        raise CronFault(
            "cron",
            "`cron` must have five fields: minute, hour, day of the month, month, day of the week.",
        )
    try:
        first = next(due_times_blocking(cron, time_zone, now), None)
    except CronSimError as exc:
        fault = str(exc).removeprefix("Bad ")
        raise CronFault("cron", f"`cron` cannot be read: its {fault} field is wrong.") from None
    if first is None:
        raise CronFault("cron", "`cron` names a time that never comes.")
    return first


def due_times_blocking(cron: str, time_zone: str, after: datetime) -> Iterator[datetime]:
    """Yield the due times after a moment, in UTC and in order, without an end unless none comes."""
    zone, last = ZoneInfo(time_zone), after
    keeps_pace = any(field.startswith("*") for field in cron.split()[:2])
    start = (after.astimezone(zone) - _REPEATED).replace(tzinfo=None)
    find = partial(_moments, cron, zone, start, keeps_pace=keeps_pace)
    for moment in merge(*(find(fold=fold) for fold in range(1 + keeps_pace))):
        if moment > last:
            last = moment
            yield moment


def _moments(
    cron: str, zone: ZoneInfo, start: datetime, *, fold: int, keeps_pace: bool
) -> Iterator[datetime]:
    """Yield the moments of wall times; of one that comes twice the first, or the second."""
    for wall in CronSim(cron, start):
        moment, time = _moment(wall, zone, fold), wall
        while _wall(moment, zone) != time and not keeps_pace:
            time += _MINUTE
            moment = _moment(time, zone, fold)
        if _wall(moment, zone) == time:
            yield moment


def _moment(wall: datetime, zone: ZoneInfo, fold: int) -> datetime:
    return wall.replace(tzinfo=zone, fold=fold).astimezone(UTC)


def _wall(moment: datetime, zone: ZoneInfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def missed_blocking(cron: str, time_zone: str, due_at: datetime, now: datetime) -> int:
    """Return how many due times from `due_at` on have no run in time if one begins `now`.

    At most `MAX_COUNTED`.
    """
    times = chain([due_at], due_times_blocking(cron, time_zone, due_at))
    missed = takewhile(lambda moment: now - moment > _ON_TIME, times)
    return sum(1 for _ in islice(missed, MAX_COUNTED))
