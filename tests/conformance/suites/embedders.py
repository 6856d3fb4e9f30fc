"""What every embedder must do, as tests; a subclass gives the fixture `embedder`."""

from math import sqrt

import pytest

from memory.embeddings.protocol import Embedder

TEXTS = ["部署网关之前先检查", "the nightly import fails", "naïve ＡＢＣ 🙂", "long story " * 3000]


class EmbedderSuite:
    """The contract of `Embedder`."""

    def test_each_text_gets_a_vector_of_unit_length_in_its_order(self, embedder: Embedder) -> None:
        vectors = embedder.embed_blocking(TEXTS)
        assert len({len(entry) for entry in vectors}) == 1
        for vector in vectors:
            assert sqrt(sum(number * number for number in vector)) == pytest.approx(1.0, abs=1e-4)
        alone = [embedder.embed_blocking([text])[0] for text in TEXTS]
        assert alone == [pytest.approx(entry, abs=1e-4) for entry in vectors]

    def test_the_same_text_gets_the_same_vector(self, embedder: Embedder) -> None:
        assert embedder.embed_blocking(TEXTS) == embedder.embed_blocking(TEXTS)

    def test_a_text_of_nothing_gets_the_zero_vector(self, embedder: Embedder) -> None:
        for vector in embedder.embed_blocking(["", "  \n"]):
            assert not any(vector)

    def test_no_texts_are_no_vectors(self, embedder: Embedder) -> None:
        assert embedder.embed_blocking([]) == []

    def test_what_shares_words_is_nearer_than_what_does_not(self, embedder: Embedder) -> None:
        asked, near, far = embedder.embed_blocking(
            ["why does the nightly import fail", "the nightly import failed again", "green tea"]
        )
        assert _dot(asked, near) > _dot(asked, far) + 0.1

    def test_it_names_its_model(self, embedder: Embedder) -> None:
        assert embedder.model_id


def _dot(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
