"""What a front end asks for and what it is shown, as values."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from gateway.conversations.model import Conversation, Turn
from gateway.ids import ConversationId, TurnId
from gateway.jsonsafe import json_text

WhenBusy = Literal["enqueue", "reject", "interrupt"]
State = Literal["idle", "running", "stopping"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One message of a person."""

    message: str
    conversation_id: str | None = None
    new_conversation: bool = False
    when_busy: WhenBusy = "enqueue"
    idempotency_key: str | None = None

    @property
    def fingerprint(self) -> str:
        """Name the body, so that a key used again for another one is noticed."""
        body = [self.message, self.conversation_id, self.new_conversation, self.when_busy]
        return sha256(json_text(body).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A message that is written down and will be answered."""

    conversation_id: ConversationId
    turn_id: TurnId


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationView:
    """A conversation with what its processes and lane are doing."""

    conversation: Conversation
    state: State
    hot: bool
    """Whether it has a live agent process."""
    queue: Sequence[Turn]
    """Turns that wait, next first."""
