"""What a user may use, and how they are told that it is used."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from gateway.conversations.model import Quota, QuotaLimit
from gateway.conversations.sql.turns import TurnStore
from gateway.errors import QuotaInUse, QuotaUsed
from gateway.ids import UserId
from gateway.settings import Settings

RETRY_AFTER_S: Final = 5
"""For a turn of one's own to end."""
_AT_ONCE: Final = frozenset({"running_turns", "live_agents"})
_TOLD: Final = {
    "running_turns": "No more than {0} of your turns may wait or run; wait for one to end.",
    "live_agents": "No more than {0} of your conversations may work at once; wait for one to end.",
    "daily_turns": "You have used the {0} turns of today; it goes on at 00:00 UTC.",
    "daily_usd": "You have used the {0:.2f} USD of today; it goes on at 00:00 UTC.",
}
_NOTHING: Final = "Your limit is 0, so that no message is taken; an administrator can raise it."


def quota_of(settings: Settings) -> Quota:
    """Return what the settings allow each user."""
    return Quota(
        running_turns=settings.max_user_running_turns,
        live_agents=settings.max_user_live_agents,
        daily_turns=settings.max_user_daily_turns,
        daily_usd=settings.max_user_daily_usd,
    )


async def reached_limit(
    turns: TurnStore, user_id: UserId, quota: Quota, now: datetime, place: str | None
) -> QuotaLimit | None:
    """Return the limit of a quota that has no room now for a message in the conversation `place`;
    "" is a new one, and None one that is not known yet: whether it is at work goes before the
    limits of what works at once. What is used may change until the message is stored, which judges
    for good.
    """
    day = await turns.used_on(user_id, now.astimezone(UTC).date())
    used: dict[QuotaLimit, float] = {"daily_turns": day.turns, "daily_usd": day.cost_usd}
    if place is not None and quota.running_turns is not None:
        used["running_turns"] = await turns.count_unfinished(user_id)
    if place is not None and quota.live_agents is not None:
        used["live_agents"] = await turns.count_at_work(user_id, besides=place)
    return quota.reached_by(used)


def quota_used(limit: QuotaLimit, quota: Quota, now: datetime) -> QuotaUsed:
    """Return the error for a limit of a quota that is reached."""
    wait_s = RETRY_AFTER_S if limit in _AT_ONCE else _until_tomorrow_s(now)
    most = getattr(quota, limit)
    told = _TOLD[limit] if most else _NOTHING
    kind = QuotaInUse if limit in _AT_ONCE and most else QuotaUsed
    return kind(told.format(most), details={"limit": limit, "most": most}, retry_after_s=wait_s)


def quota_fields(quota: Quota, **used: float) -> Mapping[str, Any]:
    """Return a quota, and what is used of each of its limits, as clients see them."""
    return {name: {"used": of, "most": getattr(quota, name)} for name, of in used.items()}


def _until_tomorrow_s(now: datetime) -> int:
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return int((today + timedelta(days=1) - now).total_seconds()) + 1
