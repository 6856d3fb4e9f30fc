"""Circuit breaker, back-off, and calls of JSON services."""

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from memory.errors import BackendUnavailable
from memory.outbox.loop import Backoff
from memory.remote.breaker import Breaker, BreakerLimits, BreakerState
from memory.remote.json_service import JsonService
from tests.unit.memory.backends.memu_services import Reply, served

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
OPEN_S = 60
LATER = AT + timedelta(seconds=OPEN_S)
LIMITS = BreakerLimits(max_failures=3, open_s=OPEN_S)


def breaker() -> tuple[Breaker, list[BreakerState]]:
    changes: list[BreakerState] = []
    return Breaker(LIMITS, changes.append), changes


def test_a_success_between_failures_begins_the_count_anew() -> None:
    one, changes = breaker()
    for _ in range(5):
        one.failed(AT)
        one.failed(AT)
        one.succeeded()
    assert (one.state(AT), changes) == ("closed", [])


@pytest.mark.parametrize("is_good", [True, False])
def test_a_good_probe_closes_it_and_a_bad_one_opens_it_again_for_the_whole_time(
    *, is_good: bool
) -> None:
    one, changes = breaker()
    for _ in range(3):
        one.failed(AT)
    one.may_try(LATER)
    if is_good:
        one.succeeded()
        one.failed(LATER)
        assert one.state(LATER) == "closed", "the failures of before are forgotten"
    else:
        one.failed(LATER)
        assert one.reopens_at() == LATER + timedelta(seconds=OPEN_S)
    assert changes == ["open", "half_open", "closed" if is_good else "open"]
    assert one.may_try(LATER) == is_good


def test_a_clock_that_is_set_back_keeps_it_open_no_longer() -> None:
    one, changes = breaker()
    for _ in range(3):
        one.failed(AT)
    assert one.state(AT - timedelta(seconds=OPEN_S - 1)) == "open"
    before = AT - timedelta(days=365)
    assert one.may_try(before)
    one.failed(before)
    assert one.state(before) == "open"
    assert one.reopens_at() == before + timedelta(seconds=OPEN_S)
    assert changes == ["open", "half_open", "open"]


class AnyOrder(RuleBasedStateMachine):
    """Whatever comes in whatever order: changes follow the drawing, and nobody passes an open one."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.changes = breaker()
        self.now = AT
        self.calling = 0

    @rule(seconds=st.integers(0, OPEN_S * 2))
    def pass_time(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(works=st.sampled_from(["yes", "no", "cut off"]))
    def call(self, works: str) -> None:
        before = self.one.state(self.now)
        if not self.one.may_try(self.now):
            assert before == "open"
            return
        assert before != "open"
        if works == "yes":
            self.one.succeeded()
            assert self.one.state(self.now) == "closed"
        elif works == "no":
            self.one.failed(self.now)
            assert self.one.state(self.now) == "open" or before == "closed"
        else:
            self.one.gave_up()
            assert self.one.state(self.now) == before

    @invariant()
    def changes_follow_the_drawing(self) -> None:
        allowed = {
            ("closed", "open"),
            ("open", "half_open"),
            ("half_open", "half_open"),  # the probe before was cut off
            ("half_open", "open"),
            ("half_open", "closed"),
        }
        steps = ["closed", *self.changes]
        assert set(pairwise(steps)) <= allowed


AnyOrder.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


BACKOFF = Backoff(first_s=2, most_s=60, least_s=0.5, max_attempts=8)


def test_the_bound_doubles_up_to_the_longest_and_the_draw_spreads_over_it_but_the_least() -> None:
    waits = [BACKOFF.wait(attempts, lambda: 0.5) for attempts in (*range(1, 10), 1000)]
    halves = [timedelta(seconds=bound_s / 2) for bound_s in (2, 4, 8, 16, 32, 60, 60)]
    assert waits == [*halves, None, None, None]
    waits = [BACKOFF.wait(3, lambda part=part: part / 16) for part in range(16)]  # type: ignore[misc]
    assert waits == [timedelta(seconds=max(1, part) / 2) for part in range(16)]


def test_the_part_of_a_bound_that_is_not_drawn_is_always_waited() -> None:
    backoff = replace(BACKOFF, drawn_ratio=0.25)
    waits = [backoff.wait(3, lambda part=part: part) for part in (0.0, 0.5)]  # type: ignore[misc]
    assert waits == [timedelta(seconds=6), timedelta(seconds=7)]


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_a_wait_is_always_within_its_bounds(attempts: int, part: float) -> None:
    wait = Backoff(max_attempts=10**6).wait(attempts, lambda: part)
    assert wait is not None
    assert timedelta(seconds=0.5) <= wait <= timedelta(hours=1)


WAIT_S = 20


def service(address: str, *, timeout_s: float = WAIT_S) -> JsonService:
    return JsonService(address, name="It", timeout_s=timeout_s, max_bytes=1000, api_key="k")


@pytest.mark.parametrize("chars", [1000 - len('""') + 1, 5_000_000])
async def test_an_answer_beyond_it_is_not(chars: int) -> None:
    with served(lambda *_: (200, "x" * chars)) as address:
        one = service(address)
        with pytest.raises(BackendUnavailable, match="too much"):
            await one.call("GET", "/")
        await one.close()


async def test_a_service_that_does_not_answer_is_given_up() -> None:
    given_up = threading.Event()

    def wait(*_: Any) -> Reply:
        given_up.wait(WAIT_S)
        return 200, {}

    with served(wait) as address, anyio.fail_after(WAIT_S):
        one = service(address, timeout_s=0.1)
        with pytest.raises(BackendUnavailable, match="in time"):
            await one.call("GET", "/")
        given_up.set()
        await one.close()
