"""Subject and value of a short statement, in English and Chinese.

A statement of the form "<subject> is <value>" (是, 在, 改到 …) is about its subject: two statements with one
subject and two values contradict each other. Other statements have no subject here.
"""

import re
import unicodedata
from typing import Final

from memory.terms import terms
from policies.patterns import read_patterns

_PATTERNS = read_patterns(__file__)
_NAMELESS: Final = _PATTERNS["nameless"]
_PRONOUNS: Final = frozenset(_NAMELESS.split())
_DETERMINERS: Final = "a an the that my our your his her their please now new current"
_LIGHT: Final = frozenset(_DETERMINERS.split())
_ENGLISH: Final = re.compile(_PATTERNS["english"], re.IGNORECASE | re.DOTALL)
_CHINESE: Final = re.compile(_PATTERNS["chinese"], re.DOTALL)
_CHINESE_LEAD: Final = re.compile(r"^(?:我们?的?|咱们?的?|这个|那个|那)(?=.)")
_NOW: Final = re.compile(r"\b(?:now|instead)\b|现在|了$", re.IGNORECASE)


def words_of(text: str) -> list[str]:
    """Return the terms of a statement without articles and the like."""
    found = terms(text)
    return [word for word in found if word not in _LIGHT] or found


def subject_of(text: str) -> tuple[str, ...]:
    """Return the words of a statement's subject; empty if it has none that identifies anything."""
    parts = _parts(text)
    return parts[0] if parts is not None else ()


def value_of(text: str) -> tuple[str, ...]:
    """Return the words of a statement's value; of the whole text if it has no subject."""
    parts = _parts(text)
    return parts[1] if parts is not None else tuple(words_of(text))


def _parts(text: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    line = unicodedata.normalize("NFKC", text).strip()
    found = _ENGLISH.match(line) or _CHINESE.match(line)
    if found is None:
        return None
    named = _CHINESE_LEAD.sub("", found["subject"].strip())
    if named.casefold() in _PRONOUNS or not named:
        return None
    subject = tuple(word for word in terms(named.replace("的", "")) if word not in _LIGHT)
    value = tuple(words_of(_NOW.sub(" ", found["value"].strip(" 。.!！"))))
    return (subject, value) if subject and value else None
