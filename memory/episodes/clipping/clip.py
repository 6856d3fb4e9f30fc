"""Removes noise from a text, and shortens it.

Binary and encoded data, diffs, progress, repeated stack traces and log lines are replaced; a text
that is still too long keeps its head, its errors, its conclusion and its tail.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

from memory.episodes.clipping.blobs import drop_blobs
from memory.episodes.clipping.diffs import drop_diffs
from memory.episodes.clipping.fitting import fit
from memory.episodes.clipping.repeats import drop_repeated_lines, drop_repeated_traces
from memory.episodes.episode import Clipped, Sections
from policies.content.progress import progress_of

_ESCAPES: Final = re.compile(
    r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?"
    r"|\x1b[ -/]{0,4}[0-~]?",
)
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+")


def settle(text: str) -> str:
    """Take out colours and control characters, and of a line that was overwritten all but the last.

    Never longer than the text; a second time changes nothing.
    """
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if "\r" in text:
        lines = text.replace("\r\n", "\n").split("\n")
        text = "\n".join(_last_shown(line) if "\r" in line else line for line in lines)
    return _CONTROLS.sub("", text)


def _last_shown(line: str) -> str:
    shown = [part for part in line.split("\r") if part.strip()]
    return shown[-1] if shown else ""


def drop_progress(text: str) -> str:
    """Keep, of progress lines that follow one another, the last of each thing that progresses."""
    kept: list[str] = []
    run: dict[str, str] = {}
    for line in text.split("\n"):
        thing = progress_of(line)
        if thing is not None:
            run.pop(thing, None)
            run[thing] = line
            continue
        kept.extend(run.values())
        run.clear()
        kept.append(line)
    kept.extend(run.values())
    return "\n".join(kept)


MAX_SECTION_CHARS: Final = 6_000
MAX_EPISODE_CHARS: Final = 16_000
MAX_READ_CHARS: Final = 400_000
"""The middle of a longer text is dropped unread."""

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
    """Return the text without noise, at most `limit` characters (at least 200).

    The result is never longer than the text, and clipping it again changes nothing.
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

    Also returns the removed characters of each section that lost any.
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
    """Return the maximum length of a section with which all fit."""
    left, share = MAX_EPISODE_CHARS, MAX_SECTION_CHARS
    for done, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - done)
        if length > share:
            return min(share, MAX_SECTION_CHARS)
        left -= length
    return MAX_SECTION_CHARS
