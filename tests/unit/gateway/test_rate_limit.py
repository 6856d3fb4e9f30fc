"""Uses of keys, counted over time."""

from gateway.rate_limit import RateLimit


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_is_allowed_and_then_one_in_a_while_and_in_time_a_burst_again() -> None:
    clock = Clock()
    limit: RateLimit[str] = RateLimit(burst=3, every_s=2, max_keys=9, clock=clock)
    assert [limit.take("a") for _ in range(5)] == [True, True, True, False, False]
    assert limit.wait_s("a") == 2
    clock.now += 2
    assert [limit.take("a") for _ in range(2)] == [True, False]
    clock.now += 60
    assert [limit.take("a") for _ in range(4)] == [True, True, True, False]


def test_keys_do_not_share_and_the_oldest_is_forgotten_first() -> None:
    limit: RateLimit[int] = RateLimit(burst=1, every_s=2, max_keys=10, clock=Clock())
    assert all(limit.take(n) for n in range(20))
    assert [limit.take(n) for n in (19, 10, 0)] == [False, False, True]
