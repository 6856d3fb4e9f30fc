"""Removes forgotten text from the database's files: from the full-text index, and from the log.

FTS5 only marks a deleted row; its words stay in the index's blocks until those are merged, and the
text can be put together again from the file. So all segments are merged after something was
forgotten, some pages at a time, in transactions of some milliseconds. Freed pages are zeroed
(`secure_delete`). The log beside the file still holds those pages as they were, so it is emptied at
the end. The request is stored in the transaction that forgets, and survives a crash.
"""

import logging
from functools import partial
from typing import Any, Final

import anyio

from memory.errors import StoreUnavailable
from memory.stores.database import Connection, SqlDatabase

_log = logging.getLogger(__name__)

_PAGES: Final = 200
"""That many pages take some 15 ms at most (measured at 30 000 rows)."""
_REST_S: Final = 0.02
"""Between two steps, for other writers."""
_BUSY_S: Final = 1.0
"""Before the log is tried again, which a reader of an older state, such as a backup, still uses."""
_RETRY_S: Final = 60.0
_DONE: Final = 2
"""A merge with nothing to do changes fewer rows (SQLite, "The 'merge' Command")."""


def request_vacuum_blocking(connection: Connection) -> None:
    """Request a vacuum within the transaction that forgets."""
    connection.execute(
        "INSERT INTO word_purge (only_one, asked) VALUES (1, 1)"
        " ON CONFLICT (only_one) DO UPDATE SET asked = word_purge.asked + 1"
    )


class IndexVacuum:
    """Vacuums a full-text index in the background. `run` it in a task group; `wake` it on a
    request.
    """

    def __init__(self, database: SqlDatabase, index: str) -> None:
        """Take the name of a full-text index; its database has a table `word_purge`."""
        self._database = database
        self._index = index
        self._wakened = anyio.Event()

    def wake(self) -> None:
        """Look for a request now."""
        self._wakened.set()

    async def run(self) -> None:
        """Vacuum on each request, first on one that an earlier process left, until cancelled."""
        while True:
            self._wakened = anyio.Event()
            try:
                await self.vacuum()
            except StoreUnavailable:
                _log.warning("words_not_purged", exc_info=True)
                with anyio.move_on_after(_RETRY_S):
                    await self._wakened.wait()
                continue
            await self._wakened.wait()

    async def vacuum(self) -> bool:
        """Vacuum if that was requested; return whether it was.

        Raise `StoreUnavailable` if the database cannot be written; the next call continues.
        """
        asked = await self._database.scalar("SELECT asked FROM word_purge")
        if asked is None:
            return False
        if self._database.engine == "sqlite":  # others free the room of deleted words themselves
            await self._merge()
        await self._database.execute("DELETE FROM word_purge WHERE asked = ?", (asked,))
        return True

    async def _merge(self) -> None:
        pages = -_PAGES  # the first one puts all segments on one level, so that all are merged
        while await self._database.write(partial(_merge_blocking, index=self._index, pages=pages)):
            pages = _PAGES
            await anyio.sleep(_REST_S)
        while not await self._database.checkpoint():  # noqa: ASYNC110  nothing signals when it is free
            await anyio.sleep(_BUSY_S)


def _merge_blocking(connection: Any, *, index: str, pages: int) -> bool:
    """Merge some pages; return whether there is more to merge. SQLite alone has such an index."""
    before = connection.total_changes
    connection.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('merge', ?)", (pages,))  # noqa: S608
    return bool(connection.total_changes - before >= _DONE)
