"""What the stores of conversations take, return and raise, beside the values of `model`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from gateway.conversations.model import (
    Quota,
    QuotaLimit,
)
from gateway.ids import TurnId
from memory.record.index import TurnChange

KEY_OUTLIVES = timedelta(days=7)
"""How long at least an idempotency key is known after its turn was deleted."""


MAX_SHOWN_TURNS = 100
"""In how many turns of a session memory looks for what it has shown; older ones may be
summarised."""


class UnknownCursor(ValueError):
    """A cursor that this user was not given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyKey:
    """A client's key for a request, and a hash of the request."""

    key: str
    request_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedTurn:
    """The turn of an idempotency key."""

    turn_id: TurnId
    request_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedChange:
    """A change that the record has not taken over yet."""

    seq: int
    change: TurnChange


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTurn:
    """A turn that an agent's session holds."""

    turn_id: str
    """For a copy in a fork: the id of the turn that was copied."""
    shown: Mapping[str, int]
    """The items that memory showed in it, with their revisions."""
    copy_id: str | None = None
    """The id of the copy, under which memory has it where the other was deleted."""


class QuotaReached(Exception):
    """The user may not have another turn."""

    def __init__(self, limit: QuotaLimit, quota: Quota) -> None:
        super().__init__(limit)
        self.limit = limit
        self.quota = quota
        """The user's, with their own limits."""
