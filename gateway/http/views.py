"""What clients see of conversations and their turns, as plain JSON values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateway.conversations.model import Turn
from gateway.journal import LogEntry
from gateway.turns.requests import ConversationView
from memory.clock import rfc3339


def conversation_fields(view: ConversationView) -> dict[str, Any]:
    """Give a conversation as a list shows it."""
    one = view.conversation
    return {
        "id": one.id,
        "title": one.title,
        "state": view.state,
        "hot": view.hot,
        "turns": one.turns,
        "last_activity_at": rfc3339(one.last_activity_at),
        "created_at": rfc3339(one.created_at),
        "model": one.model,
        "memory": {"enabled": one.memory_enabled, "case_memory": one.case_memory},
        "app_code": one.app_code,
        "environment": one.environment,
    }


def conversation_with_queue(view: ConversationView) -> dict[str, Any]:
    """Give a conversation by itself; `position` 1 is next."""
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


def log_fields(entry: LogEntry) -> dict[str, Any]:
    """Give a log as a list shows it."""
    return {
        "log_file": entry.log_file,
        "conversation_id": entry.conversation_id,
        "turn_id": entry.turn_id,
        "started_at": rfc3339(entry.started_at),
        "size_bytes": entry.size_bytes,
        "outcome": entry.outcome,
    }


@dataclass(frozen=True, slots=True)
class Span:
    """Which turns to read for some messages.

    A turn is two messages, what was asked and what came of it; message `2 * seq` and the one after.
    """

    limit: int
    """Messages wanted."""
    before: int | None
    """Only messages before this one; None: up to the last."""

    @property
    def max_turns(self) -> int:
        """As many turns as the messages can be in, and one more to see that there is more."""
        return self.limit // 2 + 2

    @property
    def before_seq(self) -> int | None:
        """Only turns before this one."""
        return None if self.before is None else (self.before + 1) // 2

    def cut(self, turns: Sequence[Turn]) -> tuple[list[dict[str, Any]], int | None]:
        """Give the messages, oldest first, and before which one the next page ends; None: none."""
        numbered = [
            pair
            for turn in turns
            for pair in ((2 * turn.seq, _asked(turn)), (2 * turn.seq + 1, _answered(turn)))
            if self.before is None or pair[0] < self.before
        ]
        page = numbered[-self.limit :]
        more = len(numbered) > len(page)
        return [message for _, message in page], page[0][0] if more else None


def _asked(turn: Turn) -> dict[str, Any]:
    return {
        "role": "user",
        "turn_id": turn.id,
        "text": turn.message,
        "created_at": rfc3339(turn.created_at),
    }


def _answered(turn: Turn) -> dict[str, Any]:
    return {
        "role": "assistant",
        "turn_id": turn.id,
        "state": turn.state,
        "result": turn.result,
        "created_at": rfc3339(turn.finished_at or turn.started_at or turn.created_at),
    }
