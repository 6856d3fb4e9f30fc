"""What a front end asks for and what it is shown, as values."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from gateway.conversations.model import Conversation, TextMatch, Turn
from gateway.conversations.schedules import ScheduledRun
from gateway.errors import KeptAtShutDown, NotStored
from gateway.ids import ConversationId, TurnId
from gateway.jsonsafe import json_text

RETRY_AFTER_S = 5

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
    is_in_doubt: bool = False
    """Another server may be storing it under its key, which the client does not know."""
    project_id: str | None = None
    schedule: ScheduledRun | None = None
    """The schedule that sends it; None: the person does."""

    @property
    def fingerprint(self) -> str:
        """Hash of the body, to detect a key that is used again for another body."""
        body = [self.message, self.conversation_id, self.new_conversation, self.when_busy]
        if self.project_id is not None:  # so that keys of before the field stay valid
            body.append(self.project_id)
        return sha256(json_text(body).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A message that is stored and will be answered."""

    conversation_id: ConversationId
    turn_id: TurnId
    interrupted: TurnId | None = None
    """The turn that it stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationView:
    """A conversation with the state of its process and lane."""

    conversation: Conversation
    state: State
    hot: bool
    """True if it has a live agent process."""
    queue: Sequence[Turn]
    """Waiting turns, next first."""
    match: TextMatch | None = None
    """Where a search found it; None if there was none, or it is in the title alone."""


def finished_result(turn: Turn, *, is_shutting_down: bool, is_lost: bool = False) -> dict[str, Any]:
    """Return the result of a turn that has ended, or raise why there is none yet.

    Raises:
        KeptAtShutDown: the server stops before the turn ran; it runs after the next start.
        NotStored: nothing could be stored for a while; the turn goes on, its result waits for that.
            Or it `is_lost`: another server has the turn now.
    """
    if turn.result is not None:
        return turn.result
    if is_lost:
        raise NotStored(
            "Another server runs this conversation now; the answer stands among its messages as"
            " soon as it is there.",
            details={"conversation_id": turn.conversation_id, "turn_id": turn.id},
        )
    if is_shutting_down:
        raise KeptAtShutDown(
            "The server is shutting down. The message was stored: do not send it again; its answer "
            "stands among the conversation's messages some time after the next start.",
            details={"conversation_id": turn.conversation_id, "turn_id": turn.id},
            retry_after_s=RETRY_AFTER_S,
        )
    raise NotStored(
        "The server's storage cannot be written right now. The message was taken; its answer "
        "stands among the"
        " conversation's messages as soon as there is room, if the server is not stopped before.",
        details={"conversation_id": turn.conversation_id, "turn_id": turn.id},
    )


def unreadable_result(turn: Turn) -> NotStored:
    """Return the error for a turn that is stored, while the database cannot be read."""
    return NotStored(
        "The server's storage cannot be read right now. The message was stored: do not send it "
        "again; its answer stands among the conversation's messages when the storage is back.",
        details={"conversation_id": turn.conversation_id, "turn_id": turn.id},
    )
