"""The one rule by which Candor reads a wish itself: how a message begins.

It makes up for a model that was asked to remember or to forget and called no tool.
"""

import re
from typing import Final

_REMEMBER: Final = re.compile(
    r"\s*(?:(?:please\s+)?remember\b|note\s?[:：]|(?:请)?记住|记一下|备忘)", re.IGNORECASE
)
_FORGET: Final = re.compile(r"\s*(?:forget\b|忘掉|忘记)", re.IGNORECASE)


def asks_to_remember(message: str) -> bool:
    """Return whether a message begins with a request to remember."""
    return _REMEMBER.match(message) is not None


def asks_to_forget(message: str) -> bool:
    """Return whether a message begins with a request to forget."""
    return _FORGET.match(message) is not None
