"""The store of episodes, each written in one transaction with its item, deliveries and the turn's
mark.

Like episodes are found through indexes: equal texts by their fingerprint, others by type, tags and
time. So a write costs the same among a hundred and a million.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from memory.clock import Now, rfc3339
from memory.episodes.episode import Episode, Sections, Variant
from memory.episodes.episode_merge import merged, realm_of, room_of, tags_key_of
from memory.episodes.item import to_item
from memory.intents.chronicle import mark_remembered_blocking
from memory.items.ids import derived_id
from memory.items.scope import Scope
from memory.outbox.store import deliver_item_blocking
from memory.stores.database import Connection, Row, SqlDatabase, decoding_rows
from memory.stores.sqlite.items import put_item_blocking
from memory.stores.sqlite.row_values import read_value
from memory.stores.sqlite.statements import first_row, id_list, insert_blocking

MERGE_WINDOW: Final = timedelta(hours=1)
"""Within this time, two episodes of the same type and tags become one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEpisode:
    """An episode to store, and what is stored with it."""

    episode: Episode
    fingerprint: bytes
    """See `fingerprint_of`; computed before the transaction."""
    deliver_to: Sequence[str] = ()
    """Names of the backends that receive it."""
    remembers_turn: str | None = None
    """The turn to mark in the same transaction."""
    comes_back: bool = False
    """True for an import, which is never merged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """The result for one episode."""

    status: Literal["stored", "merged", "there"]
    episode_id: str


_MAX_RECALLED: Final = 200
_RECALLED: Final = (
    "SELECT seq, owner_id, labels, title, summary, body, items.id IS NULL AND EXISTS (SELECT 1 FROM"
    " forgotten_items WHERE item_id = asked.value AND was_deleted = 0) AS was_forgotten"
    " FROM json_each(:ids) AS asked"
    " LEFT JOIN items ON items.id = asked.value ORDER BY seq"
)
"""What is there of some items; what was forgotten and came back counts again. What went with its
conversation is only absent.
"""
_FIRST_MOMENT, _LAST_MOMENT = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class SqlEpisodeStore:
    """Stores episodes of all owners. Every method may raise `StoreUnavailable`."""

    def __init__(self, database: SqlDatabase, now: Now) -> None:
        self._database = database
        self._now = now

    async def put(self, new: Sequence[NewEpisode]) -> Sequence[Put]:
        """Store or merge episodes, in their order, all in one transaction.

        An id that is stored already is left as it is and counts as stored. The same text again, of
        the same owner and labels, only adds to the count of the stored episode. An episode of the
        same type and tags within `MERGE_WINDOW` adds what it says otherwise as a variant, with new
        deliveries. A `run` or a `dialogue` merges by its text alone.

        An episode that comes back is merged with nothing. It is there already if its owner has its
        id, or the same text under the same labels; the stored episode stays as it is and nothing is
        counted. If somebody else has the id, the episode gets an id derived from its owner and that
        id, the same each time.
        """
        now = self._now()
        return await self._database.write(
            lambda writer: [put_episode_blocking(writer, episode, now) for episode in new]
        )

    async def get(self, episode_id: str, scope: Scope) -> Episode | None:
        """Return an episode, or None if the scope covers none of this id."""
        value = await self._database.scalar(
            "SELECT value FROM episodes WHERE episode_id = ?", (episode_id,)
        )
        episode = read_episode(value) if value is not None else None
        return episode if episode is not None and scope.covers(episode.scope) else None

    async def mark_remembered(self, turn_id: str) -> None:
        """Mark a turn without an episode; idempotent."""
        now = self._now()
        await self._database.write(
            lambda writer: mark_remembered_blocking(writer, turn_id, now), is_synced=False
        )

    async def recalled_texts(self, item_ids: Sequence[str], scope: Scope) -> Sequence[str] | None:
        """Return the texts of items that were in a prompt, without absent items; None if any of
        them was forgotten.
        """
        wanted = list(dict.fromkeys(item_ids))[:_MAX_RECALLED]
        rows = await self._database.rows(_RECALLED, {"ids": id_list(wanted)})
        if any(row["was_forgotten"] for row in rows):
            return None
        return [
            f"{row['title']}\n{row['summary']}\n{row['body']}"
            for row in rows
            if row["seq"] is not None
            and scope.covers(Scope(owner_id=row["owner_id"], **json.loads(row["labels"])))
        ]


def put_episode_blocking(connection: Connection, new: NewEpisode, now: datetime) -> Put:
    """Store or merge one episode with all that goes with it, within the caller's transaction."""
    put = _put_back(connection, new, now) if new.comes_back else _put(connection, new, now)
    if new.remembers_turn is not None:
        mark_remembered_blocking(connection, new.remembers_turn, now)
    return put


def _put(connection: Connection, new: NewEpisode, now: datetime) -> Put:
    episode = new.episode
    if _owner_of(connection, episode.episode_id) is not None:
        return Put(status="stored", episode_id=episode.episode_id)
    row = _like_row(connection, new)
    if row is None:
        return _store(connection, new, now)
    existing = read_episode(row["value"])
    kept = merged(existing, episode)
    _update(connection, row, kept, new)
    if kept.revision != existing.revision:
        _publish(connection, kept, new.deliver_to, now)
    _note_form(connection, row["id"], new.fingerprint, episode.source_refs)
    return Put(status="merged", episode_id=kept.episode_id)


def _put_back(connection: Connection, new: NewEpisode, now: datetime) -> Put:
    """Store an exported episode unless it, or an equal one, is there."""
    episode, owner_id = new.episode, new.episode.scope.owner_id
    if _owner_of(connection, episode.episode_id) not in {None, owner_id}:
        own_id = derived_id("epi", owner_id, episode.episode_id)
        episode = replace(episode, episode_id=own_id)
    if _owner_of(connection, episode.episode_id) is not None:
        return Put(status="there", episode_id=episode.episode_id)
    same = _same_row(connection, new)
    if same is not None:
        return Put(status="there", episode_id=same["episode_id"])
    return _store(connection, replace(new, episode=episode), now)


def _owner_of(connection: Connection, episode_id: str) -> str | None:
    row = first_row(connection, "SELECT owner_id FROM episodes WHERE episode_id = ?", (episode_id,))
    return row[0] if row is not None else None


def _publish(
    connection: Connection, episode: Episode, deliver_to: Sequence[str], now: datetime
) -> None:
    item = to_item(episode)
    put_item_blocking(connection, item)
    deliver_item_blocking(connection, item, deliver_to, now)


def _store(connection: Connection, new: NewEpisode, now: datetime) -> Put:
    episode = new.episode
    moments = (episode.occurred_at, *(variant.occurred_at for variant in episode.variants))
    row = {
        "episode_id": episode.episode_id,
        "owner_id": episode.scope.owner_id,
        "realm": realm_of(episode),
        "episode_type": episode.episode_type,
        "tags_key": tags_key_of(episode),
        "last_at": rfc3339(max(moments)),
        "room": room_of(episode),
        "value": write_episode(episode),
    }
    ((number,),) = insert_blocking(connection, "episodes", row, "RETURNING id").fetchall()
    _publish(connection, episode, new.deliver_to, now)
    _note_form(connection, number, new.fingerprint, episode.source_refs)
    return Put(status="stored", episode_id=episode.episode_id)


def _update(connection: Connection, row: Row, kept: Episode, new: NewEpisode) -> None:
    last_at = max(row["last_at"], rfc3339(new.episode.occurred_at))
    connection.execute(
        "UPDATE episodes SET last_at = ?, room = ?, value = ? WHERE id = ?",
        (last_at, room_of(kept), write_episode(kept), row["id"]),
    )


def _note_form(
    connection: Connection, number: int, fingerprint: bytes, source_refs: Sequence[str]
) -> None:
    connection.execute(
        "INSERT INTO episode_forms (fingerprint, episode) VALUES (?, ?) ON CONFLICT DO NOTHING",
        (fingerprint, number),
    )
    connection.executemany(
        "INSERT INTO episode_sources (episode, intent_id) VALUES (?, ?) ON CONFLICT DO NOTHING",
        [(number, intent_id) for intent_id in source_refs],
    )


def _like_row(connection: Connection, new: NewEpisode) -> Row | None:
    """Return the row to merge into: an equal text, or the same type and tags at about the same
    time.
    """
    return _same_row(connection, new) or _like_by_tags(connection, new.episode)


def _same_row(connection: Connection, new: NewEpisode) -> Row | None:
    return first_row(
        connection,
        "SELECT episodes.* FROM episode_forms JOIN episodes ON episodes.id = episode"
        " WHERE fingerprint = ?",
        (new.fingerprint,),
    )


def _like_by_tags(connection: Connection, episode: Episode) -> Row | None:
    tags_key = tags_key_of(episode)
    if tags_key is None:
        return None
    moment = episode.occurred_at  # the window around it is cut where the calendar ends
    begin = moment - min(MERGE_WINDOW, moment - _FIRST_MOMENT)
    end = moment + min(MERGE_WINDOW, _LAST_MOMENT - moment)
    return first_row(
        connection,
        "SELECT * FROM episodes WHERE realm = ? AND episode_type = ? AND tags_key = ?"
        " AND room > 0 AND last_at BETWEEN ? AND ? ORDER BY last_at DESC, id DESC LIMIT 1",
        (realm_of(episode), episode.episode_type, tags_key, rfc3339(begin), rfc3339(end)),
    )


def delete_episode_blocking(connection: Connection, episode_id: str) -> Sequence[str] | None:
    """Delete an episode, but not its item; return the ids of the intents that it was made of.

    These include the intents of what was merged into it. None if there is no such episode.
    """
    row = first_row(connection, "SELECT id FROM episodes WHERE episode_id = ?", (episode_id,))
    if row is None:
        return None
    number = row["id"]
    sources = connection.execute(
        "SELECT intent_id FROM episode_sources WHERE episode = ? ORDER BY intent_id", (number,)
    ).fetchall()
    connection.execute("DELETE FROM episodes WHERE id = ?", (number,))
    return [intent_id for (intent_id,) in sources]


def write_episode(episode: Episode) -> str:
    """Return an episode as JSON."""
    value = asdict(episode) | {
        "scope": {"owner_id": episode.scope.owner_id, **episode.scope.labels},
        "sections": episode.sections.named(),
    }
    return json.dumps(value, ensure_ascii=False, default=rfc3339)


@decoding_rows()
def read_episode(value: str) -> Episode:
    """Return the episode that `write_episode` wrote."""
    fields = json.loads(value)
    variants = tuple(read_value(Variant, variant) for variant in fields["variants"])
    scope, sections = Scope(**fields["scope"]), Sections.of(fields["sections"])
    return read_value(Episode, fields, scope=scope, sections=sections, variants=variants)
