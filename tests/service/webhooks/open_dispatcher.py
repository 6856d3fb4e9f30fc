"""A dispatcher with a clock and a store of its own, between events and receivers of the tests."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio

from gateway.conversations.model import fresh_conversation
from gateway.conversations.sql.conversations import ConversationStore
from gateway.conversations.sql.webhooks import WebhookStore
from gateway.conversations.webhooks import Webhook, WebhookDelivery, WebhookEvent
from gateway.ids import ConversationId, UserId
from gateway.web_fetch.exchange import Exchange
from gateway.webhooks.dispatcher import LIMITS, WebhookDispatcher
from gateway.webhooks.message import new_secret
from gateway.webhooks.sender import WebhookSender
from memory.outbox.loop import DeliveryLimits, DeliveryResult
from memory.remote.breaker import BreakerLimits
from memory.stores.database import SqlDatabase
from tests.support.stores import open_file

ANN = UserId("ann")
NEVER_OPEN = BreakerLimits(max_failures=10**6)


@dataclass
class World:
    """Webhooks of Ann, and what delivers to them."""

    database: SqlDatabase
    hosts: Sequence[str] = ("127.0.0.1",)
    public: Exchange | None = None
    breaker: BreakerLimits = NEVER_OPEN
    limits: DeliveryLimits = LIMITS
    call_s: float = 15.0
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    results: list[DeliveryResult] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = WebhookStore(self.database)
        self.conversations = ConversationStore(self.database)
        self.secrets: dict[str, str] = {}
        self.sender = WebhookSender(
            self.hosts, lambda: self.now, public=self.public, call_s=self.call_s
        )
        self.dispatcher = WebhookDispatcher(
            self.store,
            self.sender,
            lambda text: text,
            now=lambda: self.now,
            draw=lambda: 0.999,
            limits=self.limits,
            breaker=self.breaker,
            on_result=self._note,
        )
        self._noted = anyio.Event()

    def _note(self, result: DeliveryResult) -> None:
        self.results.append(result)
        self._noted.set()
        self._noted = anyio.Event()

    async def add(self, url: str, *events: WebhookEvent, user_id: UserId = ANN) -> Webhook:
        """Add a webhook, for new conversations if no events are named."""
        webhook = Webhook(
            id=f"whk_{len(self.secrets)}",
            user_id=user_id,
            url=url,
            events=events or ("conversation.created",),
            state="on",
            created_at=self.now,
        )
        self.secrets[webhook.id] = new_secret()
        assert await self.store.add(webhook, self.secrets[webhook.id], most=10)
        return webhook

    async def create(self, user_id: UserId = ANN) -> ConversationId:
        """Create a conversation: the event."""
        conversation = fresh_conversation(user_id, self.now)
        await self.conversations.create(conversation)
        self.dispatcher.wake()
        return conversation.id

    async def until(self, count: int) -> list[DeliveryResult]:
        """Wait until so many tries have ended."""
        with anyio.fail_after(20):
            while len(self.results) < count:
                await self._noted.wait()
        return self.results

    async def deliveries(self, webhook: Webhook) -> Sequence[WebhookDelivery]:
        return await self.store.deliveries(webhook.id, limit=200)

    async def pass_to_next(self) -> timedelta:
        """Move the clock to the next try, and return by how much."""
        at = await self.store.next_due_at(self.now)
        assert at is not None
        wait, self.now = at - self.now, at
        self.dispatcher.wake()
        return wait


@asynccontextmanager
async def running(directory: Path, **chosen: Any) -> AsyncIterator[World]:
    """Run the dispatcher of a world on a database in a directory."""
    async with open_file(directory) as database, anyio.create_task_group() as tasks:
        world = World(database, **chosen)
        tasks.start_soon(world.dispatcher.run)
        yield world
        tasks.cancel_scope.cancel()
