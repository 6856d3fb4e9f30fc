"""What a masked secret looks like: `sk-a…[masked]`. Up to four characters stay, to tell two apart."""

import re
from collections.abc import Callable
from dataclasses import dataclass

MASK = "…[masked]"
MAX_KEPT_CHARS = 4
KEPT_SHARE = 4
"""At most one character of this many is kept, so that short secrets do not show half of themselves."""


@dataclass(frozen=True, slots=True)
class Masked:
    """A text without its secrets, and how many there were."""

    text: str
    count: int


def mask_value(secret: str) -> str:
    """Give what stands in a secret's place; never an `@`, which would make an address of it again."""
    kept = secret[: min(MAX_KEPT_CHARS, len(secret) // KEPT_SHARE)]
    return f"{kept.partition('@')[0]}{MASK}"


def substitute(
    text: str, pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str]
) -> Masked:
    """Replace what a pattern finds; what `replace` leaves as it is does not count."""
    count = 0

    def count_and_replace(match: re.Match[str]) -> str:
        nonlocal count
        replaced = replace(match)
        count += replaced != match[0]
        return replaced

    return Masked(pattern.sub(count_and_replace, text), count)


def replace_whole(match: re.Match[str]) -> str:
    """Mask all that was found, unless it is the rest of a mask."""
    return match[0] if match.string.startswith(MASK, match.end()) else mask_value(match[0])
