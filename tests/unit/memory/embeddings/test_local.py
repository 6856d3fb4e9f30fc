"""Embedders that run in this process: ONNX models, hashed words."""

from math import sqrt
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.embeddings.onnx import OnnxEmbedder
from memory.embeddings.protocol import ModelMissing
from tests.support.hashed_embedder import HashedEmbedder
from tests.support.onnx_model import write_model


@pytest.mark.parametrize(
    ("one", "other", "least", "most"),
    [
        ("deployments of gateways", "deploying the gateway", 0.25, 1),
        ("部署网关", "网关的部署方法", 0.3, 1),
        ("green tea with milk", "nightly database backup", -0.3, 0.3),
        ("周末去爬山", "数据库连接超时", -0.3, 0.3),
        ("what is it that you do", "it is what it is", 0, 0),
    ],
)
def test_texts_are_near_by_their_words_and_not_by_common_ones(
    one: str, other: str, least: float, most: float
) -> None:
    first, second = HashedEmbedder().embed_blocking([one, other])
    assert least <= sum(a * b for a, b in zip(first, second, strict=True)) <= most


def test_the_pooling_is_the_one_that_the_folder_names(tmp_path: Path) -> None:
    tea, milk = HashedEmbedder().embed_blocking(["tea", "milk"])
    both = [a + b for a, b in zip(tea, milk, strict=True)]
    for takes_first, expected in ((True, tea), (False, both)):
        folder = tmp_path / str(takes_first)
        write_model(folder, ["tea", "milk"], takes_first=takes_first)
        (made,) = OnnxEmbedder(folder).embed_blocking(["tea milk"])
        length = sum(number**2 for number in expected) ** 0.5
        assert made == pytest.approx([number / length for number in expected], abs=1e-6)


def test_another_model_in_the_folder_has_another_name(tmp_path: Path) -> None:
    write_model(tmp_path, ["tea"])
    first = OnnxEmbedder(tmp_path).model_id
    assert first == OnnxEmbedder(tmp_path).model_id
    write_model(tmp_path, ["milk"])
    assert OnnxEmbedder(tmp_path).model_id != first


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
@pytest.mark.parametrize("content", [None, b"\0not a model"])
def test_a_folder_without_a_sound_model_is_told(
    tmp_path: Path, name: str, content: bytes | None
) -> None:
    write_model(tmp_path, ["tea"])
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    embedder = OnnxEmbedder(tmp_path)
    assert embedder.model_id
    with pytest.raises(ModelMissing, match="CANDOR_EMBEDDINGS_PATH"):
        embedder.embed_blocking(["tea"])


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


@given(st.text())
def test_any_text_gets_a_vector_of_unit_length_or_none(text: str) -> None:
    (vector,) = HashedEmbedder().embed_blocking([text])
    length = sqrt(sum(number * number for number in vector))
    assert length == pytest.approx(1.0) or not any(vector)
