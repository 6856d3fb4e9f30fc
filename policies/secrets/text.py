"""Masks, spans, and the plain reading of a text in which secrets are looked for.

Full-width letters read as ASCII and invisible characters as nothing, so neither hides a secret.
Each character is folded by itself. Chinese punctuation (`，。：；！？（）`) stays, because it ends
a value.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MASK = "…[masked]"
MAX_KEPT_CHARS = 4
_KEPT_SHARE = 4
"""At most one character of this many is kept, so that short secrets do not show half of
themselves."""

_NOT_KEPT = re.compile(r"[@\s\\]")

Span = tuple[int, int]
_KEPT_SIGNS = "！（），：；？"
_FOLDABLE = (
    *range(0xFF01, 0xFF5F),  # full-width letters, digits, signs
    *range(0x2000, 0x200B),  # spaces of many widths
    *(0x00A0, 0x202F, 0x205F, 0x3000),
    *range(0x24B6, 0x24EA),  # circled letters
    *range(0x1D400, 0x1D800),  # mathematical letters
    *(0x017F, 0x212A),
)
_INVISIBLE = frozenset(
    chr(code)
    for first, last in (
        *((0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5)),
        *((0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164)),
        *((0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xE0000, 0xE0FFF)),
    )
    for code in range(first, last + 1)
)
_FOLDED = {
    chr(code): folded
    for code in _FOLDABLE
    if chr(code) not in _KEPT_SIGNS
    and len(folded := unicodedata.normalize("NFKC", chr(code))) == 1
    and folded.isascii()
}
_READ_AS = str.maketrans({**_FOLDED, **dict.fromkeys(_INVISIBLE)})
_UNLIKE = re.compile(
    f"[{''.join(char for char in (*_FOLDED, *_INVISIBLE) if char <= chr(0xFFFF))}]"
)
_UNLIKE_ASTRAL = re.compile("[\U0001d400-\U0001d7ff\U000e0000-\U000e0fff]")


def words(text: str) -> tuple[str, ...]:
    """Return the words of a list that is written as one text."""
    return tuple(text.split())


def lowered(text: str) -> str:
    """Return a text in small letters, each at the place of its capital."""
    return text.replace("İ", "i").lower()  # the one character whose small form is longer


@dataclass(frozen=True, slots=True)
class Masked:
    """A text without its secrets, and how many there were."""

    text: str
    count: int


@dataclass(frozen=True, slots=True)
class Plain:
    """A text as it is read, and where invisible characters were left out."""

    text: str
    left_out: Sequence[int] = ()
    """Positions in `text`, ascending; one for each character left out before it."""

    @classmethod
    def of(cls, text: str) -> "Plain":
        """Fold a text; ASCII costs nothing."""
        if text.isascii() or not (_UNLIKE.search(text) or _UNLIKE_ASTRAL.search(text)):
            return cls(text)
        invisible = (at for at, char in enumerate(text) if char in _INVISIBLE)
        return cls(text.translate(_READ_AS), [at - n for n, at in enumerate(invisible)])

    def source_start(self, at: int) -> int:
        """Return where in the source the character at `at` stands."""
        return at + bisect_right(self.left_out, at)

    def source_end(self, at: int) -> int:
        """Return where in the source a span ends that ends before `at`."""
        return self.source_start(at - 1) + 1 if at else 0


def mask_value(secret: str) -> str:
    """Return the replacement for a secret.

    It has no `@`, which would make it part of an address, and nothing of a key block's line ends.
    Of digits alone it keeps none: each is much of a PIN.
    """
    if secret.isdigit():
        return MASK
    kept = secret[: min(MAX_KEPT_CHARS, len(secret) // _KEPT_SHARE)]
    return f"{_NOT_KEPT.split(kept, maxsplit=1)[0]}{MASK}"


def mask_spans(text: str, plain: Plain, spans: Iterable[Span]) -> Masked:
    """Mask spans of the plain text in the text itself; those that overlap become one."""
    out: list[str] = []
    copied = count = 0
    for start, end in united(spans):
        out += [text[copied : plain.source_start(start)], mask_value(plain.text[start:end])]
        copied = plain.source_end(end)
        count += 1
    return Masked("".join([*out, text[copied:]]), count)


def united(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in order, those that overlap as one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
