"""How many connections there may be, by the file descriptors that there are."""

import psutil
import pytest

from gateway.http.connections import ConnectionLimits, limits_from_system

pytestmark = pytest.mark.skipif(
    not hasattr(psutil.Process, "rlimit"), reason="this system does not report its limit"
)
OPEN = 24


def limits_with(monkeypatch: pytest.MonkeyPatch, descriptors: int) -> ConnectionLimits:
    monkeypatch.setattr(psutil.Process, "rlimit", lambda *_: (descriptors, descriptors))
    monkeypatch.setattr(psutil.Process, "num_fds", lambda _: OPEN)
    return limits_from_system()


def test_a_third_of_the_descriptors_is_left_for_everything_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for descriptors in (128, 256, 1024, 1600):
        limits = limits_with(monkeypatch, descriptors)
        used = limits.max_connections + 4 * limits.accept_at_once  # four rounds to close others
        free = descriptors - OPEN
        assert free / 3 < used < free * 0.7
    for descriptors in (10, OPEN, OPEN + 1):
        one = ConnectionLimits(max_connections=1, accept_at_once=1)
        assert limits_with(monkeypatch, descriptors) == one
    for descriptors in (1_000_000, psutil.RLIM_INFINITY):
        assert limits_with(monkeypatch, descriptors) == ConnectionLimits()
