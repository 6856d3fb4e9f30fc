"""Recognises questions about all of memory, by the four keywords of the field."""

import re
from typing import Final

_MAX_CHARS: Final = 400
"""A longer message is about what it holds."""
_KEYWORD: Final = re.compile(r"(?<![a-z])memory(?![a-z])|个人记忆|记忆系统|记忆", re.IGNORECASE)


def asks_about_memory(text: str) -> bool:
    """Return whether a message asks about what is remembered."""
    return len(text) <= _MAX_CHARS and _KEYWORD.search(text) is not None
