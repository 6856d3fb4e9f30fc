"""Text that is safe to show, and the checks that command lines of every shell share."""

import unicodedata

from policies.denials import denied

MAX_SHOWN_CHARS = 80
MAX_COMMAND_CHARS = 4096
MAX_WORDS = 512
BLANK = " \t"

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Characters that a person cannot see in an approval, and that some file systems drop."""


def show(text: str) -> str:
    """Return a text shortened and without hidden characters, fit for a reason."""
    shown = text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"
    return "".join("�" if unicodedata.category(c) in _HIDDEN_CATEGORIES else c for c in shown)


def has_hidden_character(text: str) -> bool:
    """Return whether a text holds a control, format, surrogate, private or line-separating
    character.
    """
    return any(unicodedata.category(c) in _HIDDEN_CATEGORIES for c in text)


def check_command_text(command: str) -> None:
    """Refuse a command that is too long or not plainly visible; line breaks are left
    to the caller.
    """
    if len(command) > MAX_COMMAND_CHARS:
        raise denied("command_too_long.command_text", MAX_COMMAND_CHARS)
    refused = _HIDDEN_CATEGORIES | {"Zs"}
    for char in command:
        if char not in "\t\n\r " and unicodedata.category(char) in refused:
            raise denied("control_character", ord(char))
