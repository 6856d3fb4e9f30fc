"""The limits that a user has instead of everybody's, read in the transaction that they bound."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final, get_args

from gateway.conversations.model import Quota, QuotaLimit, Turn
from gateway.conversations.store import QuotaReached
from memory.stores.database import Connection
from memory.stores.sqlite.row_values import Row

OWN_LIMITS: Final = "SELECT name, most FROM user_quotas WHERE user_id = ? ORDER BY name"
COUNT_TURN: Final = (
    "INSERT INTO user_days (user_id, day, turns) VALUES (?, ?, 1)"
    " ON CONFLICT (user_id, day) DO UPDATE SET turns = user_days.turns + 1"
    " RETURNING turns, cost_usd"
)
"""Counts a turn that is accepted; it stays uncounted if its transaction is undone."""
UNFINISHED: Final = (
    "SELECT count(*) FROM turns WHERE user_id = ? AND state IN ('queued', 'running')"
)
AT_WORK: Final = (
    "SELECT count(DISTINCT conversation_id) FROM turns WHERE user_id = ? AND conversation_id != ?"
    " AND state IN ('queued', 'running')"
)


def with_own(default: Quota, rows: Iterable[Row]) -> Quota:
    """Return a quota with the rows of `OWN_LIMITS` in the place of its limits."""
    own: dict[str, Any] = {row["name"]: limit_of(row) for row in rows}
    return replace(default, **{name: own[name] for name in get_args(QuotaLimit) if name in own})


def limit_of(row: Row) -> float | None:
    """Return the limit of a row; None: there is no limit."""
    most: float | None = row["most"]
    return most if most is None or row["name"] == "daily_usd" else int(most)


def check_quota_blocking(writer: Connection, turn: Turn, quota: Quota, day: Row) -> None:
    """Raise `QuotaReached` if a turn that is counted in `day`, and not stored, is one too many."""
    used: dict[QuotaLimit, float] = {"daily_turns": day["turns"] - 1, "daily_usd": day["cost_usd"]}
    if quota.running_turns is not None:
        (used["running_turns"],) = writer.execute(UNFINISHED, (turn.user_id,)).fetchone()
    if quota.live_agents is not None:
        others = (turn.user_id, turn.conversation_id)
        (used["live_agents"],) = writer.execute(AT_WORK, others).fetchone()
    limit = quota.reached_by(used)
    if limit is not None:
        raise QuotaReached(limit, quota)
