from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.clock import elapsed_ms, from_rfc3339, rfc3339, utc_now

MOMENTS = st.datetimes(
    min_value=datetime(1, 1, 3),  # noqa: DTZ001  hypothesis adds the zone
    max_value=datetime(9999, 12, 29),  # noqa: DTZ001
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=8)), timezone(timedelta(hours=-11))]),
)


def test_a_moment_is_written_as_the_contract_says() -> None:
    moment = datetime(2026, 11, 20, 20, 0, 1, 999_999, timezone(timedelta(hours=8)))
    assert rfc3339(moment) == "2026-11-20T12:00:01.999Z"
    assert rfc3339(datetime(2026, 1, 2, tzinfo=UTC)) == "2026-01-02T00:00:00.000Z"


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(AssertionError):
        rfc3339(datetime(2026, 11, 20))  # noqa: DTZ001  the fault that is tested


@given(MOMENTS)
def test_what_was_written_is_read_to_the_millisecond(moment: datetime) -> None:
    read = from_rfc3339(rfc3339(moment))
    assert read.utcoffset() == timedelta(0)
    assert timedelta(0) <= moment - read < timedelta(milliseconds=1)
    assert rfc3339(read) == rfc3339(moment)


@given(MOMENTS, MOMENTS)
def test_texts_sort_as_moments_do(one: datetime, other: datetime) -> None:
    if rfc3339(one) < rfc3339(other):
        assert one < other


def test_elapsed_time_is_never_negative() -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    assert elapsed_ms(begin, begin + timedelta(seconds=1.2346)) == 1235
    assert elapsed_ms(begin, begin - timedelta(days=1)) == 0


def test_now_is_aware_and_in_utc() -> None:
    assert utc_now().utcoffset() == timedelta(0)
