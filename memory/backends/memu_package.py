"""Opens the package `memu-cli` so that it asks us for vectors and reads no settings of the environment.

Everything here blocks. The package does not support several threads.
"""

import logging
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from memory.backends.memu_embeddings import EmbeddingClient
from memory.outbox.backend import BackendUnavailable, DeliveryRefused

_log = logging.getLogger(__name__)

_MISSING: Final = "memU is not installed; `pip install 'candor[memu]'` adds it."
Memu = Any
"""Its `MemoryService`; the package has no types."""


def open_blocking(client: EmbeddingClient, **config: object) -> Memu:
    """Open memU with our client for vectors."""
    from memu.app import MemoryService  # type: ignore[import-untyped]  # noqa: PLC0415  an extra that need not be there
    from memu.embedding.gateway import (  # type: ignore[import-untyped]  # noqa: PLC0415
        EMBEDDING_CLIENT_BUILDERS,
    )

    backend = f"{__name__}:{id(client)}"
    EMBEDDING_CLIENT_BUILDERS[backend] = lambda _: client
    try:
        memu = MemoryService(embedding_profiles={"default": {"client_backend": backend}}, **config)
        memu._get_embedding_client("embedding")  # noqa: SLF001  made now, kept by it
    finally:
        del EMBEDDING_CLIENT_BUILDERS[backend]
    return memu


def driven(work: Coroutine[Any, Any, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Run a coroutine that never waits: memU waits only for vectors, and ours block the thread."""
    try:
        work.send(None)
    except StopIteration as done:
        result: Mapping[str, Any] = done.value
        return result
    finally:
        work.close()
    raise BackendUnavailable("This version of memU waits for something else than vectors.")


@contextmanager
def translating_memu_errors() -> Iterator[None]:
    """Raise `BackendUnavailable` when the package is not installed or fails in any way."""
    try:
        yield
    except ImportError as exc:
        raise BackendUnavailable(_MISSING) from exc
    except (BackendUnavailable, DeliveryRefused):
        raise
    except Exception as exc:  # the edge to a package that promises no kinds of errors
        _log.exception("memu_failed")
        raise BackendUnavailable("memU failed; the server's log says how.") from exc
