"""Hides the keys of the service where its answer repeats them, also if a key arrives in two pieces.
Pure.
"""

from collections.abc import Sequence


class KeyMask:
    """The keys; each byte of a key is replaced by `*`, so that lengths stay."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        # the longest first: one may be a part of another
        self._keys = sorted((key.encode() for key in keys if key), key=len, reverse=True)

    def hidden(self, data: bytes) -> bytes:
        """Return data without keys."""
        for key in self._keys:
            data = data.replace(key, b"*" * len(key))
        return data

    def unfinished_bytes(self, data: bytes) -> int:
        """Return how many bytes at the end of data may be the beginning of a key."""
        return max((_overlap(data, key) for key in self._keys), default=0)


class KeyFilter:
    """Hides the keys in one answer's body.

    Only the beginning of a key at the end of a piece waits for the next piece. An event ends with a
    line break, which no key begins with, so that no event waits.
    """

    def __init__(self, mask: KeyMask) -> None:
        self._mask = mask
        self._rest = b""

    def take(self, data: bytes) -> bytes:
        """Add a piece; return what can be passed on."""
        shown = self._mask.hidden(self._rest + data)
        settled = len(shown) - self._mask.unfinished_bytes(shown)
        self._rest = shown[settled:]
        return shown[:settled]

    def end(self) -> bytes:
        """Return the rest: no key comes of it any more."""
        rest, self._rest = self._rest, b""
        return rest


def _overlap(data: bytes, key: bytes) -> int:
    """Return the length of the longest end of data with which the key begins, but is not over."""
    start = data.find(key[:1], max(0, len(data) - len(key) + 1))
    while start >= 0:
        if key.startswith(data[start:]):
            return len(data) - start
        start = data.find(key[:1], start + 1)
    return 0
