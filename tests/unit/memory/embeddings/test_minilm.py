"""The model itself is not fetched by tests: what is tried is that nothing is loaded unless it is the one."""

from pathlib import Path
from typing import Any

import pytest

from memory.embeddings import minilm
from memory.embeddings.minilm import (
    MiniLmEmbedder,
    fetch_model_blocking,
    is_present_blocking,
)
from memory.embeddings.protocol import ModelMissing


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


def test_a_directory_without_the_model_has_none(tmp_path: Path) -> None:
    assert not is_present_blocking(tmp_path)


def test_an_archive_that_is_another_is_not_the_model(tmp_path: Path) -> None:
    lay(tmp_path, b"something else")
    assert not is_present_blocking(tmp_path)


def test_the_archive_that_is_meant_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay(tmp_path, b"")
    monkeypatch.setattr(
        minilm, "DIGEST", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )
    assert is_present_blocking(tmp_path)
    (tmp_path / "onnx" / "vocab.txt").unlink()
    assert not is_present_blocking(tmp_path)


def test_a_fetch_that_fails_says_so_and_leaves_memory_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unreachable:
        def _download_model_if_not_exists(self) -> None:
            raise OSError("no route")

    monkeypatch.setattr(minilm, "_function", lambda _: Unreachable())
    with pytest.raises(ModelMissing, match="network"):
        fetch_model_blocking(tmp_path / "model")


def test_what_was_fetched_and_is_not_the_model_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lying:
        def _download_model_if_not_exists(self) -> None:
            lay(tmp_path, b"a fake")

    monkeypatch.setattr(minilm, "_function", lambda _: Lying())
    with pytest.raises(ModelMissing, match="not the model"):
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


def test_each_text_is_as_long_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    monkeypatch.setattr(minilm, "_function", lambda _: model)
    MiniLmEmbedder(tmp_path).embed_blocking(["one", "and another"])
    assert not model.pads


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ("the gateway timed out", True),
        ("gateway 超时: connection pool exhausted", True),
        ("naïve façade, größer", True),
        ("数据库连接超时", False),
        ("支付网关 TLS 证书过期", False),
        ("資料庫連線逾時", False),
        ("データベース接続", False),
        ("데이터베이스 연결 시간 초과", False),
        ("12.5 % 404", True),
    ],
)
def test_what_it_cannot_read_it_gives_nothing_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, *, is_read: bool
) -> None:
    """To the model two Chinese sentences are the same row of unknown signs."""
    monkeypatch.setattr(minilm, "_function", lambda _: Model())
    (vector,) = MiniLmEmbedder(tmp_path).embed_blocking([text])
    assert any(vector) is is_read
