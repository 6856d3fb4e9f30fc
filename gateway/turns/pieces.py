"""Streamed text, masked although it comes in pieces.

The model's service cuts where it likes, also in the middle of a secret, and half a secret is not
recognised. So the word that is not finished yet waits for its end; all before it is told at once.
Chinese text has no such words and never waits.
"""

import re
from collections.abc import Callable

_UNFINISHED = re.compile(r"[A-Za-z0-9_\-./+=:@~%]*\Z")
_MOST_HELD_CHARS = 512
"""A longer run is told as it comes: no secret of a known form is that long on one line."""


class Pieces:
    """The pieces of one block of text."""

    def __init__(self, mask: Callable[[str], str]) -> None:
        self._mask = mask
        self._held = ""

    def feed(self, piece: str) -> str:
        """Take a piece; gives what can be told now, perhaps nothing."""
        text = self._held + piece
        found = _UNFINISHED.search(text[-_MOST_HELD_CHARS - 1 :])
        assert found is not None, "the pattern matches the empty end too"
        length = len(found[0])
        at = len(text) if length > _MOST_HELD_CHARS else len(text) - length
        self._held = text[at:]
        return self._mask(text[:at])

    def rest(self) -> str:
        """Give what still waited; the block is over."""
        held, self._held = self._held, ""
        return self._mask(held)
