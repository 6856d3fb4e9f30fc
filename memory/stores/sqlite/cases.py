"""Cases in SQLite: one row each, with what belongs to them in tables of its own."""

from collections.abc import Mapping, Sequence
from functools import partial

from memory.cases.case import Case, HistoryEntry, RelatedCase, Report, Vote
from memory.cases.store import CaseChange
from memory.clock import Now, rfc3339
from memory.stores.sqlite.case_rows import history_of, read_case, related_of, report_of, vote_of
from memory.stores.sqlite.case_writes import PLACE, apply_case_change_blocking
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.statements import id_batches, is_storable, placeholders

# In the statements below `+owner_id` keeps SQLite from reading all cases of the owner to find one by its id.


class SqliteCaseStore:
    """Keeps cases in the memory's database; `deliver_to` names the backends that get their items."""

    def __init__(self, database: Database, now: Now, *, deliver_to: Sequence[str]) -> None:
        self._database = database
        self._now = now
        self._deliver_to = tuple(deliver_to)

    async def get(self, case_ids: Sequence[str], owner_id: str) -> list[Case]:
        found: dict[str, Case] = {}
        for batch in id_batches(case_ids):
            rows = await self._database.rows(
                "SELECT case_id, value FROM cases"  # noqa: S608
                f" WHERE case_id IN ({placeholders(batch)}) AND +owner_id = ?",
                (*batch, owner_id),
            )
            found |= {row["case_id"]: read_case(row["value"]) for row in rows}
        return [found[case_id] for case_id in dict.fromkeys(case_ids) if case_id in found]

    async def hidden(self, owner_ids: Sequence[str] = ()) -> list[Case]:
        owned = f" AND owner_id IN ({placeholders(owner_ids)})" if owner_ids else ""
        return await self._database.values(
            lambda row: read_case(row["value"]),
            f"SELECT value FROM cases WHERE is_findable = 0{owned} ORDER BY case_id",  # noqa: S608
            owner_ids,
        )

    async def by_fingerprint(self, fingerprint: bytes, owner_id: str) -> list[Case]:
        rows = await self._database.rows(
            "SELECT value FROM cases WHERE owner_id = ? AND fingerprint = ?",
            (owner_id, fingerprint),
        )
        found = [read_case(row["value"]) for row in rows]
        return sorted(found, key=lambda hit: (hit.created_at, hit.case_id))

    async def apply(self, change: CaseChange) -> None:
        await self._database.write(
            partial(
                apply_case_change_blocking,
                change=change,
                deliver_to=self._deliver_to,
                now=self._now(),
            )
        )

    async def votes(self, case_ids: Sequence[str]) -> Mapping[str, Sequence[Vote]]:
        found: dict[str, list[Vote]] = {case_id: [] for case_id in case_ids}
        for batch in id_batches(case_ids):
            rows = await self._database.rows(
                f"SELECT * FROM case_votes WHERE case_id IN ({placeholders(batch)}) ORDER BY at, voter",  # noqa: S608
                batch,
            )
            for row in rows:
                found[row["case_id"]].append(vote_of(row))
        return found

    async def related(self, case_ids: Sequence[str]) -> Mapping[str, Sequence[RelatedCase]]:
        found: dict[str, list[RelatedCase]] = {case_id: [] for case_id in case_ids}
        for batch in id_batches(case_ids):
            places = placeholders(batch)
            rows = await self._database.rows(
                f"SELECT lesser AS one, greater AS other, relation, score, {PLACE} AS place"  # noqa: S608
                f" FROM case_relations WHERE lesser IN ({places}) UNION ALL"
                f" SELECT greater, lesser, relation, score, {PLACE} FROM case_relations"
                f" WHERE greater IN ({places}) ORDER BY place, score DESC, other",
                (*batch, *batch),
            )
            for row in rows:
                found[row["one"]].append(related_of(row))
        return found

    async def count_related(
        self, case_ids: Sequence[str], *, app_code: str | None
    ) -> Mapping[str, int]:
        counted = dict.fromkeys(case_ids, 0)
        for batch in id_batches(case_ids):
            for end, other in (("lesser", "greater"), ("greater", "lesser")):
                rows = await self._database.rows(
                    f"SELECT {end} AS one, count(*) AS count FROM case_relations"  # noqa: S608
                    f" JOIN cases ON case_id = {other} WHERE {end} IN ({placeholders(batch)})"
                    " AND lifecycle IN ('draft', 'accepted')"
                    " AND ifnull(json_extract(value, '$.scope.app_code') = ?, 1)"
                    f" GROUP BY {end}",
                    (*batch, app_code),
                )
                for row in rows:
                    counted[row["one"]] += int(row["count"])
        return counted

    async def history(self, case_id: str, *, limit: int) -> Sequence[HistoryEntry]:
        if not is_storable(case_id):
            return []
        rows = await self._database.rows(
            "SELECT * FROM case_history WHERE case_id = ? ORDER BY event = 'created' DESC,"
            " event IN ('updated', 'lifecycle') DESC, seq DESC LIMIT ?",
            (case_id, max(0, limit)),
        )
        return [history_of(row) for row in sorted(rows, key=lambda row: int(row["seq"]))]

    async def history_length(self, case_id: str) -> int:
        if not is_storable(case_id):
            return 0
        rows = await self._database.rows(
            "SELECT count(*) FROM case_history WHERE case_id = ?", (case_id,)
        )
        return int(rows[0][0])

    async def reports(self, case_id: str, *, limit: int) -> Sequence[Report]:
        if not is_storable(case_id):
            return []
        rows = await self._database.rows(
            "SELECT * FROM case_reports WHERE case_id = ? ORDER BY seq DESC LIMIT ?",
            (case_id, max(0, limit)),
        )
        return [report_of(row) for row in reversed(rows)]

    async def note_shown(self, voter: str, shown: Mapping[str, int]) -> None:
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
                [(voter, at, shown[case_id], case_id) for case_id in new],
            )
        )

    async def _not_shown(self, voter: str, shown: Mapping[str, int]) -> Sequence[str]:
        known: dict[str, int] = {}
        for batch in id_batches(shown):
            rows = await self._database.rows(
                "SELECT case_id, ifnull(content_revision, 0) AS words FROM case_views"  # noqa: S608
                f" WHERE voter = ? AND case_id IN ({placeholders(batch)})",
                (voter, *batch),
            )
            known |= {row["case_id"]: row["words"] for row in rows}
        return [
            case_id
            for case_id, words in shown.items()
            if known.get(case_id, -1) < words and is_storable(case_id)
        ]

    async def shown_words(self, voter: str, case_id: str) -> int | None:
        if not is_storable(case_id):
            return None
        row = await self._database.row(
            "SELECT content_revision FROM case_views WHERE voter = ? AND case_id = ?",
            (voter, case_id),
        )
        return None if row is None else row["content_revision"]

    async def unreviewed(
        self, voter: str, owner_id: str, *, app_code: str | None = None, limit: int
    ) -> list[str]:
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
