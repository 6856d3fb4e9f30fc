"""Recognises messages that ask about what is remembered, and not about a machine's or a person's
memory.

`memory_questions.toml` has the phrases. Those with another meaning are removed first (`memory
leak`, 记忆犹新). Some of the remaining phrases are clear; others count only if the message does not
mention machines. A false positive costs room in the prompt; a false negative an answer that denies
having any memory.
"""

import re
import tomllib
import unicodedata
from pathlib import Path
from typing import Final

_MAX_CHARS: Final = 4000
"""Of a longer message the beginning and the end are read, because a question stands before or after
what was pasted."""
_PHRASES: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_NAME: Final = re.compile("<<([a-z_]+)>>")


def _pattern(*names: str) -> re.Pattern[str]:
    text = "|".join("|".join(_PHRASES[name]) for name in names)
    return re.compile(_NAME.sub(lambda named: "|".join(_PHRASES[named[1]]), text))


_SOMETHING_ELSE: Final = _pattern("something_else")
_ABOUT_MACHINES: Final = _pattern("about_machines")
_PLAINLY: Final = _pattern(*_PHRASES["plainly"])
_PERHAPS: Final = _pattern("perhaps")


def asks_about_memory(text: str) -> bool:
    """Return whether a message asks about what is remembered."""
    asked = _SOMETHING_ELSE.sub(" ", _simplified(text))
    if _PLAINLY.search(asked):
        return True
    return _PERHAPS.search(asked) is not None and not _ABOUT_MACHINES.search(_simplified(text))


def _simplified(text: str) -> str:
    half = _MAX_CHARS // 2
    asked = text if len(text) <= _MAX_CHARS else f"{text[:half]} {text[-half:]}"
    clean = unicodedata.normalize("NFKC", asked).replace("\u2019", "'")
    return " ".join(clean[: 2 * _MAX_CHARS].casefold().split())  # one character may become many
