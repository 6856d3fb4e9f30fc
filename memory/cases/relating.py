"""Which of the cases that a search brought are related to one, and how."""

from collections.abc import Iterable, Sequence
from typing import Final

from memory.cases.case import Case, CaseContent, RelatedCase
from memory.cases.relations import classify
from memory.cases.sections import SectionSimilarity
from memory.cases.structure import compare_structure

MAX_RELATED: Final = 5
"""Of those that one search brought."""


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
    ids = {one.case_id for one in known}
    others = [one for one in zip(found, alike, strict=True) if one[0].case_id not in ids]
    told = _related(content, zip(known, known_alike, strict=True))
    return sorted([*told, *_related(content, others)[:MAX_RELATED]], key=lambda one: one.distance)


def _related(
    content: CaseContent, others: Iterable[tuple[Case, SectionSimilarity]]
) -> list[RelatedCase]:
    found = []
    for case, similarity in others:
        structure = compare_structure(content.metadata, case.content.metadata)
        if (judged := classify(similarity, structure)) is not None:
            relation, score = judged
            found.append(RelatedCase(case_id=case.case_id, relation=relation, score=score))
    return sorted(found, key=lambda one: one.distance)
