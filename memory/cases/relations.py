"""How two cases are related, decided by how alike their sections and surroundings are.

    score = .1 symptom + .5 diagnosis + .4 root cause     (of the sections that both have)

A missing section takes no weight with it, and a section that is hardly alike adds nothing. Two cases
whose root causes are both known and differ are alike on the surface at most: a symptom and a way of
finding out are shared by many causes.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from memory.cases.case import Case, CaseContent, RelatedCase, Relation
from memory.cases.similarity import SectionSimilarity
from memory.cases.structure import Structure, compare_structure

MAX_RELATED: Final = 5
"""Of those that one search brought."""
FLOOR: Final = 0.6
"""What scores below is no relation."""
SECTION_FLOOR: Final = 0.3
"""A section less alike than this adds nothing."""

_SYMPTOM: Final = 0.1
_DIAGNOSIS: Final = 0.5
_ROOT_CAUSE: Final = 0.4
_SAME_ROOT_CAUSE: Final = 0.8
_SIMILAR_DIAGNOSIS: Final = 0.7
_MAYBE_ONE: Final = 0.6
"""Root causes that are as much alike as this may be one, told differently."""
_NEARLY_THE_SAME: Final = 0.85
"""Diagnoses so much alike speak for a root cause that is unknown, or told in other words."""
_NOT_TWO: Final = 0.4
"""Root causes less alike than this are two, whatever was found."""


def weighted(similarity: SectionSimilarity) -> float:
    """Give the score of two cases, 0 to 1: the weights of the sections that both have make up one."""
    sections = (
        (_SYMPTOM, similarity.symptom),
        (_DIAGNOSIS, similarity.diagnosis),
        (_ROOT_CAUSE, similarity.root_cause),
    )
    known = [(weight, value) for weight, value in sections if value is not None]
    whole = sum(weight for weight, _ in known)
    shares = sum(weight * value for weight, value in known if value >= SECTION_FLOOR)
    return round(min(1.0, shares / whole), 4) if whole else 0.0


def classify(similarity: SectionSimilarity, structure: Structure) -> tuple[Relation, float] | None:
    """Name the relation of two cases and its score; None: they are not related."""
    score = weighted(similarity)
    if score < FLOOR:
        return None
    return _relation(similarity, structure), score


def _relation(similarity: SectionSimilarity, structure: Structure) -> Relation:
    if structure.conflicts:
        return "surface_similar"
    root_cause, diagnosis = similarity.root_cause, similarity.diagnosis or 0.0
    if root_cause is None:
        return "similar_diagnosis" if diagnosis >= _NEARLY_THE_SAME else "surface_similar"
    if root_cause >= _SAME_ROOT_CAUSE:
        return "same_root_cause"
    told_so = root_cause >= _MAYBE_ONE and diagnosis >= _SIMILAR_DIAGNOSIS
    found_so = root_cause >= _NOT_TWO and diagnosis >= _NEARLY_THE_SAME
    return "similar_diagnosis" if told_so or found_so else "surface_similar"


def relate(
    content: CaseContent, candidates: Sequence[Case], similarities: Sequence[SectionSimilarity]
) -> list[RelatedCase]:
    """Give the related ones, at most five, by their distance.

    `similarities` stand in the order of the candidates; the case itself is not to be among these.
    """
    return _related(content, zip(candidates, similarities, strict=True))[:MAX_RELATED]


def relate_anew(
    content: CaseContent,
    known: Sequence[Case],
    known_alike: Sequence[SectionSimilarity],
    found: Sequence[Case] = (),
    alike: Sequence[SectionSimilarity] = (),
) -> list[RelatedCase]:
    """Give the relations of a case that changed: those there were, where they still hold, and five at most of others.

    By their distance. `known` are those that it was related to before, all of them: what many cases name must
    not forget them when it is rewritten.
    """
    ids = {case.case_id for case in known}
    others = [pair for pair in zip(found, alike, strict=True) if pair[0].case_id not in ids]
    told = _related(content, zip(known, known_alike, strict=True))
    return sorted(
        [*told, *_related(content, others)[:MAX_RELATED]], key=lambda relation: relation.distance
    )


def _related(
    content: CaseContent, others: Iterable[tuple[Case, SectionSimilarity]]
) -> list[RelatedCase]:
    found = []
    for case, similarity in others:
        structure = compare_structure(content.metadata, case.content.metadata)
        if (judged := classify(similarity, structure)) is not None:
            relation, score = judged
            found.append(RelatedCase(case_id=case.case_id, relation=relation, score=score))
    return sorted(found, key=lambda relation: relation.distance)
