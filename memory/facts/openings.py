"""The one rule by which Candor reads a wish itself: how a message begins.

It makes up for a model that was asked to remember or to forget and called no tool.
"""

import re
from typing import Final

from policies.secrets import MASK, MAX_KEPT_CHARS

_REMEMBER: Final = re.compile(
    r"\s*(?:(?:please\s+)?remember\b|note\s?[:：]|(?:请)?记住|记一下|备忘)", re.IGNORECASE
)
_MASKED: Final = re.compile(rf"\S{{0,{MAX_KEPT_CHARS}}}{re.escape(MASK)}")
_FORGET: Final = re.compile(r"\s*(?:forget\b|忘掉|忘记)", re.IGNORECASE)


def asks_to_remember(message: str) -> bool:
    """Return whether a message begins with a request to remember, and says what."""
    begin = _REMEMBER.match(message)
    return begin is not None and any(map(str.isalnum, message[begin.end() :]))


def says_more_than_secrets(masked: str) -> bool:
    """Return whether a masked message says more than a request to remember and masked secrets."""
    begin = _REMEMBER.match(masked)
    rest = masked[begin.end() :] if begin is not None else masked
    return any(map(str.isalnum, _MASKED.sub("", rest)))


def asks_to_forget(message: str) -> bool:
    """Return whether a message begins with a request to forget."""
    return _FORGET.match(message) is not None
