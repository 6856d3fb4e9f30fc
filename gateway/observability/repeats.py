"""A bound on how often the server's log repeats itself."""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

_BURST: Final = 20
"""So many records of one kind pass at once,"""
_EVERY_S: Final = 2.0
"""and then one in this time."""
_MAX_KINDS: Final = 500

_Kind = tuple[str, int, str]


class _Bucket:
    __slots__ = ("at", "left_out", "tokens")

    def __init__(self, now: float) -> None:
        self.tokens = float(_BURST)
        self.at = now
        self.left_out = 0


class RepeatLimit(logging.Filter):
    """Drops records whose kind repeats too often; the next one that passes counts them.

    A kind is a logger, a level and a message before its arguments are filled in. Nothing is lost of a
    kind that occurs less often than every `_EVERY_S` seconds. For any thread.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[_Kind, _Bucket] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record passes; add `left_out` to it if others before it did not."""
        with self._lock:
            bucket = self._bucket((record.name, record.levelno, _message_of(record)))
            if bucket.tokens < 1:
                bucket.left_out += 1
                return False
            bucket.tokens -= 1
            left_out, bucket.left_out = bucket.left_out, 0
        if left_out:
            fields = record.msg if isinstance(record.msg, dict) else record.__dict__
            fields["left_out"] = left_out
        return True

    def _bucket(self, kind: _Kind) -> _Bucket:
        now = self._clock()
        bucket = self._buckets.setdefault(kind, _Bucket(now))
        self._buckets.move_to_end(kind)
        if len(self._buckets) > _MAX_KINDS:
            self._buckets.popitem(last=False)
        bucket.tokens = min(_BURST, bucket.tokens + (now - bucket.at) / _EVERY_S)
        bucket.at = now
        return bucket


def _message_of(record: logging.LogRecord) -> str:
    message: object = record.msg
    return str(message.get("event") if isinstance(message, dict) else message)
