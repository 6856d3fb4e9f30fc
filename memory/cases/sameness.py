"""When two cases tell of one incident's cause again, so that one of them is enough.

Numbers, moments, addresses and the like may differ, and so may the way it is put. A telling word of the
root cause may not, nor a negation, nor who does it to whom, nor the code of a failure, nor the surroundings,
and what was done may not be the opposite: one of two merged cases keeps its resolution. Where either names
no root cause, everything that is told has to be the same.
"""

from typing import Final

from memory.cases.agreement import heavy
from memory.cases.case import CaseContent
from memory.cases.codes import OCCASIONAL, codes_differ
from memory.cases.exchange import exchanged, told_beside, turned_round
from memory.cases.opposition import oppose
from memory.cases.sections import SectionSimilarity
from memory.cases.structure import compare_structure
from memory.cases.wording import NEGATIVE, NOT, is_rest, kind_of, telling_words

_DIAGNOSIS: Final = 0.8
_SYMPTOM: Final = 0.6
_ROOT_CAUSE: Final = 0.8
_TELLING: Final = frozenset({"fault", "thing", "name", "code", "word", "han"})


def is_same(one: CaseContent, other: CaseContent, similarity: SectionSimilarity) -> bool:
    """Whether two cases are near-duplicates with one root cause; the order of the two plays no part."""
    if similarity.root_cause is None:
        return _whole(one) == _whole(other) and not are_at_odds(one, other)
    return (
        similarity.root_cause >= _ROOT_CAUSE
        and (similarity.diagnosis or 0.0) >= _DIAGNOSIS
        and (similarity.symptom or 0.0) >= _SYMPTOM
        and _name_one_cause(one.root_cause, other.root_cause)
        and not are_at_odds(one, other)
    )


def are_at_odds(one: CaseContent, other: CaseContent) -> bool:
    """Whether two tellings cannot be of one incident's cause, whatever else they share.

    Their surroundings conflict, their root causes tell something else each or put it the other way round,
    they tell other codes of a failure, or they were done away with in opposite ways. The order of the two
    plays no part. A like case is also laid beside what was merged already: two tellings may each fit a third
    one that says less, and not each other.
    """
    if compare_structure(one.metadata, other.metadata).conflicts:
        return True
    if oppose(telling_words(one.resolution), telling_words(other.resolution)):
        return True
    if _tell_two_causes(telling_words(one.root_cause), telling_words(other.root_cause)):
        return True
    return any(
        codes_differ(telling_words(mine), telling_words(theirs), but=OCCASIONAL)
        for mine, theirs in (
            (one.symptom_summary, other.symptom_summary),
            (one.diagnosis, other.diagnosis),
            (one.resolution, other.resolution),
        )
    )


def _name_one_cause(one: str, other: str) -> bool:
    mine, theirs = telling_words(one), telling_words(other)
    if _core(mine) != _core(theirs) or _noes(mine) != _noes(theirs):
        return False
    return bool(heavy({*mine})) or _ordered(mine) == _ordered(theirs)


def _tell_two_causes(mine: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    """Whether each names what stands beside the matter and the other does not, or who does what differs."""
    if oppose(mine, theirs) or codes_differ(mine, theirs, but=frozenset()):
        return True
    here, there = told_beside(mine), told_beside(theirs)
    if here - there and there - here:
        return True
    return turned_round(mine, theirs) or exchanged(mine, theirs)


def _noes(words: tuple[str, ...]) -> tuple[bool, bool]:
    """Say whether something was not done, and whether that or its failure is told."""
    return NOT in words, bool(NEGATIVE & {*words})


def _ordered(words: tuple[str, ...]) -> list[str]:
    return sorted(word for word in words if kind_of(word) != "bearing")


def _core(words: tuple[str, ...]) -> frozenset[str]:
    """Give the words that must be the same; a single Chinese character is what cutting left over."""
    return frozenset(word for word in words if kind_of(word) in _TELLING and not is_rest(word))


def _whole(content: CaseContent) -> tuple[frozenset[str], ...]:
    sections = (
        content.symptom_summary,
        content.diagnosis,
        content.root_cause,
        content.resolution,
    )
    return tuple(frozenset(telling_words(text)) for text in sections)
