"""Keeps the sessions of agents in the database, so that they are resumed on any server.

The agent program writes its files as ever, and the SDK hands over what it wrote (`append`) while
the model goes on. A session is resumed from the file of this server if that has all that is stored,
and the file is written from the store otherwise. What it has beyond the store is stored before the
first prompt: the server was killed before it was stored, or did not use the store.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import anyio
import anyio.to_thread
from claude_agent_sdk import MirrorErrorMessage, SessionKey

from gateway.engine.protocol import EngineUnavailable
from gateway.engine.session_files import (
    TASKS,
    entries_in,
    entry_of,
    folder_of,
    last_uuid_in,
    place_of,
    read_blocking,
    read_session_blocking,
    read_tasks_blocking,
    tasks_of,
    transcripts_of,
    write_session_blocking,
)
from gateway.ids import ConversationId
from gateway.transcripts import MAIN, Entry, SessionOwner, TranscriptEnd, TranscriptStore
from memory.errors import StoreUnavailable

_log = logging.getLogger(__name__)

_Held: TypeAlias = tuple[ConversationId, int]
"""A conversation, and the epoch of its lease."""
_PROJECT: Final = "candor"
"""In the place of the workspace's path, which may differ from server to server."""
_WRITTEN_S: Final = 20.0
"""An entry that is not stored by then is read from the file later."""


def stored_name(session_id: str) -> str:
    """Return the name of a session in the store."""
    return f"{_PROJECT}/{session_id}"


@dataclass(frozen=True, slots=True)
class FoundSession:
    """A session that is about to be resumed, in the file that the agent reads."""

    id: str
    folder: str
    """Of the sessions of the agent's workspace."""
    entries: int
    """How many the store has."""
    is_ahead: bool
    """The file has entries that the store has not."""


async def find_session(
    store: TranscriptStore, config_dir: Path, workspace: Path, session_id: str
) -> FoundSession | None:
    """Bring the file of a session up to date for an agent in a workspace; None if there is no such
    session.

    Raise `EngineUnavailable` if it cannot be read, or written to the file.
    """
    name, run = stored_name(session_id), anyio.to_thread.run_sync
    try:
        ends = await store.ends(name)
        end = ends.get(MAIN)
        if end is None:
            folder = await run(_folder_with_blocking, config_dir, workspace, session_id)
            return None if folder is None else FoundSession(session_id, folder, 0, is_ahead=True)
        folder = await run(folder_of, workspace)
        file = await run(place_of, config_dir, folder, session_id)
        is_ahead = await run(_compare_blocking, file, end)
        if is_ahead is None:
            lines = {subpath: await store.load(name, subpath) or [] for subpath in ends}
            await run(write_session_blocking, file, lines)
            _log.info("session_fetched", extra={"session_id": session_id, "entries": end.entries})
    except (StoreUnavailable, OSError) as exc:
        raise EngineUnavailable("The session cannot be resumed now.", detail=str(exc)) from exc
    return FoundSession(session_id, folder, end.entries, is_ahead=bool(is_ahead))


def _folder_with_blocking(config_dir: Path, workspace: Path, session_id: str) -> str | None:
    """Return the folder that has a session's file, preferably the workspace's own."""
    folders = [file.parent.name for file in transcripts_of(config_dir, session_id)]
    own = folder_of(workspace)
    return own if own in folders else next(iter(folders), None)


def _compare_blocking(file: Path, end: TranscriptEnd) -> bool | None:
    """Return whether a file has more than what is stored; None if it has not all of it.

    Since each entry follows another, a file that has the last one has all.
    """
    try:
        content = read_blocking(file)
    except OSError:
        return None
    last = last_uuid_in(content)
    if end.last_uuid is None:
        return None if last is None else True
    if f'"uuid":"{end.last_uuid}"'.encode() not in content:
        return None
    if last != end.last_uuid:
        return True
    if content.count(b'"uuid":"') <= end.uuids:
        return False
    return len({entry.uuid for entry in entries_in(content)} - {None}) > end.uuids


def _subpath_of(key: SessionKey) -> str:
    return key.get("subpath", MAIN)


@dataclass(frozen=True, slots=True)
class _Failed:
    """Entries whose storing failed: the SDK tries the same list again, or gives it up."""

    entries: Sequence[Any]
    session_id: str


class SessionMirror:
    """Stores what one agent writes, for the turn that it works on. It is given to the SDK.

    Entries that were given up are read from the file and stored with the next ones.
    """

    def __init__(
        self, store: TranscriptStore, config_dir: Path, resumed: FoundSession | None = None
    ) -> None:
        """Initialise; `resumed` is the session that the agent goes on writing."""
        self._store = store
        self._config_dir = config_dir
        self._owner: SessionOwner | None = None
        self._held: _Held | None = None
        """The owner under which the agent is known to have the whole session."""
        self._refused: _Held | None = None
        self._session = resumed
        self._missed = {resumed.id} if resumed is not None and resumed.is_ahead else set()
        """The sessions of which something is not stored."""
        self._failed: _Failed | None = None
        self._tasks: Entry | None = None
        """The list of tasks that was stored last."""

    async def begin(self, owner: SessionOwner | None) -> bool:
        """Store for an owner from now on, or, without one, nothing.

        Return False if another server has gone on with the session, so that this agent does not
        know all of it, or the store does not tell.
        """
        self._owner = owner
        session = self._session
        if owner is None or session is None:
            return True
        self._give_up_failed()
        held = (owner.conversation_id, owner.epoch)
        if held == self._held and session.id not in self._missed:
            return True
        try:
            stored = await self._catch_up(session, held)
        except (StoreUnavailable, OSError) as exc:
            _log.warning("session_not_stored", extra=_told(session.id, exc))
            return False
        if stored is None:
            return False
        self._session, self._held = replace(session, entries=stored), held
        return True

    async def _catch_up(self, session: FoundSession, held: _Held) -> int | None:
        """Return how many entries the store has, if they are those that the agent knows."""
        if session.id in self._missed:
            return await self._replace(session.folder, session.id, held)
        end = (await self._store.ends(stored_name(session.id))).get(MAIN)
        return session.entries if end is not None and end.entries == session.entries else None

    async def append(self, key: SessionKey, entries: Sequence[Any]) -> None:
        """Store entries that the agent has written to its file."""
        owner, session_id = self._owner, key["session_id"]
        if owner is None:
            return
        if not await owner.wait_decided():
            self._missed.add(session_id)
            return
        held = (owner.conversation_id, owner.epoch)
        if held == self._refused:
            return
        if self._failed is not None and self._failed.entries is not entries:
            self._give_up_failed()
        self._failed, is_whole = _Failed(entries, session_id), session_id in self._missed
        with anyio.fail_after(_WRITTEN_S):
            stored = await self._store_entries(key, entries, held)
        self._failed = None
        if stored is None:
            self._refused = held
        elif is_whole or _subpath_of(key) == MAIN:
            self._held = held
            self._session = FoundSession(session_id, key["project_key"], stored, is_ahead=False)
            await self._store_tasks(session_id, held)

    async def _store_entries(
        self, key: SessionKey, entries: Sequence[Any], held: _Held
    ) -> int | None:
        if key["session_id"] in self._missed:
            return await self._replace(key["project_key"], key["session_id"], held)
        kept = [entry_of(entry) for entry in entries]
        name = stored_name(key["session_id"])
        return await self._store.append(name, _subpath_of(key), kept, held)

    async def _store_tasks(self, session_id: str, held: _Held) -> None:
        """Store the list of tasks if it is another one; the SDK does not hand it over."""

        def read_blocking() -> Entry | None:
            return read_tasks_blocking(tasks_of(self._config_dir, session_id))

        tasks = await anyio.to_thread.run_sync(read_blocking)
        if tasks is not None and tasks != self._tasks:
            await self._store.append(stored_name(session_id), TASKS, [tasks], held)
            self._tasks = tasks

    def _give_up_failed(self) -> None:
        if self._failed is not None:
            self._missed.add(self._failed.session_id)
            self._failed = None

    async def _replace(self, folder: str, session_id: str, held: _Held) -> int | None:
        """Store what the file has, in the place of what is stored."""

        def read_blocking() -> Mapping[str, Sequence[Entry]]:
            return read_session_blocking(place_of(self._config_dir, folder, session_id))

        transcripts = await anyio.to_thread.run_sync(read_blocking)
        stored = await self._store.replace(stored_name(session_id), transcripts, held)
        if stored is not None:
            self._missed.discard(session_id)
            _log.info("session_stored_from_file", extra={"session_id": session_id})
        return stored

    async def load(self, key: SessionKey) -> None:
        """Return nothing: `find_session` has written the file that the agent resumes."""


def _told(session_id: str, error: object) -> dict[str, str]:
    return {"session_id": session_id, "reason": str(error)}


def tell_dropped(message: MirrorErrorMessage) -> None:
    """Log that entries were given up for now: a server that takes over would not have them."""
    session_id = "" if message.key is None else message.key["session_id"]
    _log.warning("session_not_stored", extra=_told(session_id, message.error))
