"""From cosines to one scale for all models."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.cases.calibration import calibration_of

HASHED = calibration_of("hashed-1")


@given(st.floats(-1.1, 1.1), st.floats(-1.1, 1.1), st.sampled_from(["hashed-1", "another"]))
def test_similarity_is_bounded_and_never_falls(one: float, other: float, model_id: str) -> None:
    low, high = sorted((one, other))
    calibration = calibration_of(model_id)
    assert 0 <= calibration.similarity_of(low) <= calibration.similarity_of(high) <= 1


@pytest.mark.parametrize("cosine", [0.0, 0.3, 0.8, 1.0])
def test_a_model_that_was_not_measured_is_taken_at_its_word(cosine: float) -> None:
    assert calibration_of("all-MiniLM-L6-v2").similarity_of(cosine) == pytest.approx(cosine)


def test_vectors_of_words_that_are_half_alike_mean_the_same() -> None:
    assert HASHED.similarity_of(0.5) == pytest.approx(0.8)
    assert HASHED.similarity_of(0.2) == pytest.approx(0.6)
    assert HASHED.similarity_of(1.0) == 1.0
    assert HASHED.similarity_of(0.0) < 0.3
