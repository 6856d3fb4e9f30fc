"""Which embedder is used: the one that the settings name, if any."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final, Literal

import anyio.to_thread

from memory.clock import Now
from memory.embeddings.hashed import HashedEmbedder
from memory.embeddings.minilm import MiniLmEmbedder, is_present_blocking
from memory.embeddings.multilingual import MultilingualEmbedder
from memory.embeddings.onnx import OnnxEmbedder
from memory.embeddings.openai import Embeddings, OpenAiEmbedder
from memory.embeddings.protocol import Embedder, TextEmbedder, ThreadedEmbedder
from memory.outbox.breaker import BreakerState

_log = logging.getLogger(__name__)

EmbedderName = Literal["auto", "hashed", "minilm", "multilingual", "onnx", "openai"]
_MODEL_DIR: Final = "models/all-MiniLM-L6-v2"
LEAST_COSINES: Final = {HashedEmbedder.model_id: 0.4}
"""The least cosine that counts as near, of models that are not asked what their cosines mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderChoice:
    """An embedder's name, and what it needs."""

    name: EmbedderName = "auto"
    """`auto`: MiniLM if it is in the data directory, else none."""
    server: Embeddings | None = None
    """Of `openai`."""
    folder: Path | None = None
    """Of `onnx`."""


def model_dir(data_dir: Path) -> Path:
    """Return the directory of the embedding model that can be fetched."""
    return data_dir / _MODEL_DIR


async def make_embedder(
    choice: EmbedderChoice,
    data_dir: Path,
    *,
    mask: Callable[[str], str],
    now: Now,
    on_breaker: Callable[[BreakerState], None] = lambda _: None,
) -> TextEmbedder | None:
    """Return the chosen embedder, if any; a model is loaded, and a server asked, when it is first
    used.
    """
    if choice.name == "openai" and choice.server is not None:
        return OpenAiEmbedder(choice.server, mask=mask, now=now, on_breaker=on_breaker)
    local = await anyio.to_thread.run_sync(_local_blocking, choice, model_dir(data_dir))
    return ThreadedEmbedder(local) if local is not None else None


def has_embedder_blocking(choice: EmbedderChoice, data_dir: Path) -> bool:
    """Return whether `make_embedder` returns one."""
    needs_minilm = choice.name in {"auto", "minilm"}
    return not needs_minilm or is_present_blocking(model_dir(data_dir))


def _local_blocking(choice: EmbedderChoice, minilm: Path) -> Embedder | None:
    if choice.name == "onnx" and choice.folder is not None:
        embedder = OnnxEmbedder(choice.folder)
        assert embedder.model_id, "read here, in a thread"
        return embedder
    if choice.name == "hashed":
        return HashedEmbedder()
    if choice.name == "multilingual":
        # or the model's thread and the index's import it at once, and fail
        import_module("numpy")
        return MultilingualEmbedder()
    if is_present_blocking(minilm):
        import_module("chromadb")  # likewise
        return MiniLmEmbedder(minilm)
    if choice.name == "minilm":
        _log.warning("embedding_model_missing")
    return None
