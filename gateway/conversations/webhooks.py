"""A user's webhooks and their deliveries, as values.

The store adds a delivery in the transaction that stores its event: a conversation that is created,
an approval that is requested, a turn that is completed.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from gateway.ids import ApprovalId, ConversationId, TurnId, UserId
from memory.outbox.delivery import DeliveryStatus

WebhookEvent = Literal["turn.completed", "approval.requested", "conversation.created"]
WebhookState = Literal["on", "off", "gone"]
"""`gone`: its receiver answered that it is, and it was switched off."""

SECRET_CHARS = 50
"""Of a secret: `whsec_` and the Base64 of 32 bytes."""
MAX_REPLY_CHARS = 4000
"""Of a reply that is delivered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """An address that events are posted to."""

    id: str
    user_id: UserId
    url: str
    events: tuple[WebhookEvent, ...]
    state: WebhookState
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookDelivery:
    """One event for one webhook."""

    seq: int
    """The order of all deliveries."""
    id: str
    """The `webhook-id` of each try."""
    webhook_id: str
    type: WebhookEvent
    conversation_id: ConversationId
    turn_id: TurnId | None
    approval_id: ApprovalId | None
    created_at: datetime
    """Of the event."""
    status: DeliveryStatus
    attempts: int
    last_error: str | None
    """A sentence for people; None if nothing went wrong."""
    queued_at: datetime
    due_at: datetime
    delivered_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookMessage:
    """What is sent for a delivery, as it is now."""

    url: str
    secret: str = field(repr=False)
    """What is kept as the secret: the one in use or, after a rotation, also the one before it and
    until when that signs, apart by spaces.
    """
    outcome: str | None
    """Of the turn."""
    reply: str | None
    """Of the turn; its first `MAX_REPLY_CHARS` and one more."""
    name: str | None
    """The tool that an approval is about."""
    summary: str | None
    """Of the approval."""
