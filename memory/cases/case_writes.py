"""The change of a case, written within one transaction with its item and deliveries; see
`SqlCaseStore.apply`.

Lists that grow with use are bounded here: a voter has one vote, of votes in the history the newest
stay, and of relations the nearest.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from memory.cases.case import RELATIONS, Case, HistoryEntry, RelatedCase, Vote
from memory.cases.case_rows import row_of_history, write_case
from memory.clock import rfc3339
from memory.errors import StoreConflict
from memory.items.item import Item
from memory.outbox.delivery import deliveries_of
from memory.outbox.store import (
    backends_of_blocking,
    deliver_item_blocking,
    enqueue_blocking,
)
from memory.stores.database import Connection
from memory.stores.sqlite.items import delete_item_blocking, item_blocking, put_item_blocking
from memory.stores.sqlite.row_values import columns_of
from memory.stores.sqlite.statements import insert_blocking

MAX_KEPT_RELATIONS: Final = 50
"""Relations of a case that are kept, nearest first."""
MAX_KEPT_JUDGEMENTS: Final = 100
"""Newest votes and lifecycle steps in the history of a case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseChange:
    """A case's next state and all that is written with it."""

    case: Case
    expected_revision: int
    """The revision that the decision is based on; 0: the case is new."""
    fingerprint: bytes
    """See `fingerprint_of`."""
    history: Sequence[HistoryEntry]
    item: Item | None
    """What search finds of it; None: nothing."""
    relations: Sequence[RelatedCase] | None = None
    """All of its relations, stored for both cases; None: unchanged."""
    vote: Vote | None = None
    shown_to: str | None = None
    """The voter that wrote this content, and so has nothing to review."""


_ALL: Final = 2**40
"""As a limit."""
_PLACES: Final = " ".join(
    f"WHEN '{relation}' THEN {place}" for place, relation in enumerate(RELATIONS)
)
PLACE: Final = f"CASE relation {_PLACES} END"
"""What relations are ordered by first: how two cases are related, before how much."""


def apply_case_change_blocking(
    connection: Connection,
    change: CaseChange,
    deliver_to: Sequence[str],
    now: datetime,
) -> None:
    """Write a change within the caller's transaction.

    Raise `StoreConflict` if the case is not what the decision was made on, or its scope
    would change.
    """
    _put_case(connection, change)
    case = change.case
    if change.vote is not None:
        vote = columns_of(change.vote)
        connection.execute(
            "DELETE FROM case_votes WHERE case_id = :case_id AND voter = :voter", vote
        )
        insert_blocking(connection, "case_votes", vote)
    if change.relations is not None:
        _put_relations(connection, case, change.relations)
    for entry in change.history:
        _append_history(connection, case.case_id, entry)
    if change.shown_to is not None:
        insert_blocking(
            connection,
            "case_views",
            {
                "voter": change.shown_to,
                "case_id": case.case_id,
                "shown_at": rfc3339(now),
                "own": 1,
            },
            "ON CONFLICT (voter, case_id) DO UPDATE SET own = 1",
        )
    if change.item is not None:
        _show(connection, change.item, deliver_to, now)
    else:
        _hide(connection, case, deliver_to, now)


def delete_case_blocking(connection: Connection, case_id: str) -> bool:
    """Delete a case with all that belongs to it, but not its item; return whether it was there."""
    return connection.execute("DELETE FROM cases WHERE case_id = ?", (case_id,)).rowcount == 1


def _put_case(connection: Connection, change: CaseChange) -> None:
    case = change.case
    row: dict[str, Any] = {
        "case_id": case.case_id,
        "owner_id": case.scope.owner_id,
        "fingerprint": change.fingerprint,
        "is_findable": int(case.is_findable),
        "lifecycle": case.lifecycle,
        "revision": case.revision,
        "value": write_case(case),
    }
    if change.expected_revision == 0:
        insert_blocking(connection, "cases", row)
        return
    written = connection.execute(
        "UPDATE cases SET fingerprint = :fingerprint, is_findable = :is_findable,"
        " lifecycle = :lifecycle, revision = :revision, value = :value"
        " WHERE case_id = :case_id AND revision = :expected"
        " AND json_extract(value, '$.scope') = json_extract(:value, '$.scope')",
        row | {"expected": change.expected_revision},
    ).rowcount
    if written != 1:
        raise StoreConflict("The case is not what the decision was made on.")


def _put_relations(connection: Connection, case: Case, relations: Sequence[RelatedCase]) -> None:
    """Replace a case's relations; skip those to a case that is gone or has another owner."""
    connection.execute(
        "DELETE FROM case_relations WHERE lesser = ? OR greater = ?", (case.case_id, case.case_id)
    )
    # `+owner_id` keeps SQLite from reading all cases of the owner to find one by its id
    connection.executemany(
        "INSERT INTO case_relations (lesser, greater, relation, score)"
        " SELECT CASE WHEN :case < case_id THEN :case ELSE case_id END,"
        " CASE WHEN :case < case_id THEN case_id ELSE :case END, :relation, :score FROM cases"
        " WHERE case_id = :case_id AND +owner_id = :owner AND case_id != :case"
        " ON CONFLICT DO NOTHING",
        [
            {**asdict(relation), "case": case.case_id, "owner": case.scope.owner_id}
            for relation in relations
        ],
    )
    for case_id in (case.case_id, *(relation.case_id for relation in relations)):
        connection.execute(
            "DELETE FROM case_relations WHERE (lesser, greater) IN"  # noqa: S608  a text of our own
            " (SELECT lesser, greater FROM case_relations WHERE lesser = :case OR greater = :case"
            f" ORDER BY {PLACE}, score DESC, lesser, greater LIMIT :most OFFSET :kept)",
            {"case": case_id, "most": _ALL, "kept": MAX_KEPT_RELATIONS},
        )


def _append_history(connection: Connection, case_id: str, entry: HistoryEntry) -> None:
    insert_blocking(connection, "case_history", row_of_history(case_id, entry))
    if entry.event in {"feedback", "lifecycle"}:
        connection.execute(
            "DELETE FROM case_history WHERE seq IN (SELECT seq FROM case_history"
            " WHERE case_id = ? AND event IN ('feedback', 'lifecycle')"
            " ORDER BY seq DESC LIMIT ? OFFSET ?)",
            (case_id, _ALL, MAX_KEPT_JUDGEMENTS),
        )


def _show(connection: Connection, item: Item, deliver_to: Sequence[str], now: datetime) -> None:
    """Write the item; write nothing if what is searched did not change."""
    before = item_blocking(connection, item.id)
    if before is not None and _searched(before) == _searched(item):
        return
    put_item_blocking(connection, item)
    deliver_item_blocking(connection, item, deliver_to, now)


def _hide(connection: Connection, case: Case, deliver_to: Sequence[str], now: datetime) -> None:
    """Remove the item from search and from all backends that may have it."""
    if not delete_item_blocking(connection, case.case_id):
        return
    backends = {*deliver_to, *backends_of_blocking(connection, case.case_id)}
    deliveries = deliveries_of("forget", case.case_id, case.scope.owner_id, case.revision, backends)
    enqueue_blocking(connection, deliveries, now)


def _searched(item: Item) -> tuple[object, ...]:
    return item.title, item.summary, item.body, item.tags, item.source
