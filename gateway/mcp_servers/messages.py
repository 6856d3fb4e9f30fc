"""Which messages of an MCP server are read: parsing one holds up the event loop.

A text of some MiB takes milliseconds; as many bytes of brackets take seconds.
"""

import re
from itertools import islice
from typing import Final

MAX_MESSAGE_BYTES: Final = 4 * 1024 * 1024
_MAX_PARTS: Final = 50_000
"""Lists, objects and their items; some 100 ms."""
_PARTS: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[{,]')
"""A string as one, so that what stands in it does not count; and each part outside of strings."""


def is_readable(message: bytes | bytearray) -> bool:
    """Return whether a message is short and simple enough to be parsed."""
    if len(message) > MAX_MESSAGE_BYTES:
        return False
    if sum(map(message.count, (b"[", b"{", b","))) <= _MAX_PARTS:
        return True
    limit = _MAX_PARTS + 1
    return sum(1 for _ in islice(_PARTS.finditer(message), limit)) < limit
