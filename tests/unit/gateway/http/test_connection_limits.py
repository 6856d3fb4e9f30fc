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


@pytest.mark.parametrize("descriptors", [128, 256, 1024, 1600])
def test_a_third_of_the_descriptors_is_left_for_everything_else(
    monkeypatch: pytest.MonkeyPatch, descriptors: int
) -> None:
    limits = limits_with(monkeypatch, descriptors)
    closing = 4 * limits.accept_at_once
    assert (descriptors - OPEN) / 3 < limits.max_connections + closing < (descriptors - OPEN) * 0.7


@pytest.mark.parametrize("descriptors", [10, OPEN, OPEN + 1])
def test_a_server_without_descriptors_takes_one_connection(
    monkeypatch: pytest.MonkeyPatch, descriptors: int
) -> None:
    assert limits_with(monkeypatch, descriptors) == ConnectionLimits(
        max_connections=1, accept_at_once=1
    )


@pytest.mark.parametrize("descriptors", [1_000_000, psutil.RLIM_INFINITY])
def test_more_descriptors_than_needed_change_nothing(
    monkeypatch: pytest.MonkeyPatch, descriptors: int
) -> None:
    assert limits_with(monkeypatch, descriptors) == ConnectionLimits()
