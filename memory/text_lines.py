"""Texts as they are told in short: in one line, and cut so that it shows."""

from typing import Final

_CUT: Final = "..."


def flat(text: str) -> str:
    """Give a text as one line: white space of all kinds, line breaks too, is one blank."""
    return " ".join(text.split())


def one_line(text: str, limit: int) -> str:
    """Give a text as one line of at most `limit` characters; a cut one ends in `…`."""
    line = flat(text)
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def clipped(text: str, most: int) -> str:
    """Give a text of at most `most` characters; of a longer one its beginning and `...` after it."""
    return text if len(text) <= most else f"{text[:most]}{_CUT}"
