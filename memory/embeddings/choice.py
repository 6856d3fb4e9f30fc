"""Which embedder is used: the one that the settings name, if any."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final, Literal

import anyio.to_thread

from memory.clock import Now
from memory.embeddings.multilingual import MultilingualEmbedder, is_installed
from memory.embeddings.onnx import OnnxEmbedder
from memory.embeddings.openai import Embeddings, OpenAiEmbedder
from memory.embeddings.protocol import Embedder, TextEmbedder, ThreadedEmbedder
from memory.remote.breaker import BreakerState

EmbedderName = Literal["auto", "multilingual", "none", "onnx", "openai"]

_THREADS: Final = ("OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""Of what numpy's wheels compute with, on Linux and Windows, and on macOS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderChoice:
    """An embedder's name, and what it needs."""

    name: EmbedderName = "auto"
    """`auto`: the multilingual one if its package is installed, else none."""
    server: Embeddings | None = None
    """Of `openai`."""
    folder: Path | None = None
    """Of `onnx`."""


async def make_embedder(
    choice: EmbedderChoice,
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
    local = await anyio.to_thread.run_sync(_local_blocking, choice)
    return ThreadedEmbedder(local) if local is not None else None


def has_embedder(choice: EmbedderChoice) -> bool:
    """Return whether `make_embedder` returns one."""
    return choice.name not in {"auto", "none"} or (choice.name == "auto" and is_installed())


def _local_blocking(choice: EmbedderChoice) -> Embedder | None:
    if choice.name == "onnx" and choice.folder is not None:
        embedder = OnnxEmbedder(choice.folder)
        assert embedder.model_id, "read here, in a thread"
        return embedder
    if not has_embedder(choice):
        return None
    # or the model's thread and the index's import it at once, and fail
    with suppress(ImportError), _one_thread():  # its users report that it is missing
        import_module("numpy")
    return MultilingualEmbedder()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Have numpy compute in one thread, if it is loaded in the block and the environment does not
    say otherwise: to it a text is little work, and threads would wait for each other longer.

    It looks at these variables once. threadpoolctl could tell it later, but looks for its library
    under a lock of the system's loader, for which a thread that imports a module may wait with the
    interpreter's lock.
    """
    environ = os.environ  # noqa: TID251  numpy looks nowhere else
    missing = [name for name in _THREADS if name not in environ]
    environ.update(dict.fromkeys(missing, "1"))
    try:
        yield
    finally:
        for name in missing:
            del environ[name]
