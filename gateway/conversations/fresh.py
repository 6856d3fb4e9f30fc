"""Conversations that begin."""

from datetime import datetime

from gateway.conversations.model import Conversation
from gateway.ids import UserId, new_conversation_id


def fresh_conversation(
    user_id: UserId, now: datetime, *, like: Conversation | None = None, title: str = ""
) -> Conversation:
    """Make a new conversation; it takes over the settings of the one that it follows, no memory."""
    return Conversation(
        id=new_conversation_id(),
        user_id=user_id,
        title=title,
        model=like.model if like else None,
        memory_enabled=like.memory_enabled if like else True,
        case_memory=like.case_memory if like else False,
        app_code=like.app_code if like else None,
        environment=like.environment if like else None,
        session_id=None,
        fork_at=None,
        created_at=now,
        last_activity_at=now,
        turns=0,
    )
