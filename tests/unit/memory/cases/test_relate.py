"""The relations of one case: which, how many, and in which order."""

from memory.cases.case import CaseMetadata, RelatedCase
from memory.cases.relations import relate
from memory.cases.similarity import SectionSimilarity
from tests.unit.memory.cases.judged import make_case, make_content


def alike(value: float, root_cause: float | None = None) -> SectionSimilarity:
    return SectionSimilarity(
        symptom=value, diagnosis=value, root_cause=value if root_cause is None else root_cause
    )


def test_same_causes_come_first_then_the_higher_scores_then_the_lesser_ids() -> None:
    cases = [make_case(case_id=f"cas_{name}") for name in "adcbe"]
    values = [alike(1.0, 0.39), alike(0.82), alike(0.9), alike(0.82), alike(0.75)]
    assert relate(make_content(), list(zip(cases, values, strict=True))) == [
        RelatedCase(case_id="cas_c", relation="same_root_cause", score=0.9),
        RelatedCase(case_id="cas_b", relation="same_root_cause", score=0.82),
        RelatedCase(case_id="cas_d", relation="same_root_cause", score=0.82),
        RelatedCase(case_id="cas_e", relation="similar_diagnosis", score=0.75),
        RelatedCase(case_id="cas_a", relation="surface_similar", score=0.756),
    ]


def test_at_most_five_are_kept_and_the_best_of_them() -> None:
    cases = [make_case(case_id=f"cas_{number:02}") for number in range(20)]
    values = [alike(0.8 + number / 100) for number in range(20)]
    related = relate(make_content(), list(zip(cases, values, strict=True)))
    assert [relation.case_id for relation in related] == [
        "cas_19",
        "cas_18",
        "cas_17",
        "cas_16",
        "cas_15",
    ]


def test_what_surrounds_both_is_laid_side_by_side() -> None:
    mine = make_content(metadata=CaseMetadata(failure_layer="db"))
    other = make_case(content=make_content(metadata=CaseMetadata(failure_layer="network")))
    (related,) = relate(mine, [(other, alike(1.0))])
    assert related == RelatedCase(
        case_id="cas_1", relation="surface_similar", score=1.0, struct_match=False
    )


def test_what_is_not_alike_is_not_related() -> None:
    assert relate(make_content(), [(make_case(), alike(0.5))]) == []
    assert relate(make_content(), []) == []
