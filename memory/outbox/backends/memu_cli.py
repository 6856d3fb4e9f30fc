"""memU in this process: the package `memu-cli`, with its files in a directory of ours.

Each item is one recall file, named by the item's id, in a scope of its own (the owner as `user_id`,
the item as `agent_id`), so that it can be replaced and removed without reading the owner's other
files. The package's own embedding clients are not used, since they read settings and proxies from
the environment.
"""

import logging
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread

from memory.embeddings.openai import Embeddings, EmbeddingService
from memory.errors import BackendUnavailable, DeliveryRefused
from memory.items.item import Item
from memory.items.scope import Scope
from memory.outbox.backend import BackendHealth
from memory.outbox.backends.memu_text import content_of, description_of
from memory.outbox.delivery import Link

_log = logging.getLogger(__name__)


class EmbeddingClient:
    """Embeds for memU's worker thread; the request runs on the loop, where it can be cancelled."""

    def __init__(self, service: EmbeddingService) -> None:
        self._service = service

    async def embed(self, inputs: list[str]) -> tuple[list[list[float]], None]:
        """Return vectors, without the raw answer."""
        return anyio.from_thread.run(self._service.vectors, inputs), None


_MISSING: Final = "memU is not installed; `pip install 'candor[memu]'` adds it."
Memu = Any
"""Its `MemoryService`; the package has no types."""


def open_blocking(client: EmbeddingClient, **config: object) -> Memu:
    """Open memU with our client for vectors."""
    from memu.app import MemoryService  # type: ignore[import-untyped]  # noqa: PLC0415  an extra that need not be there
    from memu.embedding.gateway import EMBEDDING_CLIENT_BUILDERS  # type: ignore[import-untyped]  # noqa: PLC0415

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


NAME: Final = "memu"
_FILE: Final = "memu.sqlite3"
_TRACK: Final = "memory"
T = TypeVar("T")


class MemuCliBackend:
    """The package as a backend; see `Backend` and `RetrievingBackend`. Close it."""

    name = NAME

    def __init__(self, directory: Path, embeddings: Embeddings) -> None:
        self._directory = directory
        self._embeddings = EmbeddingService(embeddings)
        self._limiter = anyio.CapacityLimiter(1)
        self._using = threading.Lock()
        """The package is not made for several threads; a cancelled question leaves a thread behind.
        """
        self._memu: Memu = None

    async def put(self, item: Item, idempotency_key: str) -> Sequence[Link]:  # noqa: ARG002  the name does it
        """See `Backend.put`: writes the item's recall file."""
        user = {"user_id": item.scope.owner_id, "agent_id": item.id}
        file = {
            "name": item.id,
            "track": _TRACK,
            "description": description_of(item),
            "content": content_of(item),
        }

        def commit(memu: Memu) -> Sequence[Link]:
            made = driven(memu.commit_results(recall_files=[file], user=user))
            return [
                Link(item_id=item.id, backend=NAME, remote_kind="file", remote_id=file["id"])
                for file in made["recall_files"]
            ]

        return await self._in_thread(commit)

    async def forget(
        self,
        item_id: str,
        links: Sequence[Link],  # noqa: ARG002  the item's scope finds also what was never noted
        idempotency_key: str,  # noqa: ARG002
    ) -> None:
        """See `Backend.forget`: removes the recall file; its text is overwritten in memU's file."""
        where = {"agent_id": item_id}

        def clear(memu: Memu) -> None:
            memu.database.recall_file_segment_repo.clear_segments(where)
            memu.database.recall_file_repo.clear_recall_files(where)

        await self._in_thread(clear)

    async def retrieve(self, query: str, scope: Scope, *, limit: int) -> Sequence[str]:
        """See `RetrievingBackend.retrieve`; returns at most five."""
        if not query.strip():
            return []

        where = {"user_id__in": list(scope.readable_owners)}

        def search(memu: Memu) -> Sequence[str]:
            found = driven(memu.progressive_retrieve(query, where))["files"]
            return [str(file["name"]) for file in found]

        return (await self._in_thread(search, abandon_on_cancel=True))[:limit]

    async def check(self) -> BackendHealth:
        """See `Backend.check`: opens memU's file, asks no endpoint."""
        try:
            await self._in_thread(lambda _: None)
        except BackendUnavailable as exc:
            return BackendHealth(name=NAME, state="failing", detail=str(exc))
        return BackendHealth(name=NAME, state="ok")

    async def close(self) -> None:
        await anyio.to_thread.run_sync(self._close_blocking)
        await self._embeddings.close()

    def _close_blocking(self) -> None:
        with self._using:
            memu, self._memu = self._memu, None
            if memu is not None:
                memu.database.close()

    async def _in_thread(self, work: Callable[[Memu], T], *, abandon_on_cancel: bool = False) -> T:
        run = partial(anyio.to_thread.run_sync, self._run_blocking, work, limiter=self._limiter)
        return await run(abandon_on_cancel=abandon_on_cancel)

    def _run_blocking(self, work: Callable[[Memu], T]) -> T:
        """Run `work`; raise `BackendUnavailable` when the package is not installed or fails in any
        way.
        """
        try:
            with self._using:
                if self._memu is None:
                    self._memu = _open_blocking(self._directory, self._embeddings)
                return work(self._memu)
        except ImportError as exc:
            raise BackendUnavailable(_MISSING) from exc
        except (BackendUnavailable, DeliveryRefused):
            raise
        except Exception as exc:  # the edge to a package that promises no kinds of errors
            _log.exception("memu_failed")
            raise BackendUnavailable("memU failed; the server's log says how.") from exc
        finally:
            if self._memu is not None:
                _drop_copies(self._memu)


def _open_blocking(directory: Path, embeddings: EmbeddingService) -> Memu:
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    store = {"provider": "sqlite", "dsn": f"sqlite:///{directory / _FILE}"}
    memu = open_blocking(EmbeddingClient(embeddings), database_config={"metadata_store": store})
    from sqlalchemy import event  # noqa: PLC0415  comes with it

    engine = memu.database._sessions.engine  # noqa: SLF001  no public way to it
    engine.dispose()  # the connections that made the tables
    event.listen(engine, "connect", _overwrite_what_is_deleted)
    return memu


def _overwrite_what_is_deleted(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA secure_delete=ON").close()


def _drop_copies(memu: Memu) -> None:
    """Empty memU's copies of what it read; it reads its file again anyway."""
    memu.database.recall_files.clear()
    memu.database.resources.clear()
    memu.database.recall_file_segment_repo.segments.clear()
