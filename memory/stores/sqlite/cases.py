"""Cases in SQLite, each change written in one transaction with its item, words and deliveries."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from memory.cases.case import Case, HistoryEntry, RelatedCase, Report, Vote
from memory.cases.store import CaseChange
from memory.clock import Now, rfc3339
from memory.items import Item
from memory.outbox.delivery import NewDelivery, Operation
from memory.stores.sqlite.case_history import append_history_blocking
from memory.stores.sqlite.case_relations import (
    PLACE,
    count_related_statements,
    put_relations_blocking,
)
from memory.stores.sqlite.case_reports import put_report_blocking
from memory.stores.sqlite.case_rows import (
    history_of,
    read_case,
    related_of,
    report_of,
    vote_of,
    write_case,
)
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.item_rows import COLUMNS, item_of
from memory.stores.sqlite.items import delete_item_blocking, put_item_blocking
from memory.stores.sqlite.outbox import backends_of_blocking, enqueue_blocking

_AT_ONCE: Final = 500
# In the statements below `+owner_id` keeps SQLite from looking up by owner what is named by its id: it
# would read all cases of the owner.


class SqliteCaseStore:
    """Keeps cases in the memory's database; `deliver_to` names the backends that get their items."""

    def __init__(self, database: Database, now: Now, *, deliver_to: Sequence[str]) -> None:
        self._database = database
        self._now = now
        self._deliver_to = tuple(deliver_to)

    async def get(self, case_ids: Sequence[str], owner_id: str) -> list[Case]:
        """Give the owner's cases in the order of the ids."""
        found: dict[str, Case] = {}
        for part in _parts(case_ids):
            rows = await self._database.rows(
                "SELECT case_id, value FROM cases"  # noqa: S608
                f" WHERE case_id IN ({_places(part)}) AND +owner_id = ?",
                (*part, owner_id),
            )
            found |= {row["case_id"]: read_case(row["value"]) for row in rows}
        return [found[one] for one in dict.fromkeys(case_ids) if one in found]

    async def by_fingerprint(self, fingerprint: bytes, owner_id: str) -> list[Case]:
        """See `CaseStore.by_fingerprint`."""
        rows = await self._database.rows(
            "SELECT value FROM cases WHERE owner_id = ? AND fingerprint = ?",
            (owner_id, fingerprint),
        )
        found = [read_case(row["value"]) for row in rows]
        return sorted(found, key=lambda one: (one.created_at, one.case_id))

    async def apply(self, change: CaseChange) -> None:
        """Write a change, whole."""
        await self._database.write(
            partial(
                apply_case_change_blocking,
                change=change,
                deliver_to=self._deliver_to,
                now=self._now(),
            )
        )

    async def votes(self, case_ids: Sequence[str]) -> Mapping[str, Sequence[Vote]]:
        """Give each case's votes, oldest first."""
        found: dict[str, list[Vote]] = {one: [] for one in case_ids}
        for part in _parts(case_ids):
            rows = await self._database.rows(
                f"SELECT * FROM case_votes WHERE case_id IN ({_places(part)}) ORDER BY at, voter",  # noqa: S608
                part,
            )
            for row in rows:
                found[row["case_id"]].append(vote_of(row))
        return found

    async def related(self, case_ids: Sequence[str]) -> Mapping[str, Sequence[RelatedCase]]:
        """Give each case's relations, from both ends, the nearest first."""
        found: dict[str, list[RelatedCase]] = {one: [] for one in case_ids}
        for part in _parts(case_ids):
            places = _places(part)
            rows = await self._database.rows(
                f"SELECT lesser AS one, greater AS other, relation, score, {PLACE} AS place"  # noqa: S608
                f" FROM case_relations WHERE lesser IN ({places}) UNION ALL"
                f" SELECT greater, lesser, relation, score, {PLACE} FROM case_relations"
                f" WHERE greater IN ({places}) ORDER BY place, score DESC, other",
                (*part, *part),
            )
            for row in rows:
                found[row["one"]].append(related_of(row))
        return found

    async def count_related(
        self, case_ids: Sequence[str], *, app_code: str | None
    ) -> Mapping[str, int]:
        """Count each case's relations to what is neither rejected nor stale, of an app or of none."""
        counted = dict.fromkeys(case_ids, 0)
        for part in _parts(case_ids):
            for statement in count_related_statements(len(part)):
                for row in await self._database.rows(statement, (*part, app_code)):
                    counted[row["one"]] += int(row["count"])
        return counted

    async def history(self, case_id: str, *, limit: int) -> Sequence[HistoryEntry]:
        """Give so many changes, oldest first; how it began and what was rewritten before what is newest."""
        if not _can_be_stored(case_id):
            return []
        rows = await self._database.rows(
            "SELECT * FROM case_history WHERE case_id = ? ORDER BY event = 'created' DESC,"
            " event IN ('updated', 'lifecycle') DESC, seq DESC LIMIT ?",
            (case_id, max(0, limit)),
        )
        return [history_of(row) for row in sorted(rows, key=lambda one: int(one["seq"]))]

    async def history_length(self, case_id: str) -> int:
        """Tell how many changes its history holds."""
        if not _can_be_stored(case_id):
            return 0
        rows = await self._database.rows(
            "SELECT count(*) FROM case_history WHERE case_id = ?", (case_id,)
        )
        return int(rows[0][0])

    async def reports(self, case_id: str, *, limit: int) -> Sequence[Report]:
        """Give the newest merged reports, oldest first."""
        if not _can_be_stored(case_id):
            return []
        rows = await self._database.rows(
            "SELECT * FROM case_reports WHERE case_id = ? ORDER BY seq DESC LIMIT ?",
            (case_id, max(0, limit)),
        )
        return [report_of(row) for row in reversed(rows)]

    async def note_shown(self, voter: str, shown: Mapping[str, int]) -> None:
        """Note what a voter was shown; where all of it is noted already, nothing is written."""
        new = await self._not_shown(voter, shown)
        if not new:
            return
        at = rfc3339(self._now())
        await self._database.write(
            lambda writer: writer.executemany(
                "INSERT INTO case_views (voter, case_id, shown_at, own, content_revision)"
                " SELECT ?, case_id, ?, 0, ? FROM cases WHERE case_id = ?"
                " ON CONFLICT DO UPDATE SET shown_at = excluded.shown_at,"
                " content_revision = excluded.content_revision"
                " WHERE ifnull(content_revision, 0) < excluded.content_revision",
                [(voter, at, shown[one], one) for one in new],
            )
        )

    async def _not_shown(self, voter: str, shown: Mapping[str, int]) -> Sequence[str]:
        known: dict[str, int] = {}
        for part in _parts(shown):
            rows = await self._database.rows(
                "SELECT case_id, ifnull(content_revision, 0) AS words FROM case_views"  # noqa: S608
                f" WHERE voter = ? AND case_id IN ({_places(part)})",
                (voter, *part),
            )
            known |= {row["case_id"]: row["words"] for row in rows}
        return [
            one
            for one, words in shown.items()
            if known.get(one, -1) < words and _can_be_stored(one)
        ]

    async def shown_words(self, voter: str, case_id: str) -> int | None:
        """Tell the words of a case that a voter was shown or wrote last; None: that is not known."""
        if not _can_be_stored(case_id):
            return None
        row = await self._database.row(
            "SELECT content_revision FROM case_views WHERE voter = ? AND case_id = ?",
            (voter, case_id),
        )
        return None if row is None else row["content_revision"]

    async def unreviewed(
        self, voter: str, owner_id: str, *, app_code: str | None = None, limit: int
    ) -> list[str]:
        """List what a voter was shown and has not voted on as it is, what was shown last first."""
        rows = await self._database.rows(
            "SELECT case_id FROM case_views JOIN cases USING (case_id)"
            " WHERE case_views.voter = ? AND own = 0 AND +owner_id = ?"
            " AND ifnull(json_extract(value, '$.scope.app_code') = ?, 1)"
            " AND is_findable = 1 AND NOT EXISTS (SELECT 1 FROM case_votes"
            " WHERE case_votes.case_id = cases.case_id AND case_votes.voter = case_views.voter"
            " AND max(case_votes.content_revision, warned_on)"
            " >= ifnull(json_extract(value, '$.content_revision'), 1))"
            " ORDER BY shown_at DESC, case_id LIMIT ?",
            (voter, owner_id, app_code, max(0, limit)),
        )
        return [row["case_id"] for row in rows]


def apply_case_change_blocking(
    connection: sqlite3.Connection,
    change: CaseChange,
    deliver_to: Sequence[str],
    now: datetime,
) -> None:
    """Write a change within the caller's transaction.

    Raises:
        sqlite3.IntegrityError: the case is not what the decision was made on, or its scope would change.
    """
    _put_case(connection, change)
    case = change.case
    if change.vote is not None:
        _put_vote(connection, change.vote)
    if change.relations is not None:
        put_relations_blocking(connection, case, change.relations)
    if change.report is not None:
        put_report_blocking(connection, case.case_id, change.report)
    append_history_blocking(connection, case.case_id, change.history)
    if change.shown_to is not None:
        connection.execute(
            "INSERT INTO case_views (voter, case_id, shown_at, own, content_revision)"
            " VALUES (?, ?, ?, 1, ?) ON CONFLICT (voter, case_id)"
            " DO UPDATE SET own = 1, content_revision = excluded.content_revision",
            (change.shown_to, case.case_id, rfc3339(now), case.content_revision),
        )
    if change.item is not None:
        _show(connection, change.item, deliver_to, now)
    else:
        _hide(connection, case, deliver_to, now)


def delete_case_blocking(connection: sqlite3.Connection, case_id: str) -> bool:
    """Delete a case with its votes, relations, history and reports, its item apart; False: there is none."""
    return connection.execute("DELETE FROM cases WHERE case_id = ?", (case_id,)).rowcount == 1


def _put_case(connection: sqlite3.Connection, change: CaseChange) -> None:
    case, value = change.case, write_case(change.case)
    if change.expected_revision == 0:
        connection.execute(
            "INSERT INTO cases (case_id, owner_id, fingerprint, is_findable, lifecycle,"
            " revision, value) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                case.case_id,
                case.scope.owner_id,
                change.fingerprint,
                int(case.is_findable),
                case.lifecycle,
                case.revision,
                value,
            ),
        )
        return
    written = connection.execute(
        "UPDATE cases SET fingerprint = ?, is_findable = ?, lifecycle = ?,"
        " revision = ?, value = ?"
        " WHERE case_id = ? AND revision = ?"
        " AND json_extract(value, '$.scope') = json_extract(?, '$.scope')",
        (
            change.fingerprint,
            int(case.is_findable),
            case.lifecycle,
            case.revision,
            value,
            case.case_id,
            change.expected_revision,
            value,
        ),
    ).rowcount
    if written != 1:
        raise sqlite3.IntegrityError("the case is not what the decision was made on")


def _put_vote(connection: sqlite3.Connection, vote: Vote) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO case_votes"
        " (case_id, voter, helpful, signal, app_code, environment, at, content_revision, warning,"
        " warned_on) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            vote.case_id,
            vote.voter,
            None if vote.helpful is None else int(vote.helpful),
            vote.signal,
            vote.app_code,
            vote.environment,
            rfc3339(vote.at),
            vote.content_revision,
            vote.warning,
            vote.warned_on,
        ),
    )


def _show(
    connection: sqlite3.Connection, item: Item, deliver_to: Sequence[str], now: datetime
) -> None:
    """Have search find it; where a vote changed nothing of what is searched, nothing is written."""
    before = _item(connection, item.id)
    if before is not None and _says_the_same(before, item):
        return
    put_item_blocking(connection, item)
    enqueue_blocking(
        connection, _deliveries("put", item.id, item.scope.owner_id, item.revision, deliver_to), now
    )


def _hide(
    connection: sqlite3.Connection, case: Case, deliver_to: Sequence[str], now: datetime
) -> None:
    """Have search find it no more, and whoever was told of it forget it."""
    if not delete_item_blocking(connection, case.case_id):
        return
    backends = sorted({*deliver_to, *backends_of_blocking(connection, case.case_id)})
    deliveries = _deliveries("forget", case.case_id, case.scope.owner_id, case.revision, backends)
    enqueue_blocking(connection, deliveries, now)


def _deliveries(
    operation: Operation, item_id: str, owner_id: str, revision: int, backends: Sequence[str]
) -> list[NewDelivery]:
    return [
        NewDelivery(
            backend=one,
            operation=operation,
            item_id=item_id,
            owner_id=owner_id,
            revision=revision,
        )
        for one in backends
    ]


def _item(connection: sqlite3.Connection, item_id: str) -> Item | None:
    cursor = connection.execute(f"SELECT {COLUMNS} FROM items WHERE id = ?", (item_id,))  # noqa: S608
    row = cursor.fetchone()
    if row is None:
        return None
    return item_of(dict(zip((one[0] for one in cursor.description), row, strict=True)))


def _says_the_same(one: Item, other: Item) -> bool:
    return (one.title, one.summary, one.body, one.tags, one.source) == (
        other.title,
        other.summary,
        other.body,
        other.tags,
        other.source,
    )


def _parts(case_ids: Iterable[str]) -> list[list[str]]:
    wanted = [one for one in dict.fromkeys(case_ids) if _can_be_stored(one)]
    return [wanted[n : n + _AT_ONCE] for n in range(0, len(wanted), _AT_ONCE)]


def _places(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))


def _can_be_stored(text: str) -> bool:
    """Whether a text is one that the store may hold: half a surrogate pair is none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
