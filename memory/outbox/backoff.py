"""When a failed delivery is tried again: exponential, bounded, with full jitter.

Full jitter spreads the tries of many deliveries evenly (M. Brooker, "Exponential Backoff And Jitter",
AWS Architecture Blog, 2015).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How long to wait, and how often to try."""

    first_s: float = 2.0
    """The bound of the first wait; each next one is twice as long."""
    most_s: float = 3600.0
    least_s: float = 0.5
    """The least wait: a backend that fails at once is not asked again at once."""
    max_attempts: int = 10
    """The last failed one makes the delivery dead."""

    def wait(self, attempts: int, draw: Callable[[], float]) -> timedelta | None:
        """Return the wait after so many failed attempts, from 1; None to give up. `draw` is in [0, 1)."""
        if attempts >= self.max_attempts:
            return None
        bound = min(self.most_s, self.first_s * 2.0 ** min(attempts - 1, 60))
        return timedelta(seconds=max(self.least_s, bound * draw()))
