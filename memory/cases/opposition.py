"""When two texts, given as telling words, say opposite things of one matter.

One says no to what the other says, or one says that something was missing, before, increased or enabled
and the other that it was there, after, decreased or disabled. What it is about has to be told beside it
in both: a text may well say no, or enabled, of something else. So are two that set the same two things
against each other the other way round: the cache before the database, and the database before the cache.
"""

from collections.abc import Sequence
from typing import Final

from memory.cases.wording import FAILED, NOT, kind_of, stem

_OPPOSITES: Final = (
    ("before", "after"),
    ("small", "large"),
    ("enabled", "disabled"),
    (stem("upgrade"), stem("downgrade")),
    (stem("early"), stem("late")),
    (stem("allow"), "rejected"),
    (stem("add"), "deleted"),
    ("scaleup", "scaledown"),
    ("autoscaling", "缩容"),
    ("添加", "deleted"),
    ("增加", "deleted"),
    ("增加", "small"),
)
_NEAR: Final = 2
_MAX_COMPARED: Final = 300
"""Words of each that are compared, from the beginning; each is looked for in all the others."""
_SILENT: Final = frozenset({"negation", "bearing"})
_MISSING: Final = "missing"
_PRESENT: Final = "present"
_AMISS: Final = frozenset({NOT, "missing", "disabled", "small", "wrong", "rejected", "bug", FAILED})
"""What says no as well, in place of a negation."""
_ORDER: Final = frozenset({"before", "after"})
_COMPARING: Final = ("before", "after", "than", "first")
_FAR: Final = 4
"""Words that may stand between what was to be and that it failed, or a comparison and what it compares with."""
_COMPARED: Final = frozenset({"thing", "name", "word", "han"})
_ROLES: Final = frozenset(
    (
        *(
            "client",
            "node",
            "primary",
            "database",
            "gateway",
            "consumer",
            "producer",
            "user",
            "provider",
        ),
        *("container", "instance", "process", "thread", "kubernetes", "jvm", "release"),
    )
)
"""What does something, or has it done, though it stands beside in most tellings."""


def oppose(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether they say opposite things of one matter; the order of the two plays no part."""
    one, other = one[:_MAX_COMPARED], other[:_MAX_COMPARED]
    return (
        _deny(one, other)
        or _deny(other, one)
        or _turn(one, other)
        or _turn(other, one)
        or _reverse(one, other)
    )


def denied(words: Sequence[str]) -> set[str]:
    """Give what is said no to: the words right after a negation."""
    return _follow(words, NOT)


def _deny(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether one says no to what the other tells as having been, or misses what the other says is there."""
    told = denied(one) - denied(other)
    if "before" in other and "before" not in one:
        return False  # what was not there yet when something began came after it
    said = {
        word
        for word in told & {*other}
        if not (_near(other, word) & _AMISS or FAILED in _near(other, word, _FAR))
    }
    if any(_about(one, word) & _about(other, word) or _is_there(other, word) for word in said):
        return True
    return any(
        _is_there(other, word) and _MISSING not in _near(other, word) for word in _lacking(one)
    )


def _lacking(words: Sequence[str]) -> set[str]:
    """Give what is missing: the thing that comes next, or else the one before."""
    found = set()
    for at, word in enumerate(words):
        if word == _MISSING:
            beside = (*words[at + 1 : at + 1 + _NEAR], *reversed(words[max(0, at - _NEAR) : at]))
            found.update([near for near in beside if kind_of(near) == "thing"][:1])
    return found


def _is_there(words: Sequence[str], word: str) -> bool:
    return _PRESENT in _near(words, word)


def _turn(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether one says the first of two opposites where the other says the second."""
    mine, theirs = {*one}, {*other}
    for first, second in _OPPOSITES:
        if first in mine and second in theirs and second not in mine and first not in theirs:
            about = _follow if first in _ORDER else _about
            if about(one, first) & about(other, second):
                return True
    return False


def _reverse(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether they set the same two things against each other, each the other one's first."""
    for word in _COMPARING:
        if word in one and word in other:
            mine, theirs = _compared_with(one, word), _compared_with(other, word)
            if not mine & theirs and mine & {*other} and theirs & {*one}:
                return True
    return False


def _compared_with(words: Sequence[str], word: str) -> set[str]:
    """Give what comes next after each place of a comparing word that can be compared."""
    found = set()
    for at, each in enumerate(words):
        if each == word:
            beside = words[at + 1 : at + 1 + _FAR]
            found.update([near for near in beside if can_be_compared(near)][:1])
    return found


def can_be_compared(word: str) -> bool:
    """Whether it names something that can be set against something else of its kind."""
    return kind_of(word) in _COMPARED or word in _ROLES


def _about(words: Sequence[str], word: str) -> set[str]:
    return {near for near in _near(words, word) if kind_of(near) not in _SILENT}


def _near(words: Sequence[str], word: str, reach: int = _NEAR) -> set[str]:
    """Give what stands within two words, or so many, of each place of a word."""
    return {
        near
        for at, each in enumerate(words)
        if each == word
        for near in (*words[max(0, at - reach) : at], *words[at + 1 : at + 1 + reach])
    }


def _follow(words: Sequence[str], word: str) -> set[str]:
    """Give the words that come next after each place of a word."""
    following = (_next(words, at) for at, each in enumerate(words) if each == word)
    return {one for one in following if one is not None}


def _next(words: Sequence[str], at: int) -> str | None:
    return next((word for word in words[at + 1 :] if kind_of(word) not in _SILENT), None)
