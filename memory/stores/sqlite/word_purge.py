"""Takes what was forgotten out of the database's files, too: its words in the full-text index, and the log.

FTS5 only marks a deleted row; its words stay in the index's blocks until those are merged, and whoever has
the file can put the text together again. So all segments are merged after something was forgotten, some
pages at a time, in transactions of some milliseconds. Freed pages are zeroed (`secure_delete`). The log beside
the file still holds those pages as they were, so it is emptied at the end. What was asked for is written down
with the forgetting itself and survives a crash.
"""

import logging
import sqlite3
from functools import partial
from typing import Final

import anyio
from anyio.abc import TaskStatus

from memory.errors import StoreUnavailable
from memory.stores.sqlite.database import Database

_log = logging.getLogger(__name__)

_PAGES: Final = 200
"""That many pages take some 15 ms at most (measured at 30 000 rows)."""
_REST_S: Final = 0.02
"""Between two steps, for others who want to write."""
_IN_THE_WAY_S: Final = 1.0
"""After this it is looked again whether nobody reads an old state of the log any more, a backup say."""
_RETRY_S: Final = 60.0
_DONE: Final = 2
"""A merge with nothing to do changes fewer rows (SQLite, "The 'merge' Command")."""


def ask_purge_blocking(connection: sqlite3.Connection) -> None:
    """Ask for it, in the transaction that forgets."""
    connection.execute(
        "INSERT INTO word_purge (only_one, asked) VALUES (1, 1)"
        " ON CONFLICT (only_one) DO UPDATE SET asked = asked + 1"
    )


class WordPurge:
    """Purges in the background. `run` it in a task group; `wake` it when something was forgotten."""

    def __init__(self, database: Database, index: str) -> None:
        """Make one for a full-text `index` (a table's name) beside a table `word_purge`."""
        self._database = database
        self._index = index
        self._wakened = anyio.Event()

    def wake(self) -> None:
        """Say that a purge may have been asked for."""
        self._wakened.set()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Purge whenever it is asked for, what a process before this one left first, until cancelled."""
        task_status.started()
        while True:
            self._wakened = anyio.Event()
            try:
                await self.purge()
            except StoreUnavailable:
                _log.warning("words_not_purged", exc_info=True)
                with anyio.move_on_after(_RETRY_S):
                    await self._wakened.wait()
                continue
            await self._wakened.wait()

    async def purge(self) -> bool:
        """Purge where that was asked for; False: it was not.

        Raises:
            StoreUnavailable: the database cannot be written; the next try goes on.
        """
        row = await self._database.row("SELECT asked FROM word_purge")
        if row is None:
            return False
        asked = int(row["asked"])
        pages = -_PAGES  # the first one puts all segments on one level, so that all are merged
        while await self._database.write(partial(_merge_blocking, index=self._index, pages=pages)):
            pages = _PAGES
            await anyio.sleep(_REST_S)
        while not await self._database.checkpoint():  # noqa: ASYNC110  nothing tells when it is free
            await anyio.sleep(_IN_THE_WAY_S)
        await self._database.write(
            lambda writer: writer.execute("DELETE FROM word_purge WHERE asked = ?", (asked,))
        )
        return True


def _merge_blocking(connection: sqlite3.Connection, *, index: str, pages: int) -> bool:
    """Merge some pages; False: there is nothing left to merge."""
    before = connection.total_changes
    connection.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('merge', ?)", (pages,))  # noqa: S608
    return connection.total_changes - before >= _DONE
