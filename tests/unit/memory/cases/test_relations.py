"""Which relation two cases have, from how alike their sections and surroundings are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.cases.relations import FLOOR, classify, weighted
from memory.cases.similarity import SectionSimilarity
from memory.cases.structure import Structure

NO_CONFLICT = Structure()
CONFLICT = Structure(matches=("runtime",), conflicts=("failure_layer",))


def alike(
    symptom: float | None, diagnosis: float | None, root_cause: float | None
) -> SectionSimilarity:
    return SectionSimilarity(symptom=symptom, diagnosis=diagnosis, root_cause=root_cause)


def test_the_sections_weigh_a_tenth_a_half_and_two_fifths() -> None:
    assert weighted(alike(1.0, 0.0, 0.0)) == pytest.approx(0.1)
    assert weighted(alike(0.0, 1.0, 0.0)) == pytest.approx(0.5)
    assert weighted(alike(0.0, 0.0, 1.0)) == pytest.approx(0.4)
    assert weighted(alike(0.5, 0.8, 0.9)) == pytest.approx(0.05 + 0.4 + 0.36)


def test_defect_8_a_missing_section_takes_no_weight_with_it() -> None:
    assert weighted(alike(0.9, 0.9, None)) == pytest.approx(0.9)
    assert weighted(alike(1.0, 1.0, None)) == pytest.approx(1.0)
    assert weighted(alike(None, 0.8, None)) == pytest.approx(0.8)
    assert weighted(alike(0.8, 0.8, None)) == weighted(alike(0.8, 0.8, 0.8))
    assert weighted(alike(None, None, None)) == 0.0


def test_a_section_that_is_hardly_alike_adds_nothing() -> None:
    assert weighted(alike(0.29, 1.0, 0.29)) == pytest.approx(0.5)
    assert weighted(alike(0.3, 1.0, 0.29)) == pytest.approx(0.53)


@pytest.mark.parametrize(
    ("similarity", "relation"),
    [
        (alike(0.5, 0.6, 0.8), "same_root_cause"),
        (alike(None, 0.6, 0.8), "same_root_cause"),
        (alike(0.9, 0.7, 0.79), "similar_diagnosis"),
        (alike(0.9, 0.7, 0.6), "similar_diagnosis"),
        (alike(0.9, 0.69, 0.79), "surface_similar"),
        (alike(0.9, 0.85, 0.59), "similar_diagnosis"),
        (alike(0.9, 0.85, 0.4), "similar_diagnosis"),
        (alike(0.9, 0.84, 0.59), "surface_similar"),
        (alike(0.9, 0.9, 0.39), "surface_similar"),
        (alike(0.9, 0.85, None), "similar_diagnosis"),
        (alike(0.9, 0.84, None), "surface_similar"),
    ],
)
def test_the_class_follows_the_root_cause_and_then_the_diagnosis(
    similarity: SectionSimilarity, relation: str
) -> None:
    judged = classify(similarity, NO_CONFLICT)
    assert judged == (relation, weighted(similarity))
    blocked = classify(similarity, CONFLICT)
    assert blocked == ("surface_similar", weighted(similarity))


def test_what_scores_below_the_floor_is_no_relation() -> None:
    assert classify(alike(1.0, 0.5, 0.6), NO_CONFLICT) is None
    assert classify(alike(1.0, 0.52, 0.6), NO_CONFLICT) is not None
    assert classify(alike(0.0, 0.0, 1.0), NO_CONFLICT) is None


part = st.none() | st.floats(0, 1)
similarities = st.builds(alike, part, part, part)


@given(similarities)
def test_a_score_is_bounded_and_a_conflict_never_more_than_surface(
    similarity: SectionSimilarity,
) -> None:
    assert 0 <= weighted(similarity) <= 1
    judged, blocked = classify(similarity, NO_CONFLICT), classify(similarity, CONFLICT)
    assert (judged is None) == (blocked is None) == (weighted(similarity) < FLOOR)
    assert blocked is None or blocked[0] == "surface_similar"


@given(similarities)
def test_root_causes_that_differ_are_never_more_than_surface(
    similarity: SectionSimilarity,
) -> None:
    judged = classify(similarity, NO_CONFLICT)
    if similarity.root_cause is not None and similarity.root_cause < 0.4 and judged is not None:
        assert judged[0] == "surface_similar"
