"""Streamed text, made fit to be shown although it comes in pieces.

The model's service cuts where it likes, also in the middle of a secret or a path, and half of one is not
recognised. So what a secret could still come of waits: mostly the unfinished word, a little more behind
a word like `password`. All before it is told at once; Chinese text has no words to wait for.
"""

from gateway.turns.sanitizer import OutputSanitizer
from policies.secrets.stream import settled_chars

_SHORT_CHARS = 200
_PART_CHARS = 2_000
"""A longer piece is masked in parts: a search in one long text would keep other threads waiting."""


def shown_in_parts(text: str, sanitizer: OutputSanitizer) -> str:
    """Return a text of any length as a stream of it is shown."""
    masker = StreamMasker(sanitizer)
    return masker.feed(text) + masker.rest()


class StreamMasker:
    """Masks the pieces of one block of text."""

    def __init__(self, sanitizer: OutputSanitizer) -> None:
        self._sanitizer = sanitizer
        self._look_at_chars = 0
        self._held = ""

    @property
    def waiting_chars(self) -> int:
        """The number of characters that wait for what follows."""
        return len(self._held)

    def feed(self, piece: str) -> str:
        """Take a piece; gives what can be told now, perhaps nothing."""
        return "".join(
            self._feed(piece[at : at + _PART_CHARS]) for at in range(0, len(piece), _PART_CHARS)
        )

    def _feed(self, part: str) -> str:
        text = self._held + part
        if len(text) < self._look_at_chars:
            self._held = text
            return ""
        at = self._sanitizer.paths.settled_chars(text[: settled_chars(text)])
        self._held = text[at:]
        # each look reads all that waits: long waits are looked at again when they have grown by an eighth
        waits = len(self._held)
        self._look_at_chars = waits + waits // 8 if waits > _SHORT_CHARS else 0
        return self._sanitizer.text(text[:at])

    def rest(self) -> str:
        """Give what still waited; the block is over."""
        held, self._held, self._look_at_chars = self._held, "", 0
        return self._sanitizer.text(held)
