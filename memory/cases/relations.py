"""How two cases are related, decided by the similarity of their sections and their surroundings.

    score = .1 symptom + .5 diagnosis + .4 root cause     (of the sections that both have)

The weight of a missing section goes to the others. Cases whose surroundings contradict are
`surface_similar` at most.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from memory.cases.case import Case, CaseContent, RelatedCase, Relation
from memory.cases.similarity import SectionSimilarity
from memory.cases.structure import contradict
from memory.items.scope import Scope
from memory.recall.query import Degradation

MAX_RELATED: Final = 5
"""New relations of one write."""
FLOOR: Final = 0.6
"""Minimum score of a relation."""

_SYMPTOM: Final = 0.1
_DIAGNOSIS: Final = 0.5
_ROOT_CAUSE: Final = 0.4
_SAME_ROOT_CAUSE: Final = 0.8
_SIMILAR_DIAGNOSIS: Final = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearby:
    """Stored cases that may be related to a content."""

    cases: Sequence[Case]
    """Most likely first."""
    degraded: Sequence[Degradation] = ()
    """Parts of the search that did not answer; a related case may be missing."""


FindCandidates = Callable[[CaseContent, Scope, int], Awaitable[Nearby]]
"""Finds at most so many cases that the scope may see and that may be related to a content, or say
the same."""


def weighted(similarity: SectionSimilarity) -> float:
    """Return the score of two cases, 0 to 1."""
    sections = (
        (_SYMPTOM, similarity.symptom),
        (_DIAGNOSIS, similarity.diagnosis),
        (_ROOT_CAUSE, similarity.root_cause),
    )
    known = [(weight, value) for weight, value in sections if value is not None]
    whole = sum(weight for weight, _ in known)
    shares = sum(weight * value for weight, value in known)
    return round(min(1.0, shares / whole), 4) if whole else 0.0


def classify(similarity: SectionSimilarity, *, struct_match: bool) -> tuple[Relation, float] | None:
    """Return the relation of two cases and its score; None if they are not related."""
    score = weighted(similarity)
    return (_relation(similarity, struct_match=struct_match), score) if score >= FLOOR else None


def _relation(similarity: SectionSimilarity, *, struct_match: bool) -> Relation:
    if not struct_match:
        return "surface_similar"
    if (similarity.root_cause or 0.0) >= _SAME_ROOT_CAUSE:
        return "same_root_cause"
    if (similarity.diagnosis or 0.0) >= _SIMILAR_DIAGNOSIS:
        return "similar_diagnosis"
    return "surface_similar"


def relate(
    content: CaseContent,
    found: Sequence[tuple[Case, SectionSimilarity]],
    *,
    known: Sequence[tuple[Case, SectionSimilarity]] = (),
) -> list[RelatedCase]:
    """Return the relations of a content, nearest first.

    Of the cases found by a search at most `MAX_RELATED` count. `known` are the cases that it was
    related to before: all that still are related stay, so that a rewritten case keeps the cases
    that name it.
    """
    related = [*_related(content, known), *_related(content, found)[:MAX_RELATED]]
    return sorted(related, key=lambda relation: relation.distance)


def with_structure(relation: RelatedCase, content: CaseContent, other: Case) -> RelatedCase:
    """Return a relation of a content to another case with its `struct_match`."""
    match = not contradict(content.metadata, other.content.metadata)
    return replace(relation, struct_match=match)


def _related(
    content: CaseContent, others: Sequence[tuple[Case, SectionSimilarity]]
) -> list[RelatedCase]:
    related = []
    for case, similarity in others:
        match = not contradict(content.metadata, case.content.metadata)
        if (classified := classify(similarity, struct_match=match)) is not None:
            relation, score = classified
            related.append(
                RelatedCase(
                    case_id=case.case_id, relation=relation, score=score, struct_match=match
                )
            )
    return sorted(related, key=lambda relation: relation.distance)
