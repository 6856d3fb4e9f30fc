"""How far two root causes agree, by their words alone.

What goes wrong weighs most, what comes of it little, and what stands in the symptom as well less than
what does not: two causes of one symptom share those words anyway. Where each of the two names a matter
that the other does not, they contradict each other, however much else they share; so do two that are
built alike and differ in one place, that name other codes of a failure or say opposite things.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from difflib import SequenceMatcher
from math import fsum
from typing import Final

from memory.cases.codes import PLACES, codes_differ
from memory.cases.opposition import oppose
from memory.cases.wording import FAILED, NOT, Kind, kind_of

_WEIGHTS: Final[dict[Kind, float]] = {
    "fault": 1.6,
    "thing": 1.0,
    "word": 0.8,
    "effect": 0.5,
    "background": 0.5,
    "han": 0.3,
    "name": 0.2,
    "code": 0.2,
    "negation": 0.3,
    "bearing": 0.0,
}
_IN_SYMPTOM: Final = 0.6
_HEAVY: Final = frozenset({"fault", "thing"})
_CHANGEABLE: Final = frozenset({"fault", "thing", "word", "background"})
_BESIDE: Final = frozenset({"negation", "name", "code", "bearing"})
_AMISS: Final = frozenset({FAILED, "before"})
"""What can stand in place of a no: the renewal failed, the pods started before the migration."""
_INDEXED: Final = frozenset({"index", "uniquekey", "foreignkey"})
_COLUMNS: Final = frozenset(
    ("id", "no", "at", "on", "time", "date", "code", "name", "status", "type", "key", "num", "sn")
)
"""What the name of a column ends in."""
_OF_ITS_OWN: Final = 0.2
"""Share of what a root cause says that is another matter, and not one more detail."""
_IN_PLACE: Final = 0.14
"""The same of what stands in the same place."""
_BUILT_ALIKE: Final = 0.4
"""Share of the words that both have in the same order."""
_MAX_LAID_OUT: Final = 200
"""Words that are compared in their places; of longer texts the beginning says how they are built."""


def agreement(
    one: Sequence[str], other: Sequence[str], symptoms: AbstractSet[str] = frozenset()
) -> float:
    """Give the share, 0 to 1, of the telling words' weight that both have in common.

    `symptoms` are the telling words of both symptoms.
    """
    mine, theirs = set(one), set(other)
    whole = _weight(mine, symptoms) + _weight(theirs, symptoms)
    return 2 * _weight(mine & theirs, symptoms) / whole if whole else 0.0


def is_told(one: Sequence[str], told: AbstractSet[str]) -> bool:
    """Whether all that a root cause names is told elsewhere."""
    return all(word in told for word in one if kind_of(word) not in _BESIDE)


def contradict(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two root causes, given as telling words, are two; the order of the two plays no part."""
    if codes_differ(one, other, but=PLACES) or oppose(one, other):
        return True
    amiss = ({*one} ^ {*other}) & _AMISS
    one, other = _telling(one), _telling(other)
    mine, theirs = set(one) - set(other), set(other) - set(one)
    if not amiss and (_denies(mine, theirs) or _denies(theirs, mine)):
        return True
    if _name_two_columns(one, other):
        return True
    own = (_share(_told_alone(mine, theirs), one), _share(_told_alone(theirs, mine), other))
    if min(own) >= _OF_ITS_OWN:
        return True
    first, second = sorted((tuple(one[:_MAX_LAID_OUT]), tuple(other[:_MAX_LAID_OUT])))
    return _differ_in_place(first, second, mine | theirs)


def _telling(words: Sequence[str]) -> list[str]:
    return [word for word in words if kind_of(word) != "bearing"]


def heavy(words: AbstractSet[str]) -> set[str]:
    """Give those that name what goes wrong or what it happens to."""
    return {word for word in words if kind_of(word) in _HEAVY}


def _denies(mine: AbstractSet[str], theirs: AbstractSet[str]) -> bool:
    """Whether one says no to what the other says; a fault in place of the no says the same."""
    return mine == {NOT} and not any(kind_of(word) == "fault" for word in theirs)


def _told_alone(mine: AbstractSet[str], theirs: AbstractSet[str]) -> set[str]:
    """Give what one names against the other: no index and a missing index are one matter."""
    return heavy(mine) - ({"missing"} if NOT in theirs else set())


def _name_two_columns(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether they tell of indexes on two columns of one table."""
    mine, theirs = set(one), set(other)
    if not mine & theirs & _INDEXED:
        return False
    columns = [_columns(mine - theirs), _columns(theirs - mine)]
    if not all(columns):
        return False
    tables = [{name.split("-")[0] for name in names if name.count("-") > 1} for names in columns]
    if all(tables):
        return bool(tables[0] & tables[1])
    return any(kind_of(word) in {"word", "name"} for word in mine & theirs)


def _columns(words: AbstractSet[str]) -> set[str]:
    return {word for word in words if kind_of(word) == "name" and word.split("-")[-1] in _COLUMNS}


def _differ_in_place(one: Sequence[str], other: Sequence[str], unshared: AbstractSet[str]) -> bool:
    """Whether one says something where the other, built alike, says something else."""
    own = {word for word in unshared if kind_of(word) in _CHANGEABLE}
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    if matcher.ratio() < _BUILT_ALIKE:
        return False
    changed = [
        (own.intersection(one[a:b]), own.intersection(other[c:d]))
        for step, a, b, c, d in matcher.get_opcodes()
        if step == "replace"
    ]
    mine = {word for here, there in changed if there for word in here}
    theirs = {word for here, there in changed if here for word in there}
    return min(_share(mine, one), _share(theirs, other)) >= _IN_PLACE


def _share(some: AbstractSet[str], whole: Sequence[str]) -> float:
    """Give the share of a root cause's weight that some of its words have."""
    weight = _weight(set(whole), frozenset())
    return _weight(some, frozenset()) / weight if weight else 0.0


def _weight(words: AbstractSet[str], symptoms: AbstractSet[str]) -> float:
    return fsum(
        _WEIGHTS[kind_of(word)] * (_IN_SYMPTOM if word in symptoms else 1.0) for word in words
    )
