"""The limits that a user has instead of everybody's, read in the transaction that they bound."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final, get_args

from gateway.conversations.model import Quota, QuotaLimit
from gateway.ids import UserId
from memory.stores.database import Connection
from memory.stores.sqlite.row_values import Row

OWN_LIMITS: Final = "SELECT name, most FROM user_quotas WHERE user_id = ? ORDER BY name"


def quota_of_blocking(connection: Connection, user_id: UserId, default: Quota) -> Quota:
    """Return a user's quota: their own limits, and for the others those of `default`."""
    return with_own(default, connection.execute(OWN_LIMITS, (user_id,)).fetchall())


def with_own(default: Quota, rows: Iterable[Row]) -> Quota:
    """Return a quota with the rows of `OWN_LIMITS` in the place of its limits."""
    own: dict[str, Any] = {row["name"]: limit_of(row) for row in rows}
    return replace(default, **{name: own[name] for name in get_args(QuotaLimit) if name in own})


def limit_of(row: Row) -> float | None:
    """Return the limit of a row; None: there is no limit."""
    most: float | None = row["most"]
    return most if most is None or row["name"] == "daily_usd" else int(most)
