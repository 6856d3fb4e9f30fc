"""Conversations that begin."""

from dataclasses import replace
from datetime import datetime

from gateway.conversations.model import Conversation, Turn
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


def forked_conversation(
    conversation: Conversation, last: Turn | None, now: datetime
) -> Conversation:
    """Return a conversation that branches off; `last`: the last turn that it remembers, if any left a session."""
    return replace(
        fresh_conversation(conversation.user_id, now, like=conversation, title=conversation.title),
        session_id=last.session_id if last else None,
        fork_at=last.last_entry_id if last else None,
        root_id=conversation.root_id or conversation.id,
    )
