"""A circuit breaker: a backend that fails repeatedly is left alone for a while.

    closed ──(so many failures in a row)──► open ──(after a while)──► half-open, with one probe
      ▲                                       ▲                          │
      └──────────────── success ──────────────┼──────── failure ─────────┘

The caller passes the time.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

import anyio

from memory.clock import Now
from memory.errors import BackendResting, DeliveryRefused

BreakerState = Literal["closed", "open", "half_open"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerLimits:
    """When it opens, and for how long."""

    max_failures: int = 5
    open_s: float = 60.0


class Breaker:
    """One backend's breaker. Used on the loop only."""

    def __init__(
        self,
        limits: BreakerLimits,
        on_change: Callable[[BreakerState], None] = lambda _: None,
    ) -> None:
        self._limits = limits
        self._on_change = on_change
        self._failures = 0
        self._opened_at: datetime | None = None
        self._is_probing = False

    def state(self, now: datetime) -> BreakerState:
        """Return the state at a moment.

        Half-open, too, before it opened by as long as it stays open: the clock was set back.
        """
        if self._opened_at is None:
            return "closed"
        is_open = abs((now - self._opened_at).total_seconds()) < self._limits.open_s
        return "open" if is_open else "half_open"

    def reopens_at(self) -> datetime | None:
        """Return when the backend may be tried again; None if it may be tried now."""
        if self._opened_at is None:
            return None
        return self._opened_at + timedelta(seconds=self._limits.open_s)

    def may_try(self, now: datetime) -> bool:
        """Return whether to call the backend; half-open, one caller may at a time."""
        state = self.state(now)
        if state == "half_open" and not self._is_probing:
            self._is_probing = True
            self._on_change("half_open")
            return True
        return state == "closed"

    def succeeded(self) -> None:
        """Note that a call went well."""
        was_open = self._opened_at is not None
        self._failures, self._opened_at, self._is_probing = 0, None, False
        if was_open:
            self._on_change("closed")

    def failed(self, now: datetime) -> None:
        """Note that a call failed."""
        self._failures += 1
        if self._opened_at is None and self._failures < self._limits.max_failures:
            return
        was_open = self.state(now) == "open"
        self._opened_at, self._is_probing = now, False
        if not was_open:
            self._on_change("open")

    def gave_up(self) -> None:
        """Note that a call ended without a result: another one may probe."""
        self._is_probing = False


class ReadingBreakers:
    """The states of the breakers that guard questions to backends, as of their last change.

    The breaker of a backend's deliveries is another one: memU may take deliveries and answer no
    question.
    """

    def __init__(self, on_change: Callable[[str, BreakerState], None]) -> None:
        """Take `on_change`, which is called with `{backend}_reading` and the new state."""
        self.states: dict[str, BreakerState] = {}
        self._on_change = on_change

    def watch(self, backend: str) -> Callable[[BreakerState], None]:
        """Return what a breaker of the backend calls when its state changes."""
        self.states[backend] = "closed"

        def changed(state: BreakerState) -> None:
            self.states[backend] = state
            self._on_change(f"{backend}_reading", state)

        return changed


@contextmanager
def guarding(breaker: Breaker, now: Now) -> Iterator[None]:
    """Count how the block ends. A deadline that it misses is a failure, a refusal is none.

    Raise `BackendResting` if the block must not run now.
    """
    if not breaker.may_try(now()):
        raise BackendResting("It failed again and again lately, and is left alone for a while.")
    ends_at = anyio.current_effective_deadline()
    try:
        yield
    except DeliveryRefused:
        breaker.succeeded()  # it answers; this one it does not want
        raise
    except anyio.get_cancelled_exc_class():
        if anyio.current_time() < ends_at:
            breaker.gave_up()  # nobody wants to know any more
        else:
            breaker.failed(now())
        raise
    except BaseException:
        breaker.failed(now())
        raise
    breaker.succeeded()
