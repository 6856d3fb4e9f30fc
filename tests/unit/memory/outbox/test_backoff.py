"""When a failed delivery is tried again."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from memory.outbox.worker import Backoff

BACKOFF = Backoff(first_s=2, most_s=60, least_s=0.5, max_attempts=8)


def test_the_bound_doubles_with_each_attempt_up_to_the_longest_and_the_last_gives_up() -> None:
    waits = [BACKOFF.wait(attempts, lambda: 0.5) for attempts in (*range(1, 10), 1000)]
    halves = [timedelta(seconds=bound_s / 2) for bound_s in (2, 4, 8, 16, 32, 60, 60)]
    assert waits == [*halves, None, None, None]


def test_the_draw_spreads_the_wait_over_the_whole_bound_but_the_least() -> None:
    waits = [BACKOFF.wait(3, lambda part=part: part / 16) for part in range(16)]  # type: ignore[misc]
    assert waits[0] == timedelta(seconds=0.5)
    assert waits[1:] == [timedelta(seconds=part / 2) for part in range(1, 16)]


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_a_wait_is_always_within_its_bounds(attempts: int, part: float) -> None:
    wait = Backoff(max_attempts=10**6).wait(attempts, lambda: part)
    assert wait is not None
    assert timedelta(seconds=0.5) <= wait <= timedelta(hours=1)
