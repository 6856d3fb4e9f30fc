"""The store of cases: one row each, with what belongs to them in tables of its own.

Each change is one transaction: the case, its vote, relations, history, search item and deliveries.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from memory.cases.case import Case, HistoryEntry, RelatedCase, Vote
from memory.cases.case_rows import history_of, read_case, related_of, vote_of
from memory.cases.case_writes import PLACE, CaseChange, apply_case_change_blocking
from memory.clock import Now, rfc3339
from memory.stores.database import SqlDatabase
from memory.stores.sqlite.statements import IN_IDS, id_list, is_storable, placeholders

_RELATIONS: Final = (
    "SELECT lesser AS one, greater AS other, relation, score FROM case_relations"  # noqa: S608
    f" WHERE lesser IN {IN_IDS} UNION ALL"
    f" SELECT greater, lesser, relation, score FROM case_relations WHERE greater IN {IN_IDS}"
)
"""The relations of some cases, from the side of each."""

# In the statements below `+owner_id` keeps SQLite from reading all cases of the owner to find one
# by its id.


class SqlCaseStore:
    """Keeps cases in the memory's database. Cases of another owner are treated as absent.

    `deliver_to` names the backends that get their items.
    """

    def __init__(self, database: SqlDatabase, now: Now, *, deliver_to: Sequence[str]) -> None:
        self._database = database
        self._now = now
        self._deliver_to = tuple(deliver_to)

    async def get(self, case_ids: Sequence[str], owner_id: str) -> list[Case]:
        """Return the owner's cases in the order of the ids; absent ones are left out."""
        rows = await self._database.rows(
            f"SELECT case_id, value FROM cases WHERE case_id IN {IN_IDS} AND +owner_id = :owner",  # noqa: S608
            {"ids": id_list(case_ids), "owner": owner_id},
        )
        found = {row["case_id"]: read_case(row["value"]) for row in rows}
        return [found[case_id] for case_id in dict.fromkeys(case_ids) if case_id in found]

    async def hidden(self, owner_ids: Sequence[str] = ()) -> list[Case]:
        """Return the cases of these owners, or of all, that search does not show."""
        owned = f" AND owner_id IN ({placeholders(owner_ids)})" if owner_ids else ""
        return await self._database.values(
            lambda row: read_case(row["value"]),
            f"SELECT value FROM cases WHERE is_findable = 0{owned} ORDER BY case_id",  # noqa: S608
            owner_ids,
        )

    async def by_fingerprint(self, fingerprint: bytes, owner_id: str) -> list[Case]:
        """Return the owner's cases with this fingerprint, hidden ones too, oldest first."""
        found = await self._database.values(
            lambda row: read_case(row["value"]),
            "SELECT value FROM cases WHERE owner_id = ? AND fingerprint = ?",
            (owner_id, fingerprint),
        )
        return sorted(found, key=lambda hit: (hit.created_at, hit.case_id))

    async def apply(self, change: CaseChange) -> None:
        """Write a whole change: the case with its vote, relations, history, item and deliveries.

        An unchanged item is not delivered again; a removed one is removed from every backend. A
        relation to another owner's or an absent case is left out. See the limits above for what is
        kept.

        Raise `StoreConflict` if the case has another revision than the decision was made on, or
        another scope; `StoreUnavailable` if nothing was written.
        """
        await self._database.write(
            partial(
                apply_case_change_blocking,
                change=change,
                deliver_to=self._deliver_to,
                now=self._now(),
            )
        )

    async def votes(self, case_ids: Sequence[str]) -> Mapping[str, Sequence[Vote]]:
        """Return each case's votes, oldest first, with an entry for every id."""
        found: dict[str, list[Vote]] = {case_id: [] for case_id in case_ids}
        for row in await self._database.rows(
            f"SELECT * FROM case_votes WHERE case_id IN {IN_IDS} ORDER BY at, voter",  # noqa: S608
            {"ids": id_list(case_ids)},
        ):
            found[row["case_id"]].append(vote_of(row))
        return found

    async def related(self, case_ids: Sequence[str]) -> Mapping[str, Sequence[RelatedCase]]:
        """Return each case's relations by `distance`, with an entry for every id."""
        found: dict[str, list[RelatedCase]] = {case_id: [] for case_id in case_ids}
        for row in await self._database.rows(
            f"SELECT * FROM ({_RELATIONS}) ORDER BY {PLACE}, score DESC, other",  # noqa: S608
            {"ids": id_list(case_ids)},
        ):
            found[row["one"]].append(related_of(row))
        return found

    async def count_related(
        self, case_ids: Sequence[str], *, app_code: str | None
    ) -> Mapping[str, int]:
        """Count each case's relations to cases that are neither rejected nor stale, with an entry
        for every id.

        With `app_code`, only to cases of this app or of none.
        """
        counted = dict.fromkeys(case_ids, 0)
        for row in await self._database.rows(
            f"SELECT one, count(*) AS count FROM ({_RELATIONS}) JOIN cases ON case_id = other"  # noqa: S608
            " WHERE lifecycle IN ('draft', 'accepted')"
            " AND (json_extract(value, '$.scope.app_code') = :app) IS NOT FALSE GROUP BY one",
            {"ids": id_list(case_ids), "app": app_code},
        ):
            counted[row["one"]] = row["count"]
        return counted

    async def history(self, case_id: str, *, limit: int) -> Sequence[HistoryEntry]:
        """Return at most `limit` changes, oldest first.

        The creation is kept first, then rewrites and lifecycle steps, then the newest others.
        """
        rows = await self._database.rows(
            "SELECT * FROM case_history WHERE case_id = ? ORDER BY event = 'created' DESC,"
            " event IN ('updated', 'lifecycle') DESC, seq DESC LIMIT ?",
            (case_id, max(0, limit)),
        )
        return [history_of(row) for row in sorted(rows, key=lambda row: int(row["seq"]))]

    async def note_shown(self, voter: str, case_ids: Sequence[str]) -> None:
        """Record that a voter was shown these cases; absent ones are left out."""
        rows = await self._database.rows(
            f"SELECT case_id FROM case_views WHERE voter = :voter AND case_id IN {IN_IDS}",  # noqa: S608
            {"voter": voter, "ids": id_list(case_ids)},
        )
        known = {row["case_id"] for row in rows}
        new = [case_id for case_id in case_ids if case_id not in known and is_storable(case_id)]
        if not new:  # only news is worth a transaction
            return
        at = rfc3339(self._now())
        await self._database.execute_many(
            "INSERT INTO case_views (voter, case_id, shown_at, own)"
            " SELECT ?, case_id, ?, 0 FROM cases WHERE case_id = ? ON CONFLICT DO NOTHING",
            [(voter, at, case_id) for case_id in new],
        )

    async def unreviewed(
        self, voter: str, owner_id: str, *, app_code: str | None = None, limit: int
    ) -> list[str]:
        """Return the cases that a voter was shown and has not judged in their present content,
        latest first.

        Hidden and forgotten cases are left out, and with `app_code` cases of other apps.
        """
        rows = await self._database.rows(
            "SELECT case_id FROM case_views JOIN cases USING (case_id)"
            " WHERE case_views.voter = ? AND own = 0 AND +owner_id = ?"
            " AND (json_extract(value, '$.scope.app_code') = ?) IS NOT FALSE"
            " AND is_findable = 1 AND NOT EXISTS (SELECT 1 FROM case_votes"
            " WHERE case_votes.case_id = cases.case_id AND case_votes.voter = case_views.voter"
            " AND case_votes.content_revision"
            " >= coalesce(CAST(json_extract(value, '$.content_revision') AS BIGINT), 1))"
            " ORDER BY shown_at DESC, case_id LIMIT ?",
            (voter, owner_id, app_code, max(0, limit)),
        )
        return [row["case_id"] for row in rows]
