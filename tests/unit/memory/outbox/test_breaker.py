"""The breaker: closed, open, half-open with one probe."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from memory.outbox.breaker import Breaker, BreakerLimits, BreakerState

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
OPEN_S = 60
LATER = AT + timedelta(seconds=OPEN_S)
LIMITS = BreakerLimits(max_failures=3, open_s=OPEN_S)


def breaker() -> tuple[Breaker, list[BreakerState]]:
    changes: list[BreakerState] = []
    return Breaker(LIMITS, changes.append), changes


def opened() -> tuple[Breaker, list[BreakerState]]:
    one, changes = breaker()
    for _ in range(3):
        one.failed(AT)
    return one, changes


def test_so_many_failures_in_a_row_open_it_and_one_fewer_does_not() -> None:
    one, changes = breaker()
    one.failed(AT)
    one.failed(AT)
    assert (one.state(AT), changes, one.may_try(AT)) == ("closed", [], True)
    one.failed(AT)
    assert (one.state(AT), changes, one.may_try(AT)) == ("open", ["open"], False)
    assert one.reopens_at() == LATER


def test_a_success_between_failures_begins_the_count_anew() -> None:
    one, changes = breaker()
    for _ in range(5):
        one.failed(AT)
        one.failed(AT)
        one.succeeded()
    assert (one.state(AT), changes) == ("closed", [])


def test_half_open_one_probe_alone_is_let_through() -> None:
    one, changes = opened()
    assert [one.may_try(LATER) for _ in range(4)] == [True, False, False, False]
    assert changes == ["open", "half_open"]


def test_a_good_probe_closes_it() -> None:
    one, changes = opened()
    one.may_try(LATER)
    one.succeeded()
    assert changes == ["open", "half_open", "closed"]
    assert one.may_try(LATER)
    one.failed(LATER)
    assert one.state(LATER) == "closed", "the failures of before are forgotten"


def test_a_bad_probe_opens_it_again_for_the_whole_time() -> None:
    one, changes = opened()
    one.may_try(LATER)
    one.failed(LATER)
    assert changes == ["open", "half_open", "open"]
    assert one.reopens_at() == LATER + timedelta(seconds=OPEN_S)
    assert not one.may_try(LATER)


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
TestAnyOrder = AnyOrder.TestCase
