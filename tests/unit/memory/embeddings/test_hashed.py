from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.embeddings.hashed import HashedEmbedder


def dot(one: str, other: str) -> float:
    first, second = HashedEmbedder().embed_blocking([one, other])
    return sum(a * b for a, b in zip(first, second, strict=True))


def test_the_vectors_are_the_same_on_every_machine() -> None:
    (vector,) = HashedEmbedder().embed_blocking(["gateway 网关"])
    assert {at: round(number, 4) for at, number in enumerate(vector) if number} == {
        56: 0.2029,
        97: 0.2029,
        134: -0.2029,
        144: -0.2029,
        146: 0.2029,
        284: -0.2029,
        290: -0.5965,
        345: 0.2029,
        478: -0.5965,
    }
    assert HashedEmbedder().model_id == "hashed-1"


def test_forms_and_spellings_of_a_word_are_near() -> None:
    assert dot("deployments of gateways", "deploying the gateway") > 0.25
    assert dot("部署网关", "网关的部署方法") > 0.3


def test_texts_without_a_common_word_are_not_near() -> None:
    assert abs(dot("green tea with milk", "nightly database backup")) < 0.3
    assert abs(dot("周末去爬山", "数据库连接超时")) < 0.3


def test_common_words_alone_make_nothing_near() -> None:
    assert dot("what is it that you do", "it is what it is") == 0


@given(st.text())
def test_any_text_gets_a_vector_of_unit_length_or_none(text: str) -> None:
    (vector,) = HashedEmbedder().embed_blocking([text])
    length = sqrt(sum(number * number for number in vector))
    assert length == pytest.approx(1.0) or not any(vector)
