"""Tells quickly that a text names none of some tools and parameters.

Looking for every spelling of every name takes longer than all else that is done with a remembered
text, and most texts hold no part of any name.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

_RUN: Final = re.compile(r"[a-z0-9]+")
_JOINTS: Final = re.compile(r"__|::")
"""Any part of a name between them may stand for the name."""
_TURKISH_I: Final = "\u0130\u0131"
"""They end a name, or are an i of it to an expression without regard to case."""
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class NameParts:
    """Runs of letters and digits of which a text has one if it names one of the tools."""

    runs: frozenset[str] | None
    """In small letters; None if a name has other letters, so that every text may name it."""

    @classmethod
    def of(cls, names: Iterable[str]) -> "NameParts":
        """Take names of tools, and of parameters."""
        parts = [part for name in names for part in _JOINTS.split(name) if part]
        if not all(part.isascii() for part in parts):
            return cls(None)
        return cls(frozenset(run for part in parts for run in _runs_of(part)))

    def may_be_in(self, text: str) -> bool:
        """Return False only if a normalized text names none of them, in no spelling."""
        if self.runs is None or any(letter in text for letter in _TURKISH_I):
            return True
        return not self.runs.isdisjoint(_RUN.findall(text.lower()))


def _runs_of(part: str) -> Iterator[str]:
    """Yield a run of each way to write a name: as it is, with separators, and with humps."""
    as_it_is = _RUN.findall(part.lower())
    separated = _RUN.findall(_HUMP.sub(" ", part).lower())
    if as_it_is:
        yield max(as_it_is, key=len)
        yield max(separated, key=len)
        yield "".join(as_it_is)
