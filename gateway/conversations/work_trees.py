"""Which conversations have a git work tree, and which of these are being merged."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

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


class WorkTreeStore(Protocol):
    """Work trees by conversation. They stay when their conversation is deleted.

    Raises `StoreUnavailable`.
    """

    async def has(self, conversation_id: ConversationId) -> bool:
        """Return whether a conversation has a work tree."""

    async def add(self, tree: KeptTree) -> None:
        """Add a work tree; one that is there stays as it is."""

    async def add_found(self, tree: KeptTree) -> None:
        """Add a work tree for the user of its conversation; do nothing if that is gone."""

    async def of(self, owner: UserId) -> Sequence[KeptTree]:
        """List the work trees of a workspace, by conversation."""

    async def note_merge(self, conversation_id: ConversationId, merging: str | None) -> None:
        """Note a merge that begins, or with None that it has ended."""

    async def merging(self) -> Sequence[UserId]:
        """List the owners of workspaces with merges that have not ended."""

    async def remove(self, conversation_id: ConversationId) -> None:
        """Remove a work tree. No error if there is none."""
