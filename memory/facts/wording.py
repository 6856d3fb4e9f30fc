"""Subject and value of a short statement, in English and Chinese.

A statement of the form "<subject> is <value>" (是, 在, 改到 …) is about its subject: two statements with one
subject and two values contradict each other. Other statements have no subject here.
"""

import re
import unicodedata
from typing import Final

from memory.terms import terms

_NAMELESS: Final = (
    "i you he she it we they this that these those there here what who which everything nothing"
    " 我 你 他 她 它 我们 你们 他们 这 那 这个 那个 这里 那里 大家 谁"
)
_PRONOUNS: Final = frozenset(_NAMELESS.split())
_DETERMINERS: Final = "a an the that my our your his her their please now new current"
_LIGHT: Final = frozenset(_DETERMINERS.split())
_ENGLISH: Final = re.compile(
    r"^(?:that\s+)?(?P<subject>[^,.;:!?\n]{1,80}?)(?:\s+(?:is|are|was|were|will be|has moved to|have moved to|moved to)"
    r"(?:\s+now)?|['’]s(?:\s+now)?(?=\s+(?:now|on|at|in|called|named|number|the)\b)|\s*[:=])\s+(?P<value>.+)",
    re.IGNORECASE | re.DOTALL,
)
_CHINESE: Final = re.compile(
    r"^(?P<subject>[^，。；！？,;!?\n]{1,30}?)(?:现在|已经)?(?:(?<![但可还就不于要只总都])是|(?<![现正存实])在|为|叫做?"
    r"|(?:改|换|调|挪|移|变|延|推迟|提前)(?:成|到|为|至)(?:了)?|定[在为]|[:：=])(?P<value>.+)",
    re.DOTALL,
)
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
