"""Embedders that run in this process: MiniLM, ONNX models, hashed words."""

from math import sqrt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.embeddings import minilm
from memory.embeddings.hashed import HashedEmbedder
from memory.embeddings.minilm import (
    MiniLmEmbedder,
    fetch_model_blocking,
    is_present_blocking,
)
from memory.embeddings.onnx import OnnxEmbedder
from memory.embeddings.protocol import ModelMissing
from tests.support.onnx_model import write_model


class Model:
    """Stands for Chroma's function: pads unless it is told not to, and makes a vector of each text."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.pads = True
        self.tokenizer = self

    def no_padding(self) -> None:
        self.pads = False

    def __call__(self, texts: list[str]) -> list[list[Any]]:
        assert len(texts) == 1 or self.pads, "texts of different lengths make no table"
        self.asked += texts
        return [[3.0, 4.0, *[0.0] * 382] for _ in texts]


def lay(directory: Path, archive: bytes) -> None:
    (directory / "onnx").mkdir(parents=True)
    for name in minilm._FILES:  # noqa: SLF001  what the model consists of
        (directory / "onnx" / name).write_bytes(b"x")
    (directory / "onnx.tar.gz").write_bytes(archive)


def test_the_archive_that_is_meant_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay(tmp_path, b"")
    monkeypatch.setattr(
        minilm, "DIGEST", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )
    assert is_present_blocking(tmp_path)
    (tmp_path / "onnx" / "vocab.txt").unlink()
    assert not is_present_blocking(tmp_path)


def test_a_fetch_that_fails_or_brings_another_model_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OSError("no route")

    for download, told in ((fail, "network"), (lambda: lay(tmp_path, b"fake"), "not the model")):
        fetching = SimpleNamespace(_download_model_if_not_exists=download)
        monkeypatch.setattr(minilm, "_function", lambda _, fetching=fetching: fetching)
        with pytest.raises(ModelMissing, match=told):
            fetch_model_blocking(tmp_path)


def test_vectors_are_made_of_what_has_signs_and_brought_to_unit_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model()
    monkeypatch.setattr(minilm, "_function", lambda _: model)
    vectors = MiniLmEmbedder(tmp_path).embed_blocking(["", "x" * 9000, "b", " …\n"])
    assert [any(vector) for vector in vectors] == [False, True, True, False]
    assert vectors[1][:2] == pytest.approx([0.6, 0.8])
    assert [len(entry) for entry in model.asked] == [2000, 1]
    assert not model.pads, "each text is as long as it is"


READABLE = {
    "the gateway timed out": True,
    "gateway 超时: connection pool exhausted": True,
    "naïve façade, größer": True,
    "12.5 % 404": True,
    "数据库连接超时": False,
    "支付网关 TLS 证书过期": False,
    "資料庫連線逾時": False,
    "データベース接続": False,
    "데이터베이스 연결 시간 초과": False,
}


def test_what_it_cannot_read_it_gives_nothing_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the model two Chinese sentences are the same row of unknown signs."""
    monkeypatch.setattr(minilm, "_function", lambda _: Model())
    vectors = MiniLmEmbedder(tmp_path).embed_blocking([*READABLE])
    assert [any(vector) for vector in vectors] == [*READABLE.values()]


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
