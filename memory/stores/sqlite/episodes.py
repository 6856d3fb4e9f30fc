"""Episodes in SQLite, each written in one transaction with its item, deliveries and the turn's mark.

Likeness is looked up, never searched for: equal texts by their fingerprint, like ones by the marks that
they share, the newest few of each mark. So a write costs the same among a hundred and a million.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from memory.clock import Now, from_rfc3339, rfc3339
from memory.episodes.episode import Episode, Sections, Variant
from memory.episodes.episode_merge import merged, room_of, tags_key_of
from memory.episodes.item import to_item
from memory.episodes.likeness import (
    MIN_SHARED_MARKS,
    Likeness,
    compared_text,
    realm_of,
    tell_the_same,
    words_of,
)
from memory.episodes.store import MAX_CANDIDATES, MERGE_WINDOW, NewEpisode, Put
from memory.ids import derived_id
from memory.outbox.delivery import NewDelivery
from memory.scope import Scope
from memory.stores.sqlite.chronicle import mark_remembered_blocking
from memory.stores.sqlite.database import Database, understanding_rows
from memory.stores.sqlite.forgotten import is_any_forgotten
from memory.stores.sqlite.item_rows import COLUMNS, item_of
from memory.stores.sqlite.items import put_item_blocking
from memory.stores.sqlite.outbox import enqueue_again_blocking

_NEWEST_OF_A_MARK = 24
_MAX_RECALLED = 200
_FIRST_MOMENT, _LAST_MOMENT = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class SqliteEpisodeStore:
    """Keeps episodes in the memory's database."""

    def __init__(self, database: Database, now: Now) -> None:
        self._database = database
        self._now = now

    async def put(self, new: Sequence[NewEpisode]) -> Sequence[Put]:
        """Store or merge episodes, all in one transaction."""
        now = self._now()
        return await self._database.write(
            lambda writer: [put_episode_blocking(writer, one, now) for one in new]
        )

    async def get(self, episode_id: str, scope: Scope) -> Episode | None:
        """Give an episode that the scope covers."""
        row = await self._database.row(
            "SELECT value FROM episodes WHERE episode_id = ?", (episode_id,)
        )
        episode = read_episode(row["value"]) if row is not None else None
        return episode if episode is not None and scope.covers(episode.scope) else None

    async def mark_remembered(self, turn_id: str) -> None:
        """Mark a turn of which nothing is to be remembered."""
        now = self._now()
        await self._database.write(lambda writer: mark_remembered_blocking(writer, turn_id, now))

    async def recalled_texts(self, item_ids: Sequence[str], scope: Scope) -> Sequence[str] | None:
        """Give the texts of items that went into a prompt; None: one of them was forgotten."""
        wanted = list(dict.fromkeys(item_ids))[:_MAX_RECALLED]
        rows = await self._database.rows(
            f"SELECT {COLUMNS} FROM items WHERE id IN ({', '.join('?' * len(wanted))}) ORDER BY seq",  # noqa: S608  names of our own
            wanted,
        )
        # looked for after the texts: what is forgotten in between was read
        if await is_any_forgotten(self._database, wanted):
            return None
        found = [one for one in map(item_of, rows) if scope.covers(one.scope)]
        return [f"{one.title}\n{one.summary}\n{one.body}" for one in found]


def put_episode_blocking(connection: sqlite3.Connection, new: NewEpisode, now: datetime) -> Put:
    """Store or merge one episode with all that goes with it, within the caller's transaction."""
    put = _put(connection, new, now)
    if new.remembers_turn is not None:
        mark_remembered_blocking(connection, new.remembers_turn, now)
    return put


def _put(connection: sqlite3.Connection, new: NewEpisode, now: datetime) -> Put:
    if new.comes_back:
        return _put_back(connection, new, now)
    episode = new.episode
    if _owner_of(connection, episode.episode_id) is not None:
        return Put(status="stored", episode_id=episode.episode_id)
    row = _like_row(connection, new)
    if row is None:
        number = _insert(connection, new)
        _tell(connection, episode, new.deliver_to, now)
        put = Put(status="stored", episode_id=episode.episode_id)
    else:
        number, existing = row["id"], read_episode(row["value"])
        kept = merged(existing, episode)
        _update(connection, row, kept, new)
        if kept.revision != existing.revision:
            _tell(connection, kept, new.deliver_to, now)
        put = Put(status="merged", episode_id=kept.episode_id)
    _note_form(connection, number, new.likeness, episode.source_refs)
    return put


def _put_back(connection: sqlite3.Connection, new: NewEpisode, now: datetime) -> Put:
    """Store an episode that was written out once, or find it."""
    episode, owner_id = new.episode, new.episode.scope.owner_id
    if _owner_of(connection, episode.episode_id) not in {None, owner_id}:
        own_id = derived_id("epi", owner_id, episode.episode_id)
        episode = replace(episode, episode_id=own_id)
    if _owner_of(connection, episode.episode_id) is not None:
        return Put(status="there", episode_id=episode.episode_id)
    same = _same_row(connection, new)
    if same is not None:
        return Put(status="there", episode_id=same["episode_id"])
    number = _insert(connection, replace(new, episode=episode))
    _tell(connection, episode, new.deliver_to, now)
    _note_form(connection, number, new.likeness, episode.source_refs)
    return Put(status="stored", episode_id=episode.episode_id)


def _owner_of(connection: sqlite3.Connection, episode_id: str) -> str | None:
    row = connection.execute(
        "SELECT owner_id FROM episodes WHERE episode_id = ?", (episode_id,)
    ).fetchone()
    return row[0] if row is not None else None


def _tell(
    connection: sqlite3.Connection, episode: Episode, deliver_to: Sequence[str], now: datetime
) -> None:
    put_item_blocking(connection, to_item(episode))
    for backend in deliver_to:
        delivery = NewDelivery(
            backend=backend,
            operation="put",
            item_id=episode.episode_id,
            owner_id=episode.scope.owner_id,
            revision=episode.revision,
        )
        # again, where it was forgotten before and is imported now
        enqueue_again_blocking(connection, delivery, now)


def _insert(connection: sqlite3.Connection, new: NewEpisode) -> int:
    episode, likeness = new.episode, new.likeness
    cursor = connection.execute(
        "INSERT INTO episodes"
        " (episode_id, owner_id, realm, episode_type, tags_key, last_at, room, marks, value)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            episode.episode_id,
            episode.scope.owner_id,
            realm_of(episode),
            episode.episode_type,
            tags_key_of(episode),
            rfc3339(max([episode.occurred_at, *(one.occurred_at for one in episode.variants)])),
            room_of(episode),
            json.dumps(sorted(set(likeness.marks))),
            write_episode(episode),
        ),
    )
    assert cursor.lastrowid is not None, "a row was inserted"
    _note_marks(connection, cursor.lastrowid, likeness.marks)
    return cursor.lastrowid


def _update(
    connection: sqlite3.Connection, row: Mapping[str, Any], kept: Episode, new: NewEpisode
) -> None:
    marks = {*json.loads(row["marks"]), *new.likeness.marks}
    last_at = max(row["last_at"], rfc3339(new.episode.occurred_at))
    connection.execute(
        "UPDATE episodes SET last_at = ?, room = ?, marks = ?, value = ? WHERE id = ?",
        (last_at, room_of(kept), json.dumps(sorted(marks)), write_episode(kept), row["id"]),
    )
    _note_marks(connection, row["id"], new.likeness.marks)


def _note_marks(connection: sqlite3.Connection, number: int, marks: Sequence[int]) -> None:
    connection.executemany(
        "INSERT OR IGNORE INTO episode_marks (mark, episode) VALUES (?, ?)",
        [(mark, number) for mark in marks],
    )


def _note_form(
    connection: sqlite3.Connection, number: int, likeness: Likeness, source_refs: Sequence[str]
) -> None:
    connection.execute(
        "INSERT OR IGNORE INTO episode_forms (fingerprint, episode) VALUES (?, ?)",
        (likeness.fingerprint, number),
    )
    connection.executemany(
        "INSERT OR IGNORE INTO episode_sources (episode, intent_id) VALUES (?, ?)",
        [(number, intent_id) for intent_id in source_refs],
    )


def _like_row(connection: sqlite3.Connection, new: NewEpisode) -> Mapping[str, Any] | None:
    """Find the row that an episode goes into: the very same, the same by type and tags, a like text."""
    return (
        _same_row(connection, new)
        or _like_by_tags(connection, new.episode)
        or _like_by_text(connection, new)
    )


def _same_row(connection: sqlite3.Connection, new: NewEpisode) -> Mapping[str, Any] | None:
    return _row(
        connection,
        "SELECT episodes.* FROM episode_forms JOIN episodes ON episodes.id = episode"
        " WHERE fingerprint = ?",
        (new.likeness.fingerprint,),
    )


def _like_by_tags(connection: sqlite3.Connection, episode: Episode) -> Mapping[str, Any] | None:
    tags_key = tags_key_of(episode)
    if tags_key is None:
        return None
    begin, end = _around(episode.occurred_at)
    return _row(
        connection,
        "SELECT * FROM episodes WHERE realm = ? AND episode_type = ? AND tags_key = ?"
        " AND room > 0 AND last_at BETWEEN ? AND ? ORDER BY last_at DESC, id DESC LIMIT 1",
        (realm_of(episode), episode.episode_type, tags_key, rfc3339(begin), rfc3339(end)),
    )


def _around(moment: datetime) -> tuple[datetime, datetime]:
    """Give the window around a moment, cut where the calendar ends."""
    return (
        moment - min(MERGE_WINDOW, moment - _FIRST_MOMENT),
        moment + min(MERGE_WINDOW, _LAST_MOMENT - moment),
    )


def _like_by_text(connection: sqlite3.Connection, new: NewEpisode) -> Mapping[str, Any] | None:
    words, realm = new.likeness.words, realm_of(new.episode)
    for number in _candidates(connection, new.likeness.marks):
        row = _row(connection, "SELECT * FROM episodes WHERE id = ?", (number,))
        if row is None or row["realm"] != realm or row["room"] == 0:
            continue
        if tell_the_same(words_of(compared_text(read_episode(row["value"]))), words):
            return row
    return None


def _candidates(connection: sqlite3.Connection, marks: Sequence[int]) -> Sequence[int]:
    shared: Counter[int] = Counter()
    for mark in marks:
        shared.update(
            number
            for (number,) in connection.execute(
                "SELECT episode FROM episode_marks WHERE mark = ? ORDER BY episode DESC LIMIT ?",
                (mark, _NEWEST_OF_A_MARK),
            )
        )
    enough = min(MIN_SHARED_MARKS, len(marks))
    found = sorted((-count, -number) for number, count in shared.items() if count >= enough)
    return [-number for _, number in found[:MAX_CANDIDATES]]


def _row(
    connection: sqlite3.Connection, sql: str, parameters: Sequence[Any]
) -> Mapping[str, Any] | None:
    cursor = connection.execute(sql, parameters)
    row = cursor.fetchone()
    if row is None:
        return None
    names = [column[0] for column in cursor.description]
    return dict(zip(names, row, strict=True))


def delete_episode_blocking(
    connection: sqlite3.Connection, episode_id: str
) -> Sequence[str] | None:
    """Delete an episode's own rows, its item's apart; None where there is none.

    Gives the ids of the intents that it and what was merged into it were made of.
    """
    row = _row(connection, "SELECT id, marks FROM episodes WHERE episode_id = ?", (episode_id,))
    if row is None:
        return None
    number = row["id"]
    sources = connection.execute(
        "SELECT intent_id FROM episode_sources WHERE episode = ? ORDER BY intent_id", (number,)
    ).fetchall()
    connection.executemany(
        "DELETE FROM episode_marks WHERE mark = ? AND episode = ?",
        [(mark, number) for mark in json.loads(row["marks"])],
    )
    connection.execute("DELETE FROM episodes WHERE id = ?", (number,))
    return [intent_id for (intent_id,) in sources]


def write_episode(episode: Episode) -> str:
    """Write an episode as JSON."""
    value = {
        "episode_id": episode.episode_id,
        "episode_type": episode.episode_type,
        "title": episode.title,
        "scope": {"owner_id": episode.scope.owner_id, **episode.scope.labels},
        "sections": episode.sections.named(),
        "occurred_at": rfc3339(episode.occurred_at),
        "updated_at": rfc3339(episode.updated_at),
        "tags": episode.tags,
        "source_refs": episode.source_refs,
        "variants": [
            {"occurred_at": rfc3339(one.occurred_at), "text": one.text} for one in episode.variants
        ],
        "repeats": episode.repeats,
        "conversation_id": episode.conversation_id,
        "turn_id": episode.turn_id,
        "thread": episode.thread,
        "position": episode.position,
        "revision": episode.revision,
    }
    return json.dumps(value, ensure_ascii=False)


@understanding_rows()
def read_episode(value: str) -> Episode:
    """Read what `write_episode` wrote."""
    fields = json.loads(value)
    variants = tuple(
        Variant(occurred_at=from_rfc3339(one["occurred_at"]), text=one["text"])
        for one in fields["variants"]
    )
    return Episode(
        **{
            **fields,
            "scope": Scope(**fields["scope"]),
            "sections": Sections.of(fields["sections"]),
            "occurred_at": from_rfc3339(fields["occurred_at"]),
            "updated_at": from_rfc3339(fields["updated_at"]),
            "tags": tuple(fields["tags"]),
            "source_refs": tuple(fields["source_refs"]),
            "variants": variants,
        }
    )
