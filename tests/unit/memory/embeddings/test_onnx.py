"""A model in a local folder, and folders that hold none."""

from pathlib import Path

import pytest

from memory.embeddings.hashed import HashedEmbedder
from memory.embeddings.onnx import OnnxEmbedder
from memory.embeddings.protocol import ModelMissing
from tests.support.onnx_model import write_model


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
