"""What the readers of one conversation share: its last events, and an alarm."""

from collections import deque
from collections.abc import Sequence

import anyio

from gateway.conversations.model import TurnEvent

_MAX_CHARS = 1_000_000
"""A window holds no more data than this, whatever the number of its events."""


class Channel:
    """The window of one conversation and the alarm that wakes its readers."""

    def __init__(self, floor: int, size: int) -> None:
        self._window: deque[TurnEvent] = deque()
        self._size = size
        self._chars = 0
        self.floor = floor
        """Every stored event with a higher `seq` is in the window."""
        self.alarm = anyio.Event()
        self.calls = 0
        """How often readers were woken for something else than an event."""
        self.users = 0

    def show(self, events: Sequence[TurnEvent]) -> None:
        """Take events that are stored, and wake the readers."""
        self._window.extend(events)
        self._chars += sum(len(event.data) for event in events)
        while len(self._window) > self._size or self._chars > _MAX_CHARS:
            oldest = self._window.popleft()
            self._chars -= len(oldest.data)
            self.floor = oldest.seq
        self._ring()

    def call(self) -> None:
        """Wake the readers without an event."""
        self.calls += 1
        self._ring()

    def _ring(self) -> None:
        self.alarm.set()
        self.alarm = anyio.Event()

    def after(self, seq: int) -> list[TurnEvent]:
        """Give the window's events after a place, which is not below `floor`."""
        found = []
        for one in reversed(self._window):
            if one.seq <= seq:
                break
            found.append(one)
        found.reverse()
        return found
