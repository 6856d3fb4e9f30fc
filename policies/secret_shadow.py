"""What is read in a text's place when secrets are looked for: plain letters, nothing invisible.

A Chinese input method writes `ｐａｓｓｗｏｒｄ＝`, a web page a blank that is none, and a zero-width character
in the middle of a token hides it from every expression. So a shadow of the text is read, and what is
found there is masked in the text itself: all around the secret stays as it was written.

Each character is folded by itself, so that the shadows of two pieces are the shadow of the whole. The
punctuation of Chinese (`，。：；！？（）`) stays: it says where a value ends.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from policies.masks import Span

_KEPT = "！（），：；？"
_FOLDABLE = (
    *range(0xFF01, 0xFF5F),  # full-width letters, digits, signs
    *range(0x2000, 0x200B),  # blanks of many widths
    *(0x00A0, 0x202F, 0x205F, 0x3000),
    *range(0x24B6, 0x24EA),  # circled letters
    *range(0x1D400, 0x1D800),  # letters of mathematics
    *(0x017F, 0x212A),
)
_COMMON = "\uffff"
_FOLDED = {
    chr(one): folded
    for one in _FOLDABLE
    if chr(one) not in _KEPT
    and len(folded := unicodedata.normalize("NFKC", chr(one))) == 1
    and folded.isascii()
}
_INVISIBLE = frozenset(
    chr(one)
    for first, last in (
        *((0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5)),
        *((0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164)),
        *((0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xE0000, 0xE0FFF)),
    )
    for one in range(first, last + 1)
)
_READ_AS = str.maketrans({**_FOLDED, **dict.fromkeys(_INVISIBLE)})
_UNLIKE = (  # apart, because a class of the common plane alone is fast
    re.compile(f"[{''.join(one for one in (*_FOLDED, *_INVISIBLE) if one <= _COMMON)}]"),
    re.compile("[\U0001d400-\U0001d7ff\U000e0000-\U000e0fff]"),
)


def lowered(text: str) -> str:
    """Give a text in small letters and with the same length; only one character has a longer small form."""
    return text.replace("İ", "i").lower()


@dataclass(frozen=True, slots=True)
class Shadow:
    """A text as it is read, and where in it something invisible was left out."""

    text: str
    left_out: Sequence[int]
    """Places in `text`, in their order; one for each character."""

    @classmethod
    def of(cls, text: str) -> "Shadow":
        """Fold a text; most texts are their own shadow, and plain ASCII costs nothing."""
        if text.isascii() or not any(one.search(text) for one in _UNLIKE):
            return cls(text, ())
        invisible = (at for at, one in enumerate(text) if one in _INVISIBLE)
        left_out = [at - before for before, at in enumerate(invisible)]
        return cls(text.translate(_READ_AS), left_out)

    def start(self, at: int) -> int:
        """Give where in the text itself a character of the shadow stands, or where the text ends."""
        return at + bisect_right(self.left_out, at)

    def end(self, at: int) -> int:
        """Give where in the text itself a stretch is over that ends before `at`."""
        return self.start(at - 1) + 1 if at else 0


class Page:
    """A text on its way through the masks."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.count = 0
        """How many secrets were masked."""
        self._shadow = Shadow.of(text)
        self._is_plain = self._shadow.text == text

    @property
    def read(self) -> str:
        """The text in which secrets are looked for."""
        return self._shadow.text

    def mask(self, spans: Sequence[Span]) -> None:
        """Put something in the place of stretches of `read`; in their order, none over another."""
        if not spans:
            return
        self.count += len(spans)
        out: list[str] = []
        copied = 0
        for start, end, new in spans:
            out += [self.text[copied : self._shadow.start(start)], new]
            copied = self._shadow.end(end)
        self.text = "".join([*out, self.text[copied:]])
        self._shadow = Shadow(self.text, ()) if self._is_plain else Shadow.of(self.text)
