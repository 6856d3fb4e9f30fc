"""Which conversations have a git work tree, and which of these are being merged."""

from dataclasses import dataclass
from datetime import datetime

from gateway.ids import ConversationId, UserId


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTree:
    """That a conversation has a work tree, also while none is there."""

    conversation_id: ConversationId
    owner: UserId
    """Whose workspace it belongs to; empty: everybody's."""
    made_at: datetime
    """When the first one was made; the conversation may be stored a little later."""
    merging: str | None = None
    """A merge that has begun to change the workspace's files, as JSON."""
