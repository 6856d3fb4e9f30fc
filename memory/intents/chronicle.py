"""Where intents are kept, in the order in which they were recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from memory.intents.intent import SourceKind


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
    """As it is told; empty when forgotten."""
    payload: Mapping[str, Any]
    """Every text in it masked; empty when forgotten."""
    occurred_at: datetime
    forgotten: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What one intent leaves in the stores."""

    record: IntentRecord | None
    """None: it does not go into the chronicle."""
    intent_id: str
    key: str
    form_key: str
    """The registered key or family."""
    source_kind: SourceKind
    owner_id: str
    conversation_id: str | None
    turn_id: str | None
    occurred_at: datetime
    context: str | None
    """What the conversation's next prompt is told; None: nothing."""
    fields: Sequence[tuple[str, str]]
    """The payload's fields and types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingIntent:
    """What waits for a conversation's next prompt."""

    intent_id: str
    text: str
    occurred_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedField:
    """One field that payloads of a key had with one type, and how many of them."""

    name: str
    type: str
    seen: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentPage:
    """Some of the chronicle, newest first, and where the next begin."""

    records: Sequence[IntentRecord]
    next_cursor: str | None


class Chronicle(Protocol):
    """Intents, what waits for prompts, and turns of which episodes are to be made."""

    async def record(self, recordings: Sequence[Recording]) -> Sequence[str]:
        """Write all of them or none, in one transaction; gives the ids that were new.

        One whose id is there already changes nothing. A `turn.completed` makes its turn an ended one.

        Raises:
            StoreUnavailable: nothing was written.
        """
        ...

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

        `key` is a key, or a beginning of keys that ends in a dot: `tool.`, `tool.Bash.`. What was forgotten
        is there without its words; what a policy kept out of the chronicle is not.

        Raises:
            ValueError: the cursor was not given out here.
        """
        ...

    async def intents_of_turn(self, turn_id: str) -> Sequence[IntentRecord]:
        """Give a turn's intents in the order of recording, forgotten ones without their words.

        A turn is one owner's; which, its intents say. For the server's own work, not for requests.
        """
        ...

    async def unremembered(self, limit: int) -> Sequence[str]:
        """Give ids of ended turns, of all owners, that are not marked as remembered, oldest first.

        A turn whose `turn.completed` says `tool_calls: 0` is marked when that is recorded.
        """
        ...

    async def pending(self, conversation_id: str, owner_id: str) -> Sequence[PendingIntent]:
        """Give what waits for the conversation's next prompt, oldest first."""
        ...

    async def consumed(self, intent_ids: Sequence[str], turn_id: str) -> None:
        """Note that these went into a turn's prompt: they wait no longer, and their words are dropped.

        Those that do not wait, or never did, stay as they are.
        """
        ...

    async def delete_conversation_context(self, conversation_id: str) -> None:
        """Drop what waits, and ever waited, for a conversation that was left or deleted."""
        ...

    async def observed_fields(self, form_key: str) -> Sequence[ObservedField]:
        """Give which fields the payloads of a key or family had, by name; never values."""
        ...
