"""The division of a line for PowerShell into literal words; everything else is refused."""

import re
from dataclasses import dataclass

from policies.denials import denied
from policies.visible_text import BLANK, show

SINGLE_QUOTES = frozenset("‘’‚‛")
"""PowerShell takes these for straight single quotes, inside single quotes, too."""

_ELEMENT = re.compile(
    # in single quotes: '' is a quote, and a curved quote would end the text
    r"'(?:[^'‘’‚‛\n\r]|'')*+'"
    # in double quotes: no variable, no escape, and none of the curved double quotes
    r'|"[^"“”„$`\n\r]*+"'
    # outside quotes: nothing that is an operator, a variable, an escape, a quote or a dash in any
    # spelling
    r"|[^\s!\"#$%&'()+,;<=>@\[\]^`{|}“”„‘’‚‛–—―]++"
)
"""One name: in quotes or plain."""
_ARGUMENT = re.compile(
    # names with commas between them are a list; a blank or the end must follow
    rf"[ \t]*(?:{_ELEMENT.pattern})(?:[ \t]*,[ \t]*(?!-)(?:{_ELEMENT.pattern}))*+(?![^ \t])"
)


_FLAG = re.compile(r"-.*|/[A-Za-z]")
"""A parameter of PowerShell, known or not, or a switch of cmd."""


@dataclass(frozen=True, slots=True)
class Word:
    """A plain or quoted text, or a list of them."""

    texts: tuple[str, ...]
    """Without quotes; several: a list."""
    is_quoted: bool

    @property
    def flag(self) -> str:
        """Return a parameter or a switch of cmd in lower case; empty: the word is a value."""
        is_flag = not self.is_quoted and _FLAG.fullmatch(self.texts[0])
        return ",".join(self.texts).lower() if is_flag else ""


def _unquote(element: str) -> str:
    inner = element[1:-1]
    return {"'": inner.replace("''", "'"), '"': inner}.get(element[0], element)


def split_words(text: str) -> tuple[Word, ...]:
    """Split what follows a command's name, or refuse it; linear in its length."""
    words: list[Word] = []
    at, text = 0, text.rstrip(BLANK)
    while at < len(text):
        found = _ARGUMENT.match(text, at)
        if found is None:
            raise denied("windows_word", show(text[at:].strip(BLANK)))
        elements = _ELEMENT.findall(found[0])
        words.append(Word(tuple(map(_unquote, elements)), elements[0][0] in "'\""))
        at = found.end()
    return tuple(words)
