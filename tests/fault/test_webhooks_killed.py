"""The server is killed around a delivery: it is made again under its id, and nothing is lost."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import anyio
import pytest
from starlette.responses import Response

from gateway.conversations.sql.conversations import ConversationStore
from gateway.conversations.sql.webhooks import WebhookStore
from gateway.conversations.webhooks import Webhook, WebhookEvent
from memory.outbox.loop import DeliveryResult
from memory.stores.sqlite.database import Database
from tests.conformance.suites.conversation_values import ANN, AT, conversation
from tests.service.webhooks.open_dispatcher import World
from tests.support.crash_images import Step, at_points, crashed_everywhere, texts
from tests.support.live_server import running_server
from tests.support.stores import open_file
from tests.support.webhook_receivers import answering, receiving

EVENTS: tuple[WebhookEvent, ...] = ("conversation.created", "turn.completed")
NAMES = ("a", "b", "c")
pytestmark = pytest.mark.fault


async def test_a_server_that_is_killed_while_it_delivers_delivers_again(tmp_path: Path) -> None:
    """Killed with a message on its way and another one behind it, which was never sent."""

    async def silent(_: str) -> Response:
        await anyio.sleep_forever()
        raise AssertionError

    chosen = {"webhooks": "on", "webhook_hosts": "127.0.0.1", "prewarmed_clients": 0}
    async with receiving(silent) as receiver:
        async with running_server(tmp_path, **chosen) as first, first.client() as client:
            body = {"url": receiver.url(), "events": list(EVENTS)}
            made = await client.post("/webhooks", status=201, **body)
            result = await client.ask("hi")
            (on_its_way,) = await receiver.wait(1)
            first.kill()
        receiver.answer = answering(204)
        async with running_server(tmp_path, **chosen) as second, second.client() as client:
            _, created, completed = await receiver.wait(3)
            assert created.id == on_its_way.id
            sent = [message.read(made["secret"]) for message in (created, completed)]
            assert [message["type"] for message in sent] == list(EVENTS)
            assert sent[1]["data"]["turn_id"] == result["turn_id"]
            await client.wait_until(
                f"/webhooks/{made['id']}/deliveries",
                lambda found: {one["status"] for one in found["deliveries"]} == {"delivered"},
            )


async def fill(database: Database, url: str) -> None:
    """Add a webhook, and events for it."""
    webhook = Webhook(id="whk_1", user_id=ANN, url=url, events=EVENTS, state="on", created_at=AT)
    assert await WebhookStore(database).add(webhook, "whsec_MfKQ9r8GKYqrTwjU", most=1)


async def deliver(database: Database) -> None:
    """Store events, and deliver them as a server does that starts anew."""
    store = ConversationStore(database)
    for name in NAMES:
        if await store.get(conversation(name).id, ANN) is None:
            await store.create(conversation(name))
    world = World(database, now=datetime.now(UTC) + timedelta(days=1))
    await world.store.serve(world.now, is_on=True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(world.dispatcher.run)
        while await world.store.next_due_at(datetime(1970, 1, 1, tzinfo=UTC)):
            results: list[DeliveryResult] = await world.until(len(world.results) + 1)
            assert set(results) == {"delivered"}
        tasks.cancel_scope.cancel()


@at_points
async def test_a_kill_at_any_point_loses_no_event_and_repeats_only_under_the_same_id(
    tmp_path: Path, every: int
) -> None:
    async with receiving() as receiver:

        async def check(database: Database) -> int:
            stored = await texts(database, "SELECT id FROM conversations")
            sent = await texts(database, "SELECT conversation_id FROM webhook_deliveries")
            assert sorted(stored) == sorted(sent), "each event is stored with its delivery"
            receiver.came.clear()
            made = await texts(
                database, "SELECT id FROM webhook_deliveries WHERE status = 'delivered'"
            )
            await deliver(database)
            posted = Counter(message.id for message in receiver.came)
            assert not set(posted) & set(made), "what is noted is not sent again"
            assert {*posted, *made} == {f"msg_cnv_{name}_whk_1" for name in NAMES}
            assert set(posted.values()) <= {1}
            return len(made)

        steps: list[Step] = [partial(fill, url=receiver.url()), deliver]
        found = await crashed_everywhere(tmp_path, steps, check, every=every, opening=open_file)
    assert found[0] < found[-1] == len(NAMES)
