"""A rate limit for repeated records of the server's log."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from gateway.rate_limit import RateLimit

_BURST: Final = 20
_EVERY_S: Final = 2.0
_MAX_KINDS: Final = 500

_Kind = tuple[str, int, str]


class RepeatLimit(logging.Filter):
    """Drops records whose kind repeats too often; the next one that passes has their count.

    A kind is a logger, a level and a message without its arguments. No record is dropped of a kind that
    occurs less often than every `_EVERY_S` seconds. Thread-safe.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._limit: RateLimit[_Kind] = RateLimit(
            burst=_BURST, every_s=_EVERY_S, max_keys=_MAX_KINDS, clock=clock
        )
        self._left_out: Counter[_Kind] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record passes; its `left_out` is the number of dropped ones before it."""
        kind = (record.name, record.levelno, _message_of(record))
        with self._lock:
            if not self._limit.take(kind):
                self._left_out[kind] += 1
                return False
            left_out = self._left_out.pop(kind, 0)
        if left_out:
            fields = record.msg if isinstance(record.msg, dict) else record.__dict__
            fields["left_out"] = left_out
        return True


def _message_of(record: logging.LogRecord) -> str:
    message: object = record.msg
    return str(message.get("event") if isinstance(message, dict) else message)
