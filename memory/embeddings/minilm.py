"""MiniLM by Chroma's ONNX model: knows meaning, in English. Used where it is on disk, never fetched unasked.

Of Chinese it knows next to no character: two sentences about different matters are the same unknown to
it, and as near as can be. So it gives nothing for what it cannot read, and words alone find that.

The model is some 80 MB. Its archive stays beside it, because only the archive's digest is known: what
cannot be verified is not loaded.
"""

import hashlib
import re
from collections.abc import Sequence
from functools import cached_property
from math import sqrt
from pathlib import Path
from typing import Any, Final

MODEL_ID: Final = "all-MiniLM-L6-v2"
DIMENSION: Final = 384
DIGEST: Final = "913d7300ceae3b2dbc2c50d1de4baacab4be7b9380491c27fab7418616a16ec3"
_ARCHIVE: Final = "onnx.tar.gz"
_FILES: Final = (
    "config.json",
    "model.onnx",
    "special_tokens_map.json",
    "tokenizer_config.json",
    "tokenizer.json",
    "vocab.txt",
)
_MAX_CHARS: Final = 2000
"""The model reads 256 tokens; the beginning of a longer text stands for it."""
_MAX_UNREAD: Final = 0.3
"""Of a text's letters so many may be of a script that the model does not know."""
_UNREAD: Final = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)


class ModelMissing(Exception):
    """The model is not there or not what it should be; the text is one sentence for people."""


class MiniLmEmbedder:
    """The embedder that knows meaning; `directory` holds the model."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @property
    def model_id(self) -> str:
        """Name of the model."""
        return MODEL_ID

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        return DIMENSION

    def embed_blocking(self, texts: Sequence[str]) -> list[list[float]]:
        """Make a vector of unit length for each text; what cannot be read gets the zero vector."""
        return [self._vector(text[:_MAX_CHARS]) for text in texts]

    def _vector(self, text: str) -> list[float]:
        if not _can_be_read(text):
            return [0.0] * DIMENSION
        (made,) = self._model([text])  # several at once would have to be padded to one length
        return _unit([float(one) for one in made])

    @cached_property
    def _model(self) -> Any:
        function = _function(self._directory)
        function.tokenizer.no_padding()  # Chroma fills each text up to 256 tokens: six times the work
        return function


def is_present_blocking(directory: Path) -> bool:
    """Whether the model is there, whole, and the one that is meant."""
    if not all((directory / "onnx" / name).is_file() for name in _FILES):
        return False
    archive = directory / _ARCHIVE
    try:
        with archive.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == DIGEST
    except OSError:
        return False


def fetch_model_blocking(directory: Path) -> None:
    """Fetch the model from the network; one that is there already is left as it is.

    Raises:
        ModelMissing: it could not be fetched, or was not what it should be.
    """
    if is_present_blocking(directory):
        return
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _function(directory)._download_model_if_not_exists()  # noqa: SLF001  it has no other door
    except Exception as exc:
        raise ModelMissing(
            "The model could not be fetched: this needs the network once; without it memory goes on"
            " with its own vectors."
        ) from exc
    if not is_present_blocking(directory):
        raise ModelMissing("What was fetched is not the model that is meant; it is not used.")


def _function(directory: Path) -> Any:
    from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import (  # noqa: PLC0415  slow
        ONNXMiniLM_L6_V2,
    )

    function = ONNXMiniLM_L6_V2(preferred_providers=["CPUExecutionProvider"])
    function.DOWNLOAD_PATH = directory
    return function


def _can_be_read(text: str) -> bool:
    letters = sum(map(str.isalnum, text))
    return letters > 0 and len(_UNREAD.findall(text)) <= _MAX_UNREAD * letters


def _unit(vector: Sequence[float]) -> list[float]:
    length = sqrt(sum(one * one for one in vector))
    return [one / length for one in vector] if length else list(vector)
