"""Subject and value of a short statement, in English and Chinese.

A statement of the form "<subject> is <value>" (是, 在, 改到 …) is about its subject. Other statements have no subject
here. Two statements about one subject need not contradict each other: "Igor is my manager" and "Igor is on leave".
"""

import re
import unicodedata
from typing import Final

from memory.terms import terms
from policies.patterns import read_patterns

_PATTERNS = read_patterns(__file__)
_SHORT_VALUE: Final = 1.5
_LONG_SUBJECT: Final = 1.5
"""Words: "favourite colour" is one thing of a person; there is more to say of "Igor"."""
_NAMELESS: Final = _PATTERNS["nameless"]
_PRONOUNS: Final = frozenset(_NAMELESS.split())
_DETERMINERS: Final = "a an the that my our your his her their please now new current"
_LIGHT: Final = frozenset(_DETERMINERS.split())
_ENGLISH: Final = re.compile(_PATTERNS["english"], re.IGNORECASE | re.DOTALL)
_CHINESE: Final = re.compile(_PATTERNS["chinese"], re.DOTALL)
_CHINESE_LEAD: Final = re.compile(r"^(?:我们?的?|咱们?的?|这个|那个|那)(?=.)")
_CHANGE: Final = re.compile(_PATTERNS["change"], re.IGNORECASE)
_KINDS: Final = [
    re.compile(_PATTERNS[name], re.IGNORECASE) for name in ("number", "weekday", "month", "name")
]
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


def says_change(text: str) -> bool:
    """Return whether a statement says that something changed: "moved to", "no longer", 改到."""
    return _CHANGE.search(text) is not None


def has_other_value(new: str, old: str) -> bool:
    """Return whether a text has another value of a kind that an older one has, such as a weekday."""
    values = zip(_values(new), _values(old), strict=True)
    return any(theirs - known and known - theirs for theirs, known in values)


def contradicts(new: str, old: str) -> bool:
    """Return whether a statement gives another value to what an older one says of the same subject.

    The values must be alike: of the same kinds, such as a weekday, with words in common around them, or both of
    one word. What says that something changed may give any other value, if neither has one of such a kind.
    """
    subject = subject_of(new)
    if not subject or subject != subject_of(old) or value_of(new) == value_of(old):
        return False
    if any(_values(new)) or any(_values(old)):
        frame, theirs = _frame(new), _frame(old)
        return has_other_value(new, old) and (frame <= theirs or theirs <= frame)
    if says_change(_NOW.sub(" ", new)):
        return True
    are_short = max(map(_length, (value_of(new), value_of(old)))) <= _SHORT_VALUE
    return are_short and (_length(subject) >= _LONG_SUBJECT or _NOW.search(new) is not None)


def _frame(text: str) -> set[str]:
    """Return the words of a value without those of its kinds."""
    own = set().union(*_values(text))
    return {word for word in value_of(text) if not any(value in word for value in own)}


def _values(text: str) -> list[set[str]]:
    """Return what a text has of each kind; weekdays and months are no names."""
    found = [{value.casefold() for value in kind.findall(text)} for kind in _KINDS]
    return [*found[:-1], found[-1] - found[-2] - found[-3]]


def _length(words: tuple[str, ...]) -> float:
    """Return the number of words; two pairs of characters count as one."""
    return sum(1.0 if word.isascii() else 0.5 for word in words)


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
