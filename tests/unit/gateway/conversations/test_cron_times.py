"""Due times against a search that looks at every minute, in zones whose clocks do odd things."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.conversations.cron_times import (
    MAX_COUNTED,
    CronFault,
    check_times_blocking,
    due_times_blocking,
    missed_blocking,
)

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
BERLIN = "Europe/Berlin"
ZONES = [
    *(BERLIN, "America/New_York", "UTC", "Asia/Kolkata"),
    *("Australia/Lord_Howe", "Antarctica/Troll"),  # change by half an hour, and by two hours
    *("America/Santiago", "America/Havana", "Africa/Cairo"),  # change at midnight
]
MINUTE, SPAN = timedelta(minutes=1), timedelta(days=1)


def changes_of(zone: ZoneInfo) -> Iterator[datetime]:
    """Yield the moments of a year at which a zone's clocks change, and one at which they do not."""
    yield NOW
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    while moment.year == 2026:
        moment, before = moment + timedelta(minutes=30), moment
        if moment.astimezone(zone).utcoffset() != before.astimezone(zone).utcoffset():
            yield moment


CHANGES = {name: list(changes_of(ZoneInfo(name))) for name in ZONES}


def every_minute(cron: str, zone: ZoneInfo, after: datetime) -> list[datetime]:
    """Find the due times of `SPAN` after a moment by looking at every minute."""
    fields = CronSim(cron, datetime(2026, 1, 1))  # noqa: DTZ001  wall time

    def names(wall: datetime) -> bool:
        is_time = wall.minute in fields.minutes and wall.hour in fields.hours
        return is_time and wall.month in fields.months and fields.match_day(wall.date())

    begin = after.replace(second=0, microsecond=0) - timedelta(hours=6)
    minutes = [begin + n * MINUTE for n in range(31 * 60)]
    walls = {moment: moment.astimezone(zone).replace(tzinfo=None, fold=0) for moment in minutes}
    if any(field.startswith("*") for field in cron.split()[:2]):
        found = {moment for moment, wall in walls.items() if names(wall)}
    else:
        found = {moment for moment, wall in _first(walls).items() if names(wall)}
        for moment in minutes[1:]:  # what the clock skips is due right after the gap
            wall = walls[moment - MINUTE] + MINUTE
            while wall < walls[moment]:
                found |= {moment} if names(wall) else set()
                wall += MINUTE
    return sorted(moment for moment in found if after < moment <= after + SPAN)


def _first(walls: dict[datetime, datetime]) -> dict[datetime, datetime]:
    """Keep of wall times that come twice the first."""
    moments: dict[datetime, datetime] = {}
    for moment, wall in walls.items():
        moments.setdefault(wall, moment)
    return {moment: wall for wall, moment in moments.items()}


times = st.one_of(
    st.just("*"),
    st.sampled_from(["*/5", "*/20", "0,30", "7-50/11"]),
    st.integers(0, 59).map(str),
)
hours = st.one_of(
    st.sampled_from(["*", "*/2", "*/6", "0-3", "1,2", "23"]), st.integers(0, 4).map(str)
)
days = st.sampled_from(["* * *", "* * 0,6", "*/2 * *", "1-28 * 1-6", "L * *"])
crons = st.builds(lambda minute, hour, day: f"{minute} {hour} {day}", times, hours, days)
places = st.sampled_from(ZONES).flatmap(
    lambda name: st.tuples(st.just(name), st.sampled_from(CHANGES[name]))
)


AUTUMN = CHANGES[BERLIN][-1]


@example(cron="*/20 * * * *", place=(BERLIN, AUTUMN), minutes=-30, seconds=0)
@example(
    cron="7 */2 * * *",
    place=("Australia/Lord_Howe", CHANGES["Australia/Lord_Howe"][1]),
    minutes=-80,
    seconds=0,
)
@example(cron="30 2 * * *", place=(BERLIN, AUTUMN), minutes=10, seconds=0)
@given(cron=crons, place=places, minutes=st.integers(-300, 300), seconds=st.integers(0, 59))
def test_the_due_times_are_those_that_looking_at_every_minute_finds(
    cron: str, place: tuple[str, datetime], minutes: int, seconds: int
) -> None:
    name, change = place
    after = change + timedelta(minutes=minutes, seconds=seconds)
    found = takewhile(lambda at: at <= after + SPAN, due_times_blocking(cron, name, after))
    assert list(found) == every_minute(cron, ZoneInfo(name), after)


def local(cron: str, after: str, count: int) -> list[str]:
    moment = datetime.fromisoformat(after)
    found = islice(due_times_blocking(cron, BERLIN, moment), count)
    return [at.astimezone(ZoneInfo(BERLIN)).isoformat()[5:] for at in found]


def test_a_time_that_does_not_exist_or_comes_twice_is_due_once() -> None:
    skipped = local("30 2 * * *", "2026-03-28T12:00:00+01:00", 2)
    assert skipped == ["03-29T03:00:00+02:00", "03-30T02:30:00+02:00"]
    twice = local("30 2 * * *", "2026-10-24T12:00:00+02:00", 2)
    assert twice == ["10-25T02:30:00+02:00", "10-26T02:30:00+01:00"]


def test_a_pace_is_kept_over_a_change_of_the_clock() -> None:
    found = local("0 * * * *", "2026-10-25T01:30:00+02:00", 3)
    assert found == ["10-25T02:00:00+02:00", "10-25T02:00:00+01:00", "10-25T03:00:00+01:00"]


WRONG = [
    ("0 8 * *", "UTC", "cron"),
    ("0 0 8 * * *", "UTC", "cron"),
    ("@daily", "UTC", "cron"),
    ("60 8 * * *", "UTC", "cron"),
    ("0 8 30 2 *", "UTC", "cron"),
    ("* * */20 * 1L", "UTC", "cron"),
    *(("0 8 * * *", zone, "time_zone") for zone in ("Mars/Base", "../UTC", "right/UTC", "Europe")),
    ("0 8 * * *", "localtime", "time_zone"),  # a file of some machines
]


@pytest.mark.parametrize(("cron", "zone", "field"), WRONG)
def test_what_never_comes_due_is_refused_with_its_field(cron: str, zone: str, field: str) -> None:
    with pytest.raises(CronFault) as caught:
        check_times_blocking(cron, zone, NOW)
    assert caught.value.field == field
    assert str(caught.value).startswith(f"`{field}` ")


@given(st.lists(st.text("0123456789*/,-#LWMON²", max_size=8), min_size=5, max_size=5))
def test_any_text_is_a_time_or_a_fault(fields: list[str]) -> None:
    with suppress(CronFault):
        assert check_times_blocking(" ".join(fields), "UTC", NOW) > NOW


@pytest.mark.parametrize(
    ("now", "missed"),
    [
        ("2026-11-20T09:00:30+00:00", 0),
        ("2026-11-20T09:05:00+00:00", 1),
        ("2026-11-20T11:00:00.500+00:00", 2),
        ("2026-11-20T11:59:00+00:00", 3),
        ("2027-11-20T11:59:00+00:00", MAX_COUNTED),
    ],
)
def test_a_run_stands_for_the_due_times_that_had_none_in_time(now: str, missed: int) -> None:
    first = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
    assert missed_blocking("0 * * * *", "UTC", first, datetime.fromisoformat(now)) == missed


@pytest.mark.parametrize(("after_s", "missed"), [(85, 0), (120, 0), (121, 1), (200, 2)])
def test_a_due_time_that_is_at_most_two_minutes_old_is_not_missed_though_others_follow_it(
    after_s: int, missed: int
) -> None:
    first = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
    now = first + timedelta(seconds=after_s)
    assert missed_blocking("* * * * *", "UTC", first, now) == missed
