"""What the server is doing now: for whoever runs it, and for each user without
what is another's.
"""

from typing import Any

from gateway.chat.parts import ChatParts
from gateway.ids import ConversationId, UserId


class Operations:
    """Describes conversations and agent processes."""

    def __init__(self, parts: ChatParts) -> None:
        self._parts = parts

    async def snapshot(self, user_id: UserId) -> dict[str, Any]:
        """Return counts of all users' conversations, and each agent process.

        The id and title of a conversation stand with its process only if it is the user's own.
        """
        parts = self._parts
        processes = parts.pool.processes()
        total = await parts.conversations.count()
        return {
            "conversations": {
                "live": len(processes),
                "asleep": max(0, total - len(processes)),
                "running_turns": len(parts.lanes.running_in),
                "queued_turns": parts.lanes.queued_count,
            },
            "prewarmed": parts.pool.warm_count,
            "memory_bytes": parts.pool.memory_bytes,
            "processes": [
                {
                    **await self._own(process.conversation_id, user_id),
                    "state": process.state,
                    "age_s": round(process.age_s, 1),
                    "memory_bytes": process.memory_bytes,
                }
                for process in processes
            ],
        }

    async def _own(self, conversation_id: str, user_id: UserId) -> dict[str, str | None]:
        known = await self._parts.conversations.get(ConversationId(conversation_id), user_id)
        if known is None:
            return {"conversation_id": None, "title": None}
        return {"conversation_id": known.id, "title": known.title}
