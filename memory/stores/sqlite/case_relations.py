"""Relations of cases in SQLite: one row for both ends, and of very many the nearest."""

import sqlite3
from collections.abc import Sequence
from typing import Final

from memory.cases.case import RELATIONS, Case, RelatedCase
from memory.cases.store import MAX_KEPT_RELATIONS

_PLACES: Final = " ".join(f"WHEN '{one}' THEN {place}" for place, one in enumerate(RELATIONS))
PLACE: Final = f"CASE relation {_PLACES} END"
"""What relations are ordered by first: how two cases are related, before how much."""


def count_related_statements(cases: int) -> list[str]:
    """Give what counts so many cases' relations to what may be told, from either end; then an app is asked for."""
    return [
        f"SELECT {end} AS one, count(*) AS count FROM case_relations"  # noqa: S608  names of our own
        f" JOIN cases ON case_id = {other} WHERE {end} IN ({', '.join('?' * cases)})"
        " AND lifecycle IN ('draft', 'accepted')"
        " AND ifnull(json_extract(value, '$.scope.app_code') = ?, 1)"
        f" GROUP BY {end}"
        for end, other in (("lesser", "greater"), ("greater", "lesser"))
    ]


def put_relations_blocking(
    connection: sqlite3.Connection, case: Case, relations: Sequence[RelatedCase]
) -> None:
    """Put its relations in place of those there are; one to a case that is gone is no more.

    Within the caller's transaction.
    """
    connection.execute(
        "DELETE FROM case_relations WHERE lesser = ? OR greater = ?", (case.case_id, case.case_id)
    )
    connection.executemany(
        "INSERT INTO case_relations (lesser, greater, relation, score)"
        " SELECT min(:case, case_id), max(:case, case_id), :relation, :score FROM cases"
        " WHERE case_id = :other AND +owner_id = :owner AND case_id != :case"
        " ON CONFLICT DO NOTHING",
        [
            {
                "case": case.case_id,
                "other": one.case_id,
                "relation": one.relation,
                "score": one.score,
                "owner": case.scope.owner_id,
            }
            for one in relations
        ],
    )
    for one in (case.case_id, *(other.case_id for other in relations)):
        connection.execute(
            "DELETE FROM case_relations WHERE (lesser, greater) IN"  # noqa: S608  a text of our own
            " (SELECT lesser, greater FROM case_relations WHERE lesser = :case OR greater = :case"
            f" ORDER BY {PLACE}, score DESC, lesser, greater LIMIT -1 OFFSET :kept)",
            {"case": one, "kept": MAX_KEPT_RELATIONS},
        )
