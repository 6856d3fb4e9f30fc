"""Conversations, turns and logs as JSON values of the contract."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateway.conversations.model import Branch, Turn
from gateway.http.json_response import fields_of
from gateway.turns.requests import ConversationView
from gateway.turns.result import scheduled_fields
from memory.clock import rfc3339

_CONVERSATION = (
    *("id", "title", "turns", "last_activity_at", "created_at", "model"),
    *("app_code", "environment", "project_id", "root_id", "pinned"),
)
MATCH = ("turn_id", "before", "text", "after")
_BRANCH = ("after_turn_id", "conversation_id", "turn_id", "message", "created_at")
_BRANCH_CHARS = 200
SPENDING = ("turns", "input_tokens", "cached_tokens", "output_tokens", "cost_usd")
LOG = ("log_file", "conversation_id", "turn_id", "started_at", "size_bytes", "outcome")


def conversation_fields(view: ConversationView) -> dict[str, Any]:
    """Return a conversation as an item of a list; `match` is there if a search found it by a
    message.
    """
    conversation = view.conversation
    match = {} if view.match is None else {"match": fields_of(view.match, MATCH)}
    return {
        **fields_of(conversation, _CONVERSATION),
        **fields_of(view, ("state", "hot")),
        "memory": {"enabled": conversation.memory_enabled, "case_memory": conversation.case_memory},
        **match,
    }


def branch_fields(branch: Branch) -> dict[str, Any]:
    """Return a branch, with the beginning of its message."""
    fields = fields_of(branch, _BRANCH)
    return fields | {"message": branch.message and branch.message[:_BRANCH_CHARS]}


def conversation_with_queue(view: ConversationView) -> dict[str, Any]:
    """Return a conversation with its queue; `position` 1 is next."""
    queue = [
        {
            "turn_id": turn.id,
            "message": turn.message,
            "position": position,
            "created_at": rfc3339(turn.created_at),
        }
        for position, turn in enumerate(view.queue, start=1)
    ]
    return {**conversation_fields(view), "queue": queue}


@dataclass(frozen=True, slots=True)
class MessagePage:
    """One page of a conversation's messages.

    A turn is two messages, the user's with the number `2 * seq` and the result with the next one.
    """

    limit: int
    before: int | None
    """Only messages with lower numbers; None: all."""

    @property
    def max_turns(self) -> int:
        """The turns that the messages can be in, and one more to see whether there are more."""
        return self.limit // 2 + 2

    @property
    def before_seq(self) -> int | None:
        """Only turns before this one are needed."""
        return None if self.before is None else (self.before + 1) // 2

    def cut(self, turns: Sequence[Turn]) -> tuple[list[dict[str, Any]], str | None]:
        """Return the messages, oldest first, and the `before` of the next page, if there is one."""
        numbered = [
            (number, message)
            for turn in turns
            for number, message in enumerate(turn_messages(turn), start=2 * turn.seq)
            if self.before is None or number < self.before
        ]
        page = numbered[-self.limit :]
        more = len(numbered) > len(page)
        return [message for _, message in page], str(page[0][0]) if more else None


def turn_messages(turn: Turn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the two messages of a turn: what was asked, and what came of it."""
    asked = {
        "role": "user",
        "turn_id": turn.id,
        "text": turn.message,
        "created_at": rfc3339(turn.created_at),
        "schedule": scheduled_fields(turn),
    }
    answered = {
        "role": "assistant",
        "turn_id": turn.id,
        "state": turn.state,
        "result": turn.result,
        "created_at": rfc3339(turn.finished_at or turn.started_at or turn.created_at),
    }
    return asked, answered
