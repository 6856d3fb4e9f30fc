"""Proves that a person said something: the words are looked for in the messages of their
conversation.

What a file or a tool returned is in no message, so it can neither plant a fact nor have one
forgotten.
"""

import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import anyio.to_thread

_MIN_EVIDENCE: Final = 6
"""Letters and digits; a letter of a script without spaces counts as two. A shorter message is its
own evidence.
"""
_QUOTES: Final = str.maketrans("‘’‚“”„「」『』", '\'\'\'"""""""')
"""Models write other quotation marks than people do."""


@dataclass(frozen=True, slots=True)
class Message:
    """A person's message, and the turn that it began."""

    turn_id: str
    text: str


def plain(text: str) -> str:
    """Return a text in one form of Unicode, case, space and quotation marks, to compare it."""
    return " ".join(unicodedata.normalize("NFKC", text).translate(_QUOTES).casefold().split())


def is_said(evidence: str, message: str) -> bool:
    """Return whether `evidence` is enough to prove something and stands in `message`, word for
    word.
    """
    words, said = plain(evidence), plain(message)
    return words in said and (_weight(words) >= _MIN_EVIDENCE or (words != "" and words == said))


Prove = Callable[[str], Awaitable[Message | None]]
"""Returns the newest message of the person with this evidence; None if there is none."""


async def said_in(evidence: str, *, messages: Sequence[Message]) -> Message | None:
    """Return the first of these messages with this evidence; None if there is none."""
    for message in messages:
        if await anyio.to_thread.run_sync(is_said, evidence, message.text):
            return message
    return None


def _weight(text: str) -> int:
    return sum(1 if ord(letter) < _FIRST_WIDE else 2 for letter in text if letter.isalnum())


_FIRST_WIDE: Final = 0x2E80
"""From here on letters are Chinese, Japanese and Korean ones."""
