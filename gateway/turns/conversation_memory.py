"""What memory is told of conversations: begun, left, branched off, deleted."""

from collections.abc import Awaitable, Callable
from datetime import datetime

from gateway.conversations.model import Conversation
from gateway.turns.conversation_tools import ConversationTools
from memory.intents.builders import ConversationChange, Happening, intent_from_conversation
from memory.intents.intent import MemoryIntent


async def _drop_nothing(_conversation_id: str) -> None:
    """Stand in where no memory is."""


class ConversationMemory:
    """Told by `Chat`; never waits for memory, and never fails."""

    def __init__(
        self,
        tools: ConversationTools,
        *,
        take: Callable[[MemoryIntent], None] = lambda _: None,
        drop_pending: Callable[[str], Awaitable[None]] = _drop_nothing,
    ) -> None:
        self._tools = tools
        self._take = take
        self._drop_pending = drop_pending

    def started(self, conversation: Conversation, at: datetime) -> None:
        """A conversation was begun."""
        self._tell(conversation, "started", None, at)

    def left(self, left: Conversation, fresh: Conversation, at: datetime) -> None:
        """A conversation was left for a fresh one, which begins with none of its tools."""
        self._tools.forget(left.id)
        self._tell(fresh, "reset", left.id, at)

    def forked(self, fork: Conversation, source: Conversation, at: datetime) -> None:
        """A conversation was branched off from another."""
        self._tell(fork, "forked", source.id, at)

    async def deleted(self, conversation_id: str) -> None:
        """A conversation is gone: what waited for its next prompt goes as well.

        Raises:
            StoreUnavailable: memory cannot be written.
        """
        self._tools.forget(conversation_id)
        await self._drop_pending(conversation_id)

    async def tools_of(self, conversation_id: str) -> tuple[str, ...]:
        """Give the tools in use in a conversation."""
        return await self._tools.of(conversation_id)

    def _tell(
        self,
        conversation: Conversation,
        change: ConversationChange,
        from_conversation_id: str | None,
        at: datetime,
    ) -> None:
        if not conversation.memory_enabled:
            return
        where = Happening(
            owner_id=conversation.user_id, occurred_at=at, conversation_id=conversation.id
        )
        self._take(
            intent_from_conversation(
                where, change=change, from_conversation_id=from_conversation_id
            )
        )
