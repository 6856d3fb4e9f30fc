"""The database's time, told without asking the database each time."""

from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from gateway.conversations.database_clock import DatabaseClock
from memory.stores.database import Connection, SqlDatabase

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
NOWHERE = cast(Connection, None)


class Time:
    """The time of a database, and of the machine, which began at another moment."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.database_s = 0.0
        self.machine_s = 5000.0
        monkeypatch.setattr("time.monotonic", lambda: self.machine_s)
        self.clock = DatabaseClock(cast(SqlDatabase, None), self.read)

    def read(self, _: Connection) -> int:
        return round((NOON + timedelta(seconds=self.database_s)).timestamp() * 1000)

    def pass_by(self, seconds: float) -> None:
        self.database_s += seconds
        self.machine_s += seconds

    def now_s(self) -> float:
        """Return the time that is told, in seconds after noon."""
        return (self.clock.now() - NOON).total_seconds()


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    return Time(monkeypatch)


def test_the_time_goes_on_between_two_looks_at_the_database(time: Time) -> None:
    assert time.clock(NOWHERE) == time.read(NOWHERE)
    assert time.now_s() == 0
    time.pass_by(7)
    assert time.now_s() == 7


def test_an_answer_that_came_late_does_not_turn_the_time_back(time: Time) -> None:
    time.clock(NOWHERE)
    time.machine_s += 0.5  # since the database was read
    time.clock(NOWHERE)
    assert time.now_s() == pytest.approx(0.5)
    time.database_s += 0.75
    time.clock(NOWHERE)
    assert time.now_s() == pytest.approx(0.75)


@pytest.mark.parametrize("step_s", [-3600, 3600])
def test_a_database_whose_clock_was_set_is_followed(time: Time, step_s: int) -> None:
    time.clock(NOWHERE)
    time.database_s += step_s
    time.clock(NOWHERE)
    assert time.now_s() == step_s
