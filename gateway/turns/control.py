"""How a running turn is told to end, and how long it may take."""

import math

import anyio

from gateway.turns.evidence import StopReason
from gateway.turns.reply import Cause


class TurnControl:
    """The handle on one turn: the first reason to stop stands, later ones change nothing."""

    def __init__(self) -> None:
        self.reason: StopReason | None = None
        self.cause: Cause | None = None
        self._asked = anyio.Event()
        self.finished = anyio.Event()
        """Set when the turn's result is stored."""

    @property
    def is_stopping(self) -> bool:
        """Whether the turn was told to end; it has not ended for that."""
        return self.reason is not None

    def stop(self, reason: StopReason, cause: Cause | None = None) -> None:
        """Tell the turn to end. Idempotent."""
        if self.reason is None:
            self.reason = reason
            self.cause = cause
            self._asked.set()

    async def wait_stop(self) -> None:
        """Wait until the turn is told to end."""
        await self._asked.wait()


class TurnClock:
    """The time that a turn has left; stands still while a person is asked."""

    def __init__(self, limit_s: float) -> None:
        self._left_s = limit_s
        self._since: float | None = anyio.current_time()
        self._pauses = 0
        self._changed = anyio.Event()

    @property
    def left_s(self) -> float:
        """Seconds left; negative when overdrawn."""
        if self._since is None:
            return self._left_s
        return self._left_s - (anyio.current_time() - self._since)

    @property
    def is_paused(self) -> bool:
        """Whether it stands still."""
        return self._pauses > 0

    def pause(self) -> None:
        """Stop the clock; pauses nest."""
        self._pauses += 1
        if self._since is not None:
            self._left_s = self.left_s
            self._since = None
            self._tell_change()

    def go_on(self) -> None:
        """End one pause."""
        self._pauses -= 1
        if self._pauses == 0:
            self._since = anyio.current_time()
            self._tell_change()

    async def wait_over(self) -> None:
        """Wait until no time is left."""
        while self._since is None or self.left_s > 0:
            changed = self._changed
            with anyio.move_on_after(math.inf if self._since is None else self.left_s):
                await changed.wait()

    def _tell_change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
