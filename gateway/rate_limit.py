"""A rate limit for each of many keys, in bounded memory."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)


class RateLimit(Generic[KeyT]):
    """Allows each key `burst` uses at once, and then one every `every_s` seconds.

    Only the `max_keys` keys used last are known.
    """

    def __init__(
        self,
        *,
        burst: int,
        every_s: float,
        max_keys: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._slack_s = (burst - 1) * every_s
        self._every_s = every_s
        self._max_keys = max_keys
        self._clock = clock
        self._recovered_at: OrderedDict[KeyT, float] = OrderedDict()
        """When a key may be used `burst` times at once again."""

    def take(self, key: KeyT) -> bool:
        """Use a key; return False if it was used too often."""
        if self.wait_s(key) > 0:
            return False
        now = self._clock()
        self._recovered_at[key] = max(now, self._recovered_at.get(key, now)) + self._every_s
        self._recovered_at.move_to_end(key)
        if len(self._recovered_at) > self._max_keys:
            self._recovered_at.popitem(last=False)
        return True

    def wait_s(self, key: KeyT) -> float:
        """Return the seconds until a key may be used; 0 if it may be used now."""
        now = self._clock()
        return max(0.0, self._recovered_at.get(key, now) - now - self._slack_s)
