"""Every embedder through the one suite, and the suite through wrong ones."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest

from memory.embeddings.multilingual import MultilingualEmbedder
from memory.embeddings.onnx import OnnxEmbedder
from memory.embeddings.protocol import Embedder
from tests.conformance.suites.embedders import EmbedderSuite
from tests.support.hashed_embedder import DIMENSION, HashedEmbedder
from tests.support.onnx_model import write_model


class TestHashed(EmbedderSuite):
    @pytest.fixture
    def embedder(self) -> Embedder:
        return HashedEmbedder()


class TestOnnx(EmbedderSuite):
    @pytest.fixture
    def embedder(self, tmp_path: Path) -> Embedder:
        write_model(tmp_path, "why does the nightly import fail failed again green tea".split())
        return OnnxEmbedder(tmp_path)


class TestMultilingual(EmbedderSuite):
    _loaded_once = MultilingualEmbedder()

    @pytest.fixture
    def embedder(self) -> Embedder:
        return MultilingualEmbedder()


class Long(HashedEmbedder):
    def embed_blocking(self, texts: Sequence[str]) -> list[list[float]]:
        return [[2 * number for number in vector] for vector in super().embed_blocking(texts)]


class Moody(HashedEmbedder):
    def __init__(self) -> None:
        self._moods = itertools.cycle([0, 1])

    def embed_blocking(self, texts: Sequence[str]) -> list[list[float]]:
        by = next(self._moods)
        return [vector[by:] + vector[:by] for vector in super().embed_blocking(texts)]


class Blind(HashedEmbedder):
    def embed_blocking(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, *[0.0] * (DIMENSION - 1)] for _ in texts]


class Backwards(HashedEmbedder):
    def embed_blocking(self, texts: Sequence[str]) -> list[list[float]]:
        return list(reversed(super().embed_blocking(texts)))


WRONG = [
    (Long, "test_each_text_gets_a_vector_of_unit_length_in_its_order"),
    (Moody, "test_the_same_text_gets_the_same_vector"),
    (Blind, "test_a_text_of_nothing_gets_the_zero_vector"),
    (Blind, "test_what_shares_words_is_nearer_than_what_does_not"),
    (Backwards, "test_each_text_gets_a_vector_of_unit_length_in_its_order"),
]


@pytest.mark.parametrize(("wrong", "test"), WRONG)
def test_a_wrong_embedder_does_not_pass(wrong: type[HashedEmbedder], test: str) -> None:
    with pytest.raises(AssertionError):
        getattr(EmbedderSuite(), test)(wrong())
