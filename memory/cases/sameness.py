"""When two cases tell of one incident's cause again, so that one of them is enough.

Numbers, moments, addresses and the like may differ, and so may the way it is put. A telling word of the
root cause may not, nor a negation, nor the code of a failure, nor the surroundings, and what was done may
not be the opposite: one of two merged cases keeps its resolution. Where either names no root cause,
everything that is told has to be the same.
"""

from typing import Final

from memory.cases.agreement import heavy
from memory.cases.case import CaseContent
from memory.cases.codes import OCCASIONAL, codes_differ
from memory.cases.opposition import oppose
from memory.cases.sections import SectionSimilarity
from memory.cases.structure import compare_structure
from memory.cases.wording import NOT, kind_of, telling_words

_DIAGNOSIS: Final = 0.8
_SYMPTOM: Final = 0.6
_ROOT_CAUSE: Final = 0.8
_TELLING: Final = frozenset({"fault", "thing", "name", "code", "word", "han"})
_PAIR: Final = 2


def is_same(one: CaseContent, other: CaseContent, similarity: SectionSimilarity) -> bool:
    """Whether two cases are near-duplicates with one root cause; the order of the two plays no part."""
    if compare_structure(one.metadata, other.metadata).conflicts:
        return False
    if similarity.root_cause is None:
        return _whole(one) == _whole(other) and not _are_at_odds(one, other)
    return (
        similarity.root_cause >= _ROOT_CAUSE
        and (similarity.diagnosis or 0.0) >= _DIAGNOSIS
        and (similarity.symptom or 0.0) >= _SYMPTOM
        and _name_one_cause(one.root_cause, other.root_cause)
        and not _are_at_odds(one, other)
    )


def _name_one_cause(one: str, other: str) -> bool:
    mine, theirs = telling_words(one), telling_words(other)
    if _core(mine) != _core(theirs) or (NOT in mine) != (NOT in theirs):
        return False
    if oppose(mine, theirs):
        return False
    return bool(heavy({*mine})) or _ordered(mine) == _ordered(theirs)


def _are_at_odds(one: CaseContent, other: CaseContent) -> bool:
    """Whether they were done away with in opposite ways, or what was seen tells two failures apart."""
    done = (telling_words(one.resolution), telling_words(other.resolution))
    if oppose(*done) or codes_differ(*done, but=OCCASIONAL):
        return True
    seen = [
        (telling_words(one.symptom_summary), telling_words(other.symptom_summary)),
        (telling_words(one.diagnosis), telling_words(other.diagnosis)),
    ]
    return any(codes_differ(mine, theirs, but=OCCASIONAL) for mine, theirs in seen)


def _ordered(words: tuple[str, ...]) -> list[str]:
    return sorted(word for word in words if kind_of(word) != "bearing")


def _core(words: tuple[str, ...]) -> frozenset[str]:
    """Give the words that must be the same; a single Chinese character is what cutting left over."""
    return frozenset(word for word in words if kind_of(word) in _TELLING and not _is_rest(word))


def _is_rest(word: str) -> bool:
    return kind_of(word) == "han" and len(word) < _PAIR


def _whole(content: CaseContent) -> tuple[frozenset[str], ...]:
    sections = (
        content.symptom_summary,
        content.diagnosis,
        content.root_cause,
        content.resolution,
    )
    return tuple(frozenset(telling_words(text)) for text in sections)
