"""Transcripts of the agent program in a database."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from gateway.conversations.sql.leases import Fence
from gateway.ids import ConversationId
from gateway.transcripts import MAIN, Entry, TranscriptEnd
from memory.stores.database import Connection, SqlDatabase
from memory.stores.sqlite.statements import IN_IDS, first_row, id_list, placeholders

_END: Final = (
    "SELECT entries, uuids, last_uuid FROM agent_transcripts"
    " WHERE session = :session AND subpath = :subpath"
)
_LINES: Final = (
    "SELECT entry FROM agent_entries WHERE session = :session AND subpath = :subpath ORDER BY n"
)
_KNOWN: Final = "SELECT uuid FROM agent_entries WHERE session = ? AND subpath = ? AND uuid IN ({})"
_SET_END: Final = (
    "INSERT INTO agent_transcripts (session, subpath, entries, uuids, last_uuid)"
    " VALUES (:session, :subpath, :entries, :uuids, :last_uuid)"
    " ON CONFLICT (session, subpath) DO UPDATE SET entries = excluded.entries,"
    " uuids = excluded.uuids, last_uuid = excluded.last_uuid"
)
_ADD: Final = "INSERT INTO agent_entries (session, subpath, n, uuid, entry) VALUES (?, ?, ?, ?, ?)"
_AT_ONCE: Final = 500
_NOTHING: Final = TranscriptEnd(0, 0, None)


class SqlTranscriptStore:
    """See `TranscriptStore`."""

    def __init__(
        self,
        database: SqlDatabase,
        on_lost: Callable[[ConversationId, int], None] = lambda *_: None,
    ) -> None:
        """Initialise; `on_lost` is told of each owner whose epoch is another one."""
        self._database = database
        self._fence = Fence(database)
        self.is_fed = database.engine != "sqlite"
        self._on_lost = on_lost

    async def append(
        self,
        session: str,
        subpath: str,
        entries: Sequence[Entry],
        owner: tuple[ConversationId, int],
    ) -> int | None:
        return await self._write(owner, lambda writer: _append(writer, session, subpath, entries))

    async def replace(
        self,
        session: str,
        transcripts: Mapping[str, Sequence[Entry]],
        owner: tuple[ConversationId, int],
    ) -> int | None:

        def work(writer: Connection) -> int:
            writer.execute("DELETE FROM agent_transcripts WHERE session = ?", (session,))
            for subpath, entries in transcripts.items():
                _append(writer, session, subpath, entries)
            return _end(writer, session, MAIN).entries

        return await self._write(owner, work)

    async def _write(
        self, owner: tuple[ConversationId, int], work: Callable[[Connection], int]
    ) -> int | None:
        where, epoch = owner

        def fenced(writer: Connection) -> int | None:
            if self._fence.lost_blocking(writer, [where], {where: epoch}):
                return None
            return work(writer)

        # the turn's ending, which is synced, follows
        written = await self._database.write(fenced, is_synced=False)
        if written is None:
            self._on_lost(where, epoch)
        return written

    async def load(self, session: str, subpath: str = MAIN) -> list[bytes] | None:
        rows = await self._database.rows(_LINES, {"session": session, "subpath": subpath})
        return [bytes(row["entry"]) for row in rows] or None

    async def ends(self, session: str) -> Mapping[str, TranscriptEnd]:
        rows = await self._database.rows(
            "SELECT subpath, entries, uuids, last_uuid FROM agent_transcripts WHERE session = ?",
            (session,),
        )
        return {subpath: TranscriptEnd(*end) for subpath, *end in rows}

    async def delete(self, session: str, subpath: str = MAIN) -> None:

        def work(writer: Connection) -> None:
            if subpath == MAIN:
                writer.execute("DELETE FROM agent_transcripts WHERE session = ?", (session,))
                writer.execute(
                    "INSERT INTO agent_deletions (session) VALUES (?) ON CONFLICT DO NOTHING",
                    (session,),
                )
            else:
                writer.execute(
                    "DELETE FROM agent_transcripts WHERE session = ? AND subpath = ?",
                    (session, subpath),
                )

        await self._database.write(work)

    async def deleted(self, sessions: Sequence[str]) -> set[str]:
        rows = await self._database.rows(
            f"SELECT session FROM agent_deletions WHERE session IN {IN_IDS}",  # noqa: S608
            {"ids": id_list(sessions)},
        )
        return {row["session"] for row in rows}


async def transcripts_in(
    database: SqlDatabase, on_lost: Callable[[ConversationId, int], None]
) -> SqlTranscriptStore | None:
    """Return where the agents' sessions are stored for other servers; None for the one server of
    SQLite, which has them in files, unless some were copied there.
    """
    store = SqlTranscriptStore(database, on_lost)
    any_there = await database.row("SELECT 1 FROM agent_transcripts LIMIT 1")
    return store if store.is_fed or any_there is not None else None


def _end(writer: Connection, session: str, subpath: str) -> TranscriptEnd:
    row = first_row(writer, _END, {"session": session, "subpath": subpath})
    return _NOTHING if row is None else TranscriptEnd(*row)


def _append(writer: Connection, session: str, subpath: str, entries: Sequence[Entry]) -> int:
    end = _end(writer, session, subpath)
    new = list(_without_known(writer, session, subpath, entries))
    if not new:
        return end.entries
    uuids = [entry.uuid for entry in new if entry.uuid is not None]
    writer.execute(
        _SET_END,
        {
            "session": session,
            "subpath": subpath,
            "entries": end.entries + len(new),
            "uuids": end.uuids + len(uuids),
            "last_uuid": uuids[-1] if uuids else end.last_uuid,
        },
    )
    writer.executemany(
        _ADD,
        [
            (session, subpath, n, entry.uuid, entry.data)
            for n, entry in enumerate(new, start=end.entries)
        ],
    )
    return end.entries + len(new)


def _without_known(
    writer: Connection, session: str, subpath: str, entries: Sequence[Entry]
) -> Iterable[Entry]:
    uuids = [entry.uuid for entry in entries if entry.uuid is not None]
    known: set[str | None] = set()
    for first in range(0, len(uuids), _AT_ONCE):
        some = uuids[first : first + _AT_ONCE]
        found = writer.execute(_KNOWN.format(placeholders(some)), (session, subpath, *some))
        known.update(row["uuid"] for row in found)
    for entry in entries:
        if entry.uuid is None or entry.uuid not in known:
            known.add(entry.uuid)
            yield entry
