"""Makes the deliveries of all webhooks: those of one after another, those of several side by side.

A loop waits for the next delivery that is due and starts a task for its webhook, which makes all
that are due there and ends. So a slow receiver holds up nobody but itself.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import anyio
from anyio.abc import TaskGroup

from gateway.conversations.leases import LeaseLost
from gateway.conversations.sql.webhooks import WebhookStore
from gateway.conversations.webhooks import WebhookDelivery
from gateway.webhooks.message import body_of
from gateway.webhooks.sender import CALL_S, ReceiverGone, WebhookSender
from memory.clock import Now
from memory.errors import DeliveryRefused, StoreUnavailable
from memory.intents.masking import Mask
from memory.outbox.loop import Backoff, DeliveryLimits, DeliveryLoop, DeliveryResult
from memory.remote.breaker import Breaker, BreakerLimits

_log = logging.getLogger(__name__)

DAY_S: Final = 86_400.0
LIMITS: Final = DeliveryLimits(
    call_s=CALL_S + 5,
    batch=8,
    look_s=60,
    backoff=Backoff(first_s=10, most_s=DAY_S / 2, drawn_ratio=0.2, max_attempts=14),
    patience_s=DAY_S,
)
"""The waits double from about ten seconds on; the last of them end within a day."""
MAX_AT_ONCE: Final = 64
"""Webhooks that are delivered to at the same time."""
KEPT: Final = timedelta(days=14)
"""How long deliveries are listed after their events."""
_SET_BACK: Final = timedelta(minutes=1)
"""A clock that went back by more was set."""
_STORE_PAUSE_S: Final = 5.0
_NOTING_S: Final = 5.0
_NOTE_AGAIN_S: Final = 0.2


class WebhookDispatcher:
    """`run` it in a task group; `wake` it after a delivery was added."""

    def __init__(
        self,
        store: WebhookStore,
        sender: WebhookSender,
        mask: Mask,
        *,
        now: Now,
        draw: Callable[[], float],
        limits: DeliveryLimits = LIMITS,
        breaker: BreakerLimits | None = None,
        on_result: Callable[[DeliveryResult], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._sender = sender
        self._mask = mask
        self._now = now
        self._draw = draw
        self._limits = limits
        self._breaker = breaker or BreakerLimits()
        self.may_send: Callable[[], bool] = lambda: True
        """Returns whether no other server delivers now."""
        self._on_result = on_result
        self._receivers: dict[str, tuple[Breaker, DeliveryLoop[WebhookDelivery]]] = {}
        self._busy: set[str] = set()
        self._slots = anyio.Semaphore(MAX_AT_ONCE)
        self._woken = anyio.Event()
        self._pruned_at: datetime | None = None
        self._last_look: datetime | None = None

    def wake(self) -> None:
        """Look for deliveries now. Call it on the loop; it never waits."""
        self._woken.set()

    def forget(self, webhook_id: str) -> None:
        """Drop what is known of a receiver that is deleted, or begins anew."""
        self._receivers.pop(webhook_id, None)

    async def run(self) -> None:
        """Deliver until cancelled."""
        async with anyio.create_task_group() as tasks:
            while True:
                self._woken = anyio.Event()
                try:
                    pause_s = await self._start_due(tasks)
                except StoreUnavailable:
                    _log.warning("webhooks_unavailable", exc_info=True)
                    pause_s = _STORE_PAUSE_S
                with anyio.move_on_after(pause_s):
                    await self._woken.wait()

    async def _start_due(self, tasks: TaskGroup) -> float:
        """Start what is due; return how many seconds there is nothing else to start."""
        now = self._now()
        if self._pruned_at is None or abs(now - self._pruned_at) > timedelta(hours=1):
            await self._store.prune(now - KEPT)
            self._pruned_at = now
        await self._follow_clock(now)
        times = [await self._store.next_due_at(now)]
        for webhook_id in await self._store.receivers_due(now):
            breaker, loop = self._receiver(webhook_id)
            if webhook_id in self._busy:
                continue
            if breaker.state(now) == "open":
                times.append(breaker.reopens_at())
            else:
                self._busy.add(webhook_id)
                tasks.start_soon(self._drain, webhook_id, loop)
        waits = [(at - now).total_seconds() for at in times if at is not None]
        return max(0.0, min([self._limits.look_s, *waits]))

    async def _follow_clock(self, now: datetime) -> None:
        """Make due what was to wait by a clock that was ahead and is set back.

        That a server did not see leaves waits that are longer than the longest.
        """
        last = self._last_look
        if last is None:
            longest = timedelta(seconds=self._limits.backoff.most_s)
            await self._store.hurry(now, latest=now + longest)
        elif now < last - _SET_BACK:
            await self._store.hurry(now, latest=now)
        self._last_look = now

    def _receiver(self, webhook_id: str) -> tuple[Breaker, DeliveryLoop[WebhookDelivery]]:
        if webhook_id not in self._receivers:
            breaker = Breaker(self._breaker)
            loop = DeliveryLoop(
                webhook_id,
                self._store,
                self._make,
                breaker,
                now=self._now,
                draw=self._draw,
                limits=self._limits,
                on_result=lambda _, result, __: self._on_result(result),
            )
            self._receivers[webhook_id] = breaker, loop
        return self._receivers[webhook_id]

    async def _drain(self, webhook_id: str, loop: DeliveryLoop[WebhookDelivery]) -> None:
        try:
            async with self._slots:
                await loop.drain()
        except StoreUnavailable:
            _log.warning("webhooks_unavailable", exc_info=True)
            await anyio.sleep(_STORE_PAUSE_S)
        finally:
            self._busy.discard(webhook_id)
            self.wake()

    async def _make(self, delivery: WebhookDelivery) -> None:
        """Send a delivery and note it."""
        message = await self._store.message(delivery)
        if message is None:
            raise DeliveryRefused("The webhook is switched off.")
        body = body_of(delivery, message, self._mask)
        if not self.may_send():
            raise LeaseLost("Another server delivers webhooks.")
        try:
            await self._sender.send(message.url, message.secret, delivery.id, body)
        except ReceiverGone as exc:
            await self._store.switch(delivery.webhook_id, "gone")
            reason = "It answered with the status 410: the webhook is switched off."
            raise DeliveryRefused(reason) from exc
        with anyio.CancelScope(shield=True):  # noted also during shutdown
            await self._note_delivered(delivery)

    async def _note_delivered(self, delivery: WebhookDelivery) -> None:
        """Note a success, or it would be sent again; the store is tried for some seconds."""
        ends_at = anyio.current_time() + _NOTING_S
        while True:
            try:
                await self._store.delivered(delivery, self._now())
            except StoreUnavailable:
                if anyio.current_time() >= ends_at:
                    raise
                await anyio.sleep(_NOTE_AGAIN_S)
            else:
                return
