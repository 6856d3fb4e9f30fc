"""MiniLM by Chroma's ONNX model, which knows meaning in English. Used if it is on disk, never
downloaded unasked.

It knows next to no Chinese character, so that all Chinese texts are alike to it. Such texts get the
zero vector and are found by words alone. The model has some 80 MB. Its archive stays beside it,
because only the archive's digest is known: what cannot be verified is not loaded.
"""

import hashlib
import re
from collections.abc import Sequence
from functools import cached_property
from math import sqrt
from pathlib import Path
from typing import Any, Final

from memory.embeddings.protocol import ModelMissing

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
"""The model reads the first 256 tokens."""
_MAX_UNREAD: Final = 0.3
"""The largest share of letters in scripts that the model does not know."""
_UNREAD: Final = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)


class MiniLmEmbedder:
    """See `Embedder`; `directory` holds the model."""

    model_id = MODEL_ID

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def embed_blocking(self, texts: Sequence[str]) -> list[list[float]]:
        """Make a vector of unit length for each text; what cannot be read gets the zero vector."""
        return [self._vector(text[:_MAX_CHARS]) for text in texts]

    def _vector(self, text: str) -> list[float]:
        if not _can_be_read(text):
            return [0.0] * DIMENSION
        (made,) = self._model([text])  # several at once would have to be padded to one length
        return _unit([float(item) for item in made])

    @cached_property
    def _model(self) -> Any:
        function = _function(self._directory)
        # Chroma fills each text up to 256 tokens: six times the work
        function.tokenizer.no_padding()
        return function


def is_present_blocking(directory: Path) -> bool:
    """Return whether the model is there, complete and verified."""
    if not all((directory / "onnx" / name).is_file() for name in _FILES):
        return False
    archive = directory / _ARCHIVE
    try:
        with archive.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == DIGEST
    except OSError:
        return False


def fetch_model_blocking(directory: Path) -> None:
    """Download the model unless it is there. Raise `ModelMissing` if it could not be downloaded or
    verified.
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
    from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2  # noqa: PLC0415  slow

    function = ONNXMiniLM_L6_V2(preferred_providers=["CPUExecutionProvider"])
    function.DOWNLOAD_PATH = directory
    return function


def _can_be_read(text: str) -> bool:
    letters = sum(map(str.isalnum, text))
    return letters > 0 and len(_UNREAD.findall(text)) <= _MAX_UNREAD * letters


def _unit(vector: Sequence[float]) -> list[float]:
    length = sqrt(sum(number * number for number in vector))
    return [number / length for number in vector] if length else list(vector)
