"""What a model's cosines mean, found by asking it."""

from collections.abc import Sequence
from math import hypot
from random import Random

import pytest

from memory.embeddings.calibration import RELATED, TEXTS, calibrated

NOISE = 200


def made(text: str, *, knowing: float = 0.5, common: float = 0.0) -> list[float]:
    """Return the vector of a model that knows the subject of a text, and what it answers."""
    drawn = Random(text)
    vector = [drawn.gauss(0.0, 0.05) for _ in range(NOISE)] + [0.0] * (2 * len(RELATED)) + [common]
    for place, (statement, answered, unanswered) in enumerate(RELATED):
        if text in {statement, answered, unanswered}:
            vector[NOISE + place] = knowing
        if text in {statement, answered}:
            vector[NOISE + len(RELATED) + place] = 2 * knowing
    length = hypot(*vector)
    return [number / length for number in vector]


def cosines(question: Sequence[float], texts: Sequence[Sequence[float]]) -> dict[str, float]:
    return {
        str(place): sum(a * b for a, b in zip(question, text, strict=True))
        for place, text in enumerate(texts)
    }


@pytest.mark.parametrize("common", [0.0, 3.0])
def test_an_answer_is_told_from_a_text_about_the_same_subject_at_any_scale(common: float) -> None:
    vectors = [made(text, common=common) for text in TEXTS]
    read = calibrated(vectors).of("which")
    assert read is not None
    statement, answered, unanswered = (vectors[at * len(RELATED)] for at in range(3))
    (for_answer,) = read.evidence(answered, cosines(answered, [statement])).values()
    (for_subject,) = read.evidence(unanswered, cosines(unanswered, [statement])).values()
    assert for_answer > 1
    assert for_subject < -1


def test_what_a_model_cannot_read_is_left_to_the_words() -> None:
    reading = [text if text.isascii() else "" for text in TEXTS]
    for vectors, reads in (
        ([made(text, knowing=0.0) for text in TEXTS], (False, False)),
        ([()] * len(TEXTS), (False, False)),
        ([made(text) for text in TEXTS], (True, True)),
        ([made(text, knowing=0.5 if text in reading else 0.0) for text in TEXTS], (True, False)),
    ):
        readings = calibrated(vectors)
        assert tuple(readings.of(text) is not None for text in ("which", "哪个 one")) == reads


def test_an_answer_in_another_script_stands_out_if_the_model_tells() -> None:
    statement, answered, unanswered = next(
        pair for pair in RELATED if pair[0].isascii() > pair[1].isascii()
    )
    for knowing, tells in ((0.5, True), (0.05, False)):
        read = calibrated([made(text, knowing=knowing) for text in TEXTS]).of("哪个")
        assert (read is not None and read.across is not None) == tells
    read = calibrated([made(text) for text in TEXTS]).of("哪个")
    assert read is not None
    near = cosines(made(statement), [made(answered), made(unanswered), made(TEXTS[0])])
    answer, subject, other = read.evidence_across(near).values()
    assert answer > 2
    assert other < 0
    assert answer > subject


@pytest.mark.parametrize("common", [0.0, 2.0])
def test_the_least_cosine_is_above_what_unrelated_texts_have(common: float) -> None:
    vectors = [made(text, common=common) for text in TEXTS]
    read = calibrated(vectors).of("哪个")
    assert read is not None
    least, unrelated = read.least, vectors[3 * len(RELATED) :]
    among = [
        each
        for place, one in enumerate(unrelated)
        for each in cosines(one, unrelated[:place]).values()
    ]
    assert sorted(among)[len(among) // 2] < least < 1
    assert sum(cosine > least for cosine in among) <= len(among) // 50
