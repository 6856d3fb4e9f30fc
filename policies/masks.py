"""What a masked secret looks like: `sk-a…[masked]`. Up to four characters stay, to tell two apart."""

import re
from collections.abc import Callable
from dataclasses import dataclass

MASK = "…[masked]"
MAX_KEPT_CHARS = 4
KEPT_SHARE = 4
"""At most one character of this many is kept, so that short secrets do not show half of themselves."""


Span = tuple[int, int, str]
"""Where something begins and ends that is replaced, and by what."""


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


def replaced_spans(
    text: str, pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str]
) -> list[Span]:
    """Give what `substitute` would replace, each as narrow as can be: what stays the same is no part of it."""
    return [
        _narrowed(match.start(), match[0], new)
        for match in pattern.finditer(text)
        if (new := replace(match)) != match[0]
    ]


def _narrowed(start: int, old: str, new: str) -> Span:
    most = min(len(old), len(new))
    same = next((at for at in range(most) if old[at] != new[at]), most)
    tail = next((at for at in range(most - same) if old[-1 - at] != new[-1 - at]), most - same)
    return start + same, start + len(old) - tail, new[same : len(new) - tail]


def replace_whole(match: re.Match[str]) -> str:
    """Mask all that was found, unless it is the rest of a mask."""
    return match[0] if match.string.startswith(MASK, match.end()) else mask_value(match[0])
