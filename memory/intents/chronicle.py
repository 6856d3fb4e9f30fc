"""The chronicle: intents in the order in which they were recorded."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from memory.intents.registry import SourceKind

Guard = Callable[[Any], None]
"""Called first in a transaction, with its connection: what it raises keeps all from being written.
"""


def unguarded(_: Any) -> None:
    """Have everything written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentRecord:
    """An intent as it is stored: masked and bounded."""

    id: str
    key: str
    source_kind: SourceKind
    owner_id: str
    conversation_id: str | None
    turn_id: str | None
    text: str
    """Empty when forgotten."""
    payload: Mapping[str, Any]
    """Every text in it masked; empty when forgotten."""
    occurred_at: datetime
    forgotten: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What one intent leaves in the stores."""

    intent_id: str
    key: str
    source_kind: SourceKind
    owner_id: str
    conversation_id: str | None
    turn_id: str | None
    occurred_at: datetime
    text: str | None
    """None if the policy keeps it out of the chronicle."""
    payload: Mapping[str, Any]
    context: str | None
    """Text for the conversation's next prompt; None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingIntent:
    """What waits for a conversation's next prompt."""

    intent_id: str
    text: str
    occurred_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentPage:
    """Part of the chronicle, newest first, and where the next part begins."""

    records: Sequence[IntentRecord]
    next_cursor: str | None


class Chronicle(Protocol):
    """Intents, what waits for prompts, and turns of which episodes are to be made."""

    async def record(
        self, recordings: Sequence[Recording], guard: Guard = unguarded
    ) -> Sequence[str]:
        """Write all of them or none, in one transaction; return the ids that were new.

        An id that is already there is skipped. A `turn.completed` marks its turn as ended. Raise
        `StoreUnavailable` if nothing was written, and what `guard` raises.
        """

    async def page(
        self,
        owner_id: str,
        *,
        key: str | None = None,
        conversation_id: str | None = None,
        limit: int,
        cursor: str | None = None,
    ) -> IntentPage:
        """List an owner's intents, newest first: the order of recording, backwards.

        `key` is a key, a family with its places in braces (`tool.{tool_name}.ok`), or a prefix of
        keys that ends in a dot: `tool.`, `tool.Bash.`. Forgotten intents are listed without their
        text; those that a policy kept out of the chronicle are not listed. Raise `ValueError` if
        the cursor is not one of this chronicle.
        """

    async def intent(self, intent_id: str, owner_id: str) -> IntentRecord | None:
        """Return one intent of an owner; None if there is none, or a policy kept it out."""
        ...

    async def intents_of_turn(self, turn_id: str) -> Sequence[IntentRecord]:
        """Return a turn's intents in the order of recording; for the server's own work, not for
        requests.
        """

    async def unremembered(self, limit: int) -> Sequence[str]:
        """Return ids of ended turns, of all owners, that are not marked as remembered, oldest
        first.
        """

    async def pending(self, conversation_id: str, owner_id: str) -> Sequence[PendingIntent]:
        """Return what waits for the conversation's next prompt, oldest first."""

    async def consumed(
        self, intent_ids: Sequence[str], turn_id: str, guard: Guard = unguarded
    ) -> None:
        """Mark waiting intents as used in a turn's prompt, and drop their text;
        ignore all others. Raise what `guard` raises.
        """

    async def delete_conversation_context(self, conversation_id: str) -> None:
        """Delete all pending context of a conversation that was left or deleted."""
