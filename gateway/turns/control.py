"""Stop a running turn, and bound its time."""

import math
from collections.abc import Awaitable, Callable

import anyio

from gateway.turns.evidence import StopReason
from gateway.turns.reply import Cause


class TurnControl:
    """Stops one turn; only the first reason counts."""

    def __init__(self) -> None:
        self.reason: StopReason | None = None
        self.cause: Cause | None = None
        self._asked = anyio.Event()
        self._scopes: list[anyio.CancelScope] = []
        """What to cancel when it is asked to stop."""
        self.finished = anyio.Event()
        """Set when the turn's result is stored."""

    @property
    def is_stopping(self) -> bool:
        """True if the turn was asked to stop; it may still be running."""
        return self.reason is not None

    @property
    def keeps_questions(self) -> bool:
        """True if it stops for a reason after which a person's answer still counts."""
        return self.cause in {"waiting", "shutdown"}

    def stop(self, reason: StopReason, cause: Cause | None = None) -> None:
        """Ask the turn to stop. Idempotent."""
        if self.reason is None:
            self.reason = reason
            self.cause = cause
            self._asked.set()
            for scope in self._scopes:
                scope.cancel()

    async def wait_stop(self) -> None:
        """Wait until the turn is asked to stop."""
        await self._asked.wait()

    async def run_unless_stopped(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work` and cancel it when the turn is asked to stop; do nothing if it already was."""
        if self.is_stopping:
            return
        with anyio.CancelScope() as scope:
            self._scopes.append(scope)
            try:
                await work()
            finally:
                self._scopes.remove(scope)


class TurnClock:
    """The time that a turn has left; pauses while a person is asked."""

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
        """True if the clock is paused."""
        return self._pauses > 0

    def pause(self) -> None:
        """Pause the clock; pauses nest."""
        self._pauses += 1
        if self._since is not None:
            self._left_s = self.left_s
            self._since = None
            self._wake()

    def go_on(self) -> None:
        """End one pause."""
        self._pauses -= 1
        if self._pauses == 0:
            self._since = anyio.current_time()
            self._wake()

    async def wait_over(self) -> None:
        """Wait until no time is left."""
        while self._since is None or self.left_s > 0:
            changed = self._changed
            with anyio.move_on_after(math.inf if self._since is None else self.left_s):
                await changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


async def run_until_first(*waits: Callable[[], Awaitable[object]]) -> None:
    """Run all of these until one returns, then cancel the others."""
    async with anyio.create_task_group() as tasks:

        async def run(wait: Callable[[], Awaitable[object]]) -> None:
            await wait()
            tasks.cancel_scope.cancel()

        for wait in waits:
            tasks.start_soon(run, wait)
