"""Vectors from an ONNX model in a local folder, as sentence-transformers exports one: `model.onnx`,
`tokenizer.json`.

The pooling is the one that `1_Pooling/config.json` names, else the mean. Nothing is downloaded.
onnxruntime and tokenizers come with Chroma and are loaded when the first text is embedded.
"""

import hashlib
import json
import math
from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from memory.embeddings.protocol import ModelMissing

_MODEL_FILES: Final = ("model.onnx", "onnx/model.onnx")
_TOKENIZER_FILE: Final = "tokenizer.json"
_POOLING_FILE: Final = "1_Pooling/config.json"
_MAX_TOKENS: Final = 512
"""Longer texts are cut; what models read that say nothing else."""
_DIGEST_BYTES: Final = 1_048_576
"""Of each end of the model's file; a whole one takes seconds to read."""
_SENTENCE_RANK: Final = 2
"""Of an output with one vector a text; one with a vector a token has a rank of 3."""


class OnnxEmbedder:
    """See `Embedder`; `directory` holds the model. Not for several threads at once."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @cached_property
    def model_id(self) -> str:
        """The folder's name with a digest of the model's files; reads them when first asked."""
        digest = hashlib.sha256()
        for path in (self._model_file, self._directory / _TOKENIZER_FILE):
            try:
                with path.open("rb") as file:
                    digest.update(file.read(_DIGEST_BYTES))
                    size = file.seek(0, 2)
                    file.seek(max(0, size - _DIGEST_BYTES))
                    digest.update(file.read() + str(size).encode())
            except OSError:
                digest.update(b"missing")
        return f"onnx:{self._directory.name}:{digest.hexdigest()[:16]}"

    def embed_blocking(self, texts: Sequence[str]) -> list[list[float]]:
        vectors = [self._vector(text) if text.strip() else [] for text in texts]
        width = len(next(filter(None, vectors), []) or self._vector("dimension")) if texts else 0
        return [vector or [0.0] * width for vector in vectors]

    def _vector(self, text: str) -> list[float]:
        import numpy as np  # noqa: PLC0415  slow

        session, tokenizer, takes_first = self._loaded
        found = tokenizer.encode(text)
        rows = {
            "input_ids": found.ids,
            "attention_mask": found.attention_mask,
            "token_type_ids": found.type_ids,
        }
        wanted = {put.name for put in session.get_inputs()}
        given = {name: np.array([row], np.int64) for name, row in rows.items() if name in wanted}
        try:
            made = session.run(None, given)
        except Exception as exc:
            raise ModelMissing("The model in CANDOR_EMBEDDINGS_PATH cannot embed texts.") from exc
        whole = next((output[0] for output in made if output.ndim == _SENTENCE_RANK), None)
        if whole is None:  # one text without padding: its tokens are all there are
            whole = made[0][0][0] if takes_first else made[0][0].mean(axis=0)
        numbers = [float(number) for number in whole]
        length = math.hypot(*numbers)
        return [number / length for number in numbers] if length else numbers

    @cached_property
    def _loaded(self) -> tuple[Any, Any, bool]:
        """Return the session, the tokenizer, and whether the first token stands for the text.

        Raise `ModelMissing` if they cannot be loaded.
        """
        try:
            from tokenizers import Tokenizer  # noqa: PLC0415  slow

            runtime: Any = import_module("onnxruntime")
            session = runtime.InferenceSession(
                str(self._model_file), providers=["CPUExecutionProvider"]
            )
            tokenizer = Tokenizer.from_file(str(self._directory / _TOKENIZER_FILE))
        except Exception as exc:
            raise ModelMissing(
                "CANDOR_EMBEDDINGS_PATH must name a folder with model.onnx and tokenizer.json."
            ) from exc
        bound = (tokenizer.truncation or {}).get("max_length", _MAX_TOKENS)
        tokenizer.enable_truncation(bound)
        tokenizer.no_padding()
        return session, tokenizer, self._takes_first

    @property
    def _takes_first(self) -> bool:
        try:
            text = (self._directory / _POOLING_FILE).read_text(encoding="utf-8")
            return bool(json.loads(text).get("pooling_mode_cls_token"))
        except (OSError, ValueError, AttributeError):
            return False

    @property
    def _model_file(self) -> Path:
        paths = [self._directory / name for name in _MODEL_FILES]
        return next((path for path in paths if path.is_file()), paths[0])
