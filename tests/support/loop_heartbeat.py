"""The longest that a loop's thread computes between two turns of the loop."""

import time
from typing import Final

import anyio

MOST_S: Final = 0.02
"""Processor time between two turns of the loop, on the machine of `ADDITIONS_S`."""
ADDITIONS_S: Final = 0.05
"""What a million additions take there."""
_BEAT_S: Final = 0.001


def most_s() -> float:
    """Return `MOST_S` in proportion to this machine, at least."""
    before, total = time.thread_time(), 0
    for number in range(1_000_000):
        total += number
    return MOST_S * max(1.0, (time.thread_time() - before) / ADDITIONS_S)


class Heartbeat:
    """Beats on a loop; processor time, because the time of the clock shows how busy the machine is."""

    def __init__(self) -> None:
        self._longest_s = 0.0
        self._last_s = 0.0

    async def run(self) -> None:
        """Beat until cancelled."""
        self._last_s = time.thread_time()
        while True:
            await anyio.sleep(_BEAT_S)
            self._beat()

    async def longest_s(self) -> float:
        """Return the longest of the beats since the last call."""
        self._beat()
        longest_s, self._longest_s = self._longest_s, 0.0
        return longest_s

    def _beat(self) -> None:
        now = time.thread_time()
        self._longest_s = max(self._longest_s, now - self._last_s)
        self._last_s = now
