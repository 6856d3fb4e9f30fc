"""Counts attempts that leave no trace in the conversation: failed and dropped calls, which a client repeats unchanged."""

from collections import OrderedDict
from collections.abc import Hashable


class AttemptCounter:
    """A tally per key that keeps the `max_keys` most recently used ones and forgets the rest."""

    def __init__(self, max_keys: int = 4096) -> None:
        self._max_keys = max_keys
        self._counts: OrderedDict[Hashable, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._counts)

    def note(self, key: Hashable) -> int:
        """Note one more attempt and return how many there were before."""
        before = self._counts.pop(key, 0)
        self._counts[key] = before + 1
        if len(self._counts) > self._max_keys:
            self._counts.popitem(last=False)
        return before
