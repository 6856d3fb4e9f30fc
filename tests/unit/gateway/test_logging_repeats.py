"""What the server's log does with records that repeat."""

import logging

import pytest
import structlog

from gateway.observability.logging import RepeatLimit, configure_logging
from tests.unit.gateway.test_logging import Stream, restored

__all__ = ["restored"]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def record(event: str, level: int = logging.ERROR) -> logging.LogRecord:
    return logging.LogRecord("ours", level, "f.py", 1, event, (), None)


def test_a_burst_passes_and_then_one_now_and_then_that_counts_the_rest() -> None:
    clock = Clock()
    limit = RepeatLimit(clock)
    passed = [limit.filter(record("accept_failed")) for _ in range(1000)]
    assert (sum(passed), passed[:20]) == (20, [True] * 20)
    clock.now += 2
    later = record("accept_failed")
    assert limit.filter(later)
    assert later.__dict__["left_out"] == 980
    assert not limit.filter(record("accept_failed"))


def test_other_records_are_not_held_back() -> None:
    limit = RepeatLimit(Clock())
    for _ in range(1000):
        limit.filter(record("accept_failed"))
    assert limit.filter(record("accept_failed", logging.WARNING))
    assert limit.filter(record("turn_failed"))


@pytest.mark.parametrize("get", [logging.getLogger, structlog.get_logger])
def test_the_log_is_limited_for_both_sorts_of_loggers(get: type) -> None:
    stream = Stream()
    configure_logging(json=True, stream=stream)
    for _ in range(50):
        get("ours").warning("disk_full")
    assert [row["event"] for row in stream.records()] == ["disk_full"] * 20
