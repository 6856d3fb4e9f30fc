"""What a terminal shows in the end: without colours, overwritten lines, spinners and progress bars."""

import re
from typing import Final

from policies.content.progress import progress_of
from policies.patterns import read_patterns

_PATTERNS = read_patterns(__file__)
_ESCAPES: Final = re.compile(_PATTERNS["escapes"])
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
