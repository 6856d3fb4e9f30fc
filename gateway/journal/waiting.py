"""The lines that wait for the disk: bounded by count and by bytes, with room kept for responses.

At the bound a line is refused, never waited for: a turn must not stand still because a disk does.
"""

import dataclasses
from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Any, Generic, TypeVar

Entry = TypeVar("Entry")

MAX_WAITING_BYTES = 64 * 1024 * 1024
RESERVE_SHARE = 8
"""One part in so many is added to the bounds for the lines that matter most."""
_MIN_RESERVE_LINES = 16
_PLAIN_BYTES = 32
"""What a number, a key's slot or an object of an unknown sort is taken to hold."""
_MAX_LOOKED_AT = 4000


def estimate_bytes(value: Any) -> int:
    """Guess what a value holds in memory, in bounded time. Never raises."""
    total = 0
    waiting = deque([value])
    for _ in range(_MAX_LOOKED_AT):
        if not waiting:
            break
        one = waiting.popleft()
        total += _PLAIN_BYTES
        sort = type(one)
        if sort is str or sort is bytes or sort is bytearray:
            total += len(one)
        else:
            waiting.extend(_parts(one, sort))
    return total + len(waiting) * _PLAIN_BYTES


def _parts(one: Any, sort: type) -> Iterable[Any]:
    if sort is dict:
        return islice(one.values(), _MAX_LOOKED_AT)
    if sort is list or sort is tuple:
        return islice(one, _MAX_LOOKED_AT)
    if dataclasses.is_dataclass(sort):
        return _field_values(one)
    return ()


def _field_values(one: Any) -> list[Any]:
    try:
        return [getattr(one, field.name, None) for field in dataclasses.fields(one)]
    except Exception:  # noqa: BLE001  a field that raises when read; a guess needs no more
        return []


class WaitingLines(Generic[Entry]):
    """A bounded queue that refuses instead of waiting. For one thread.

    What was taken counts against the bounds until it is released: its memory is still held.
    """

    def __init__(self, *, max_lines: int, max_bytes: int) -> None:
        self._max_lines = max_lines
        self._max_bytes = max_bytes
        self._lines: deque[tuple[Entry, int]] = deque()
        self._held_lines = 0
        self._held_bytes = 0

    def __len__(self) -> int:
        return len(self._lines)

    def offer(self, entry: Entry, size: int, *, reserved: bool) -> bool:
        """Take in an entry of `size` bytes, or say False: no room. Reserved ones may use the reserve."""
        most_lines, most_bytes = self._max_lines, self._max_bytes
        if reserved:
            most_lines += max(_MIN_RESERVE_LINES, most_lines // RESERVE_SHARE)
            most_bytes += most_bytes // RESERVE_SHARE
        if self._held_lines >= most_lines or self._held_bytes + size > most_bytes:
            return False
        self._lines.append((entry, size))
        self._held_lines += 1
        self._held_bytes += size
        return True

    def take(self, *, max_lines: int, max_bytes: int) -> tuple[list[Entry], int]:
        """Give the oldest entries, at least one if there is one, and their bytes to release."""
        taken: list[Entry] = []
        total = 0
        while self._lines and len(taken) < max_lines and (not taken or total < max_bytes):
            entry, size = self._lines.popleft()
            taken.append(entry)
            total += size
        return taken, total

    def release(self, lines: int, size: int) -> None:
        """Give the room of taken entries back."""
        self._held_lines -= lines
        self._held_bytes -= size
