"""What a user does with webhooks: add, list, switch, test and delete them, give them a new secret,
look at deliveries.
"""

import logging
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final

import anyio

from gateway.conversations.duty import Duty
from gateway.conversations.model import TurnEvent
from gateway.conversations.sql.webhooks import WebhookStore
from gateway.conversations.webhooks import Webhook, WebhookDelivery, WebhookEvent
from gateway.errors import Conflict, GatewayError, NotFound
from gateway.ids import UserId
from gateway.rate_limit import RateLimit
from gateway.webhooks.dispatcher import WebhookDispatcher
from gateway.webhooks.message import TEST_EVENT, event_body, new_secret
from gateway.webhooks.sender import ReceiverGone, ReceiverRefused, WebhookSender
from memory.clock import Now, elapsed_ms
from memory.errors import BackendUnavailable, StoreUnavailable
from memory.items.ids import opaque_id

_log = logging.getLogger(__name__)

MAX_WEBHOOKS: Final = 10
"""Of one user."""
_WITH_DELIVERIES: Final = frozenset(
    {"turn.started", "turn.queued", "turn.completed", "approval.requested"}
)
"""Events that are stored with deliveries, if a webhook wants them."""
_TESTS: Final = 10
_TEST_EVERY_S: Final = 6.0
_MAX_USERS: Final = 4096
_RELEASE_S: Final = 2.0


class TooManyTests(
    GatewayError,
    code="too_many_attempts",
    status=HTTPStatus.TOO_MANY_REQUESTS,
    retryable=True,
):
    """A user sent too many test messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    """What came of a test message."""

    delivered: bool
    status: int | None
    """Of the answer; None if none came."""
    error: str | None
    """A sentence for people, if it was not taken."""
    duration_ms: int


class Webhooks:
    """The webhooks of users. A method that is given the id of no webhook of the user raises
    `NotFound`; while webhooks are off one that would send something raises `Conflict`.
    """

    def __init__(
        self,
        store: WebhookStore,
        sender: WebhookSender,
        dispatcher: WebhookDispatcher,
        now: Now,
        duty: Duty,
        *,
        is_on: bool,
    ) -> None:
        self._store = store
        self._sender = sender
        self._dispatcher = dispatcher
        self._now = now
        self._duty = duty
        self.is_on = is_on
        """False: nothing is delivered, and nothing is kept for later."""
        self._tests = RateLimit[UserId](burst=_TESTS, every_s=_TEST_EVERY_S, max_keys=_MAX_USERS)

    def wake(self) -> None:
        """Look for deliveries now. Call it on the loop; it never waits."""
        self._dispatcher.wake()

    def note(self, events: Sequence[TurnEvent]) -> None:
        """Look for deliveries now if these stored events may have added some."""
        if any(event.type in _WITH_DELIVERIES for event in events):
            self._dispatcher.wake()

    async def run(self) -> None:
        """Deliver whenever it is this server's duty; return at once while webhooks are off."""
        if self.is_on:
            await self._duty.while_held(self._deliver, self._dispatcher.wake)

    async def _deliver(self) -> None:
        if not self._duty.is_shared:
            await self._dispatcher.run()
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._release)
            await self._dispatcher.run()

    async def _release(self) -> None:
        """Make due what a dead server had leased, and what one stored whose clock is ahead.

        What is leased here is released, too; a receiver gets no second batch before its first one
        has been tried.
        """
        while True:
            try:
                await self._store.release(self._now())
            except StoreUnavailable:  # the next time will do: what is being sent goes on
                _log.warning("webhooks_not_released", exc_info=True)
            await anyio.sleep(_RELEASE_S)

    async def listed(self, user_id: UserId) -> Sequence[Webhook]:
        """List a user's webhooks, oldest first."""
        return await self._store.listed(user_id)

    async def add(
        self, user_id: UserId, url: str, events: Collection[WebhookEvent]
    ) -> tuple[Webhook, str]:
        """Add a webhook; return it with its secret, which nothing shows again.

        Raises:
            UnprocessableEntity: the address must not be delivered to.
            Conflict: the user has `MAX_WEBHOOKS`.
        """
        self._require_on()
        self._sender.check(url)
        webhook = Webhook(
            id=opaque_id("whk"),
            user_id=user_id,
            url=url,
            events=tuple(sorted(set(events))),
            state="on",
            created_at=self._now(),
        )
        secret = new_secret()
        if not await self._store.add(webhook, secret, most=MAX_WEBHOOKS):
            raise Conflict(
                f"There are {MAX_WEBHOOKS} webhooks already; delete one first.",
                code="too_many_webhooks",
            )
        return webhook, secret

    async def switch(self, user_id: UserId, webhook_id: str, *, on: bool) -> Webhook:
        """Switch a webhook on or off. What waits when it is switched off is not delivered."""
        webhook = await self._find(user_id, webhook_id)
        if on:
            self._require_on()
            self._sender.check(webhook.url)
            self._dispatcher.forget(webhook.id)
        await self._store.switch(webhook.id, "on" if on else "off")
        return await self._find(user_id, webhook_id)

    async def rotate(
        self, user_id: UserId, webhook_id: str, *, overlap_s: int
    ) -> tuple[Webhook, str, datetime]:
        """Rotate a webhook's secret; return it with that, which nothing shows again, and the time
        until which messages are signed with the one before it, too.
        """
        webhook = await self._find(user_id, webhook_id)
        secret, until = new_secret(), self._now() + timedelta(seconds=overlap_s)
        await self._store.rotate(webhook.id, secret, until)
        return await self._find(user_id, webhook_id), secret, until

    async def delete(self, user_id: UserId, webhook_id: str) -> None:
        """Delete a webhook with its deliveries."""
        webhook = await self._find(user_id, webhook_id)
        await self._store.delete(webhook.id)
        self._dispatcher.forget(webhook.id)

    async def test(self, user_id: UserId, webhook_id: str) -> SendResult:
        """Send a test message now, also if the webhook is off. Raise `TooManyTests`."""
        webhook = await self._find(user_id, webhook_id)
        self._require_on()
        if not self._tests.take(user_id):
            wait_s = max(1, math.ceil(self._tests.wait_s(user_id)))
            message = "Too many test messages were sent; wait a moment."
            raise TooManyTests(message, retry_after_s=wait_s)
        secret = await self._store.secret_of(webhook.id)
        if secret is None:
            raise _no_such_webhook()
        status, error, begin = None, None, self._now()
        body = event_body(TEST_EVENT, self._now(), {"webhook_id": webhook.id})
        try:
            status = await self._sender.send(webhook.url, secret, opaque_id("msg"), body)
        except ReceiverGone:
            status, error = HTTPStatus.GONE.value, "It answered with the status 410."
        except ReceiverRefused as exc:
            status, error = exc.status, str(exc)
        except BackendUnavailable as exc:
            error = str(exc)
        return SendResult(
            delivered=error is None,
            status=status,
            error=error,
            duration_ms=elapsed_ms(begin, self._now()),
        )

    async def deliveries(
        self, user_id: UserId, webhook_id: str, *, limit: int
    ) -> Sequence[WebhookDelivery]:
        """List a webhook's deliveries, newest first."""
        webhook = await self._find(user_id, webhook_id)
        return await self._store.deliveries(webhook.id, limit=limit)

    async def retry(self, user_id: UserId, webhook_id: str, delivery_id: str) -> WebhookDelivery:
        """Deliver what was given up, or waits, now.

        Raises:
            NotFound: the webhook has no such delivery.
            Conflict: it was delivered already, or the webhook is off.
        """
        webhook = await self._find(user_id, webhook_id)
        self._require_on()
        if webhook.state != "on":
            raise Conflict("The webhook is off; switch it on first.", code="webhook_off")
        delivery = await self._store.retry(webhook.id, delivery_id, self._now())
        if delivery is None:
            raise NotFound("There is no such delivery.")
        if delivery.status == "delivered":
            raise Conflict("It was delivered already.", code="already_delivered")
        self._dispatcher.forget(webhook.id)
        self._dispatcher.wake()
        return delivery

    async def _find(self, user_id: UserId, webhook_id: str) -> Webhook:
        webhook = await self._store.get(webhook_id, user_id)
        if webhook is None:
            raise _no_such_webhook()
        return webhook

    def _require_on(self) -> None:
        if not self.is_on:
            raise Conflict(
                "Webhooks are off on this server; its operator sets CANDOR_WEBHOOKS=on.",
                code="webhooks_off",
            )


def _no_such_webhook() -> NotFound:
    return NotFound("There is no such webhook.")
