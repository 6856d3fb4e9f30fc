"""Leaves out of a text what nobody will want to read again.

Binary and encoded data, whole diffs, progress, repeated stack traces and log lines go wherever they
stand; what is still too long keeps its head, its errors, its conclusion and its tail.
"""

from collections.abc import Callable, Sequence
from typing import Final

from memory.episodes.clipping.blobs import drop_blobs
from memory.episodes.clipping.diffs import drop_diffs
from memory.episodes.clipping.fitting import fit
from memory.episodes.clipping.repeats import drop_repeated_lines
from memory.episodes.clipping.terminal import drop_progress, settle
from memory.episodes.clipping.traces import drop_repeated_traces
from memory.episodes.episode import Clipped, Sections

MAX_SECTION_CHARS: Final = 6_000
MAX_EPISODE_CHARS: Final = 16_000
MAX_READ_CHARS: Final = 400_000
"""Of a longer text the middle is not even looked at."""

_STEPS: Sequence[Callable[[str], str]] = (
    drop_blobs,
    settle,
    drop_progress,
    drop_diffs,
    drop_repeated_traces,
    drop_repeated_lines,
)
_MAX_ROUNDS = 64


def clip_text(text: str, limit: int = MAX_SECTION_CHARS) -> str:
    """Give the text without what is noise, at most `limit` characters (at least 200).

    Never longer than the text, the same for the same text, and clipping the result changes nothing:
    a step counts only where it shortens, and steps are taken until none does.
    """
    text = fit(text, MAX_READ_CHARS)
    for _ in range(_MAX_ROUNDS):
        before = len(text)
        for step in _STEPS:
            shorter = step(text)
            if len(shorter) < len(text):
                text = shorter
        text = fit(text, limit)
        if len(text) == before:
            break
    return text


def clip_sections(sections: Sections) -> tuple[Sections, tuple[Clipped, ...]]:
    """Clip each section to its bound, and the longest further until all fit together.

    What went is told by section, in characters; sections that lost nothing are not named.
    """
    given = sections.named()
    clipped = {name: clip_text(text) for name, text in given.items()}
    share = _share([len(text) for text in clipped.values()])
    clipped = {
        name: text if len(text) <= share else clip_text(text, share)
        for name, text in clipped.items()
    }
    told = tuple(
        Clipped(section=name, chars=len(text) - len(clipped[name]))
        for name, text in given.items()
        if len(clipped[name]) < len(text)
    )
    return Sections.of(clipped), told


def _share(lengths: Sequence[int]) -> int:
    """Find the longest that a section may be for all of them to fit."""
    left, share = MAX_EPISODE_CHARS, MAX_SECTION_CHARS
    for done, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - done)
        if length > share:
            return min(share, MAX_SECTION_CHARS)
        left -= length
    return MAX_SECTION_CHARS
