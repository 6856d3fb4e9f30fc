"""What a user may use, and how they are told that it is used."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from gateway.conversations.model import Quota, UserDay
from gateway.errors import QuotaUsed
from gateway.settings import Settings

RETRY_AFTER_S: Final = 5
"""For a turn of one's own to end."""
_TOLD: Final = {
    "running_turns": "No more than {0} of your turns may wait or run; wait for one to end.",
    "daily_turns": "You have used the {0} turns of today; it goes on at 00:00 UTC.",
    "daily_usd": "You have used the {0:.2f} USD of today; it goes on at 00:00 UTC.",
}


def quota_of(settings: Settings) -> Quota:
    """Return what the settings allow each user."""
    return Quota(
        running_turns=settings.max_user_running_turns,
        daily_turns=settings.max_user_daily_turns,
        daily_usd=settings.max_user_daily_usd,
    )


def quota_used(limit: str, quota: Quota, now: datetime) -> QuotaUsed:
    """Return the error for a limit of a quota that is reached."""
    wait_s = RETRY_AFTER_S if limit == "running_turns" else _until_tomorrow_s(now)
    most = getattr(quota, limit)
    return QuotaUsed(
        _TOLD[limit].format(most), details={"limit": limit, "most": most}, retry_after_s=wait_s
    )


def quota_fields(quota: Quota, day: UserDay, unfinished: int) -> Mapping[str, Any]:
    """Return a quota, and what is used of it, as clients see them."""
    return {
        "running_turns": {"used": unfinished, "most": quota.running_turns},
        "daily_turns": {"used": day.turns, "most": quota.daily_turns},
        "daily_usd": {"used": round(day.cost_usd, 6), "most": quota.daily_usd},
    }


def _until_tomorrow_s(now: datetime) -> int:
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return int((today + timedelta(days=1) - now).total_seconds()) + 1
