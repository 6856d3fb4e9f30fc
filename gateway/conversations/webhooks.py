"""A user's webhooks and their deliveries, as values, and the protocol of their store.

The store adds a delivery in the transaction that stores its event: a conversation that is created,
an approval that is requested, a turn that is completed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from gateway.ids import ApprovalId, ConversationId, TurnId, UserId
from memory.outbox.delivery import DeliveryStatus
from memory.outbox.loop import DeliveryQueue

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


class WebhookStore(DeliveryQueue[WebhookDelivery], Protocol):
    """Webhooks and their deliveries. A delivery goes with its webhook, and with its conversation.

    As a queue, a receiver is the id of a webhook.
    """

    async def serve(self, now: datetime, *, is_on: bool, is_shared: bool = False) -> None:
        """Prepare for a start: add deliveries from here on, or none if not `is_on`.

        Does what `release` does, unless other servers use the database.
        """

    async def release(self, now: datetime) -> None:
        """Make untried deliveries due that are leased, or were stored by a server whose clock is
        ahead.
        """

    async def add(self, webhook: Webhook, secret: str, *, most: int) -> bool:
        """Store a webhook; return False, and change nothing, if its user has `most`."""

    async def get(self, webhook_id: str, user_id: UserId) -> Webhook | None:
        """Return the webhook; None if there is none of that id or it is another user's."""

    async def listed(self, user_id: UserId) -> Sequence[Webhook]:
        """List a user's webhooks, oldest first. One that is damaged is left out."""

    async def secret_of(self, webhook_id: str) -> str | None:
        """Return what is kept as the secret; None if the webhook is gone."""

    async def rotate(self, webhook_id: str, secret: str, until: datetime) -> None:
        """Put a secret before the one in use, which signs until then, too; an earlier one is gone.

        No error if the webhook is gone.
        """

    async def switch(self, webhook_id: str, state: WebhookState) -> None:
        """Set the state; deliveries that wait become dead unless it is `on`."""

    async def delete(self, webhook_id: str) -> None:
        """Delete a webhook with its deliveries; no error if it is gone."""

    async def deliveries(self, webhook_id: str, *, limit: int) -> Sequence[WebhookDelivery]:
        """List a webhook's deliveries, newest first. One that is damaged is left out."""

    async def retry(
        self, webhook_id: str, delivery_id: str, now: datetime
    ) -> WebhookDelivery | None:
        """Make a delivery that was not made due now, as if it were new; return it as it is then.

        None if the webhook has none of that id.
        """

    async def message(self, delivery: WebhookDelivery) -> WebhookMessage | None:
        """Return what to send; None if the webhook is not on, or the delivery is gone."""

    async def delivered(self, delivery: WebhookDelivery, now: datetime) -> None:
        """Note a success."""

    async def receivers_due(self, now: datetime) -> Sequence[str]:
        """Return the webhooks for which a delivery is due."""

    async def next_due_at(self, after: datetime) -> datetime | None:
        """Return when the first delivery after a moment is due; None if none waits."""

    async def prune(self, before: datetime) -> None:
        """Delete made and dead deliveries of events before a moment."""
