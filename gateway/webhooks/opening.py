"""Opens the webhooks of a server."""

from collections.abc import Callable
from random import SystemRandom

from gateway.conversations.duty import Duty
from gateway.conversations.sql.webhooks import WebhookStore
from gateway.settings import Settings
from gateway.webhooks.desk import Webhooks
from gateway.webhooks.dispatcher import WebhookDispatcher
from gateway.webhooks.sender import WebhookSender
from memory.clock import Now
from memory.intents.masking import Mask
from memory.outbox.loop import DeliveryResult
from memory.stores.database import SqlDatabase


async def open_webhooks(
    settings: Settings,
    database: SqlDatabase,
    mask: Mask,
    duty: Duty,
    on_result: Callable[[DeliveryResult], None],
    now: Now,
) -> Webhooks:
    """Return the webhooks; call it before events are stored.

    Raise `StoreUnavailable` if the database cannot be written.
    """
    store, is_on = WebhookStore(database), settings.webhooks == "on"
    sender = WebhookSender(settings.webhook_hosts, now)
    dispatcher = WebhookDispatcher(
        store, sender, mask, now=now, draw=SystemRandom().random, on_result=on_result
    )
    dispatcher.may_send = lambda: duty.is_held
    await store.serve(now(), is_on=is_on, is_shared=duty.is_shared)
    return Webhooks(store, sender, dispatcher, now, duty, is_on=is_on)
