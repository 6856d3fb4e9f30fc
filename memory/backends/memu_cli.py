"""memU in this process: the package `memu-cli`, with its files in a directory of ours.

Each item is one recall file, named by the item's id, in a scope of its own (the owner as `user_id`, the
item as `agent_id`), so that it can be replaced and removed without reading the owner's other files. The
package's own embedding clients are not used, since they read settings and proxies from the environment.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread

from memory.backends.memu_embeddings import EmbeddingClient, Embeddings, EmbeddingService
from memory.backends.memu_package import Memu, driven, open_blocking, translating_memu_errors
from memory.backends.memu_search import MemuSearch
from memory.backends.memu_text import content_of, description_of
from memory.items import Item
from memory.outbox.backend import BackendHealth, BackendUnavailable
from memory.outbox.delivery import Link
from memory.scope import Scope

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
        self._search = MemuSearch(directory / _FILE, self._embeddings)
        self._limiter = anyio.CapacityLimiter(1)  # it is not made for several threads
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
        return (await self._search.names_near(query, scope.readable_owners))[:limit]

    async def check(self) -> BackendHealth:
        """See `Backend.check`: opens memU's file, asks no endpoint."""
        try:
            await self._in_thread(lambda _: None)
        except BackendUnavailable as exc:
            return BackendHealth(name=NAME, state="failing", detail=str(exc))
        return BackendHealth(name=NAME, state="ok")

    async def close(self) -> None:
        """See `Backend.close`."""
        memu, self._memu = self._memu, None
        if memu is not None:
            await anyio.to_thread.run_sync(memu.database.close, limiter=self._limiter)
        await self._search.close()
        await self._embeddings.close()

    async def _in_thread(self, work: Callable[[Memu], T]) -> T:
        return await anyio.to_thread.run_sync(self._run_blocking, work, limiter=self._limiter)

    def _run_blocking(self, work: Callable[[Memu], T]) -> T:
        try:
            with translating_memu_errors():
                if self._memu is None:
                    self._memu = _open_blocking(self._directory, self._embeddings)
                return work(self._memu)
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
