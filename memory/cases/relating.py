"""Which of the cases that a search brought are related to one, and how."""

from collections.abc import Sequence
from typing import Final

from memory.cases.case import Case, CaseContent, RelatedCase, Relation
from memory.cases.relations import classify
from memory.cases.sections import SectionSimilarity
from memory.cases.structure import compare_structure

MAX_RELATED: Final = 5

_CLOSENESS: Final[tuple[Relation, ...]] = (
    "same_root_cause",
    "similar_diagnosis",
    "surface_similar",
)


def relate(
    content: CaseContent, candidates: Sequence[Case], similarities: Sequence[SectionSimilarity]
) -> list[RelatedCase]:
    """Give the related ones, at most five: same causes before similar diagnoses before mere likeness.

    Within a relation the highest score comes first, then the lesser id. `similarities` stand in the
    order of the candidates; the case itself is not to be among these.
    """
    found = []
    for case, similarity in zip(candidates, similarities, strict=True):
        structure = compare_structure(content.metadata, case.content.metadata)
        if (judged := classify(similarity, structure)) is not None:
            relation, score = judged
            found.append(RelatedCase(case_id=case.case_id, relation=relation, score=score))
    found.sort(key=lambda one: (_CLOSENESS.index(one.relation), -one.score, one.case_id))
    return found[:MAX_RELATED]
