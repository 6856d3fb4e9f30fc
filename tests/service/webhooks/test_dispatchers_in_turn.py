"""Two servers that share a database deliver each message once, and one goes on for the other."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import anyio
import pytest
from starlette.responses import Response

from gateway.conversations.duty import Duty
from gateway.conversations.leases import Node
from gateway.conversations.sql.duties import DutyStore
from gateway.conversations.sql.leases import LeaseStore
from gateway.conversations.sql.webhooks import WebhookStore
from gateway.ids import NodeId
from gateway.webhooks import desk
from gateway.webhooks.desk import Webhooks
from memory.errors import StoreUnavailable
from tests.service.webhooks.open_dispatcher import World
from tests.support.postgres import empty_schema_blocking, open_schema
from tests.support.stores import POSTGRES_MIGRATIONS
from tests.support.webhook_receivers import receiving

LONG_MS = 3_600_000
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@dataclass
class Server:
    """One of the servers."""

    world: World
    duty: Duty
    node: Node
    life: anyio.CancelScope

    async def until_on_duty(self) -> None:
        with anyio.fail_after(30):
            while not self.duty.is_held:  # noqa: ASYNC110  no signal
                await anyio.sleep(0.01)

    async def die(self) -> None:
        """End everything at once; the others learn so from the silence of its heart."""
        self.life.cancel()
        await LeaseStore(self.world.database).beat(self.node, ttl_ms=0)


@asynccontextmanager
async def two_servers() -> AsyncIterator[tuple[Server, Server]]:
    """Run two servers on one schema, of which the first one has the duty."""
    async with AsyncExitStack() as stack:
        schema = stack.enter_context(empty_schema_blocking("conversations"))
        tasks = await stack.enter_async_context(anyio.create_task_group())
        servers: list[Server] = []
        for name in ("here", "there"):
            database = await stack.enter_async_context(open_schema(schema, POSTGRES_MIGRATIONS))
            node = Node(id=NodeId(name), incarnation=name)
            await LeaseStore(database).join(node, ttl_ms=LONG_MS)
            duty = Duty(DutyStore(database), node, is_shared=True)
            world = World(database, now=NOON)
            world.dispatcher.may_send = partial(_is_held, duty)
            server = Server(world, duty, node, anyio.CancelScope())
            tasks.start_soon(_run, server)
            if not servers:
                await server.until_on_duty()
            servers.append(server)
        try:
            yield servers[0], servers[1]
        finally:
            tasks.cancel_scope.cancel()


def _is_held(duty: Duty) -> bool:
    return duty.is_held


async def _run(server: Server) -> None:
    world = server.world
    webhooks = Webhooks(
        world.store, world.sender, world.dispatcher, lambda: world.now, server.duty, is_on=True
    )
    with server.life:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.duty.run)
            tasks.start_soon(webhooks.run)


async def test_each_message_is_delivered_once_wherever_its_event_was_stored() -> None:
    async with receiving() as receiver, two_servers() as (here, there):
        await here.world.add(receiver.url("/a"))
        await here.world.add(receiver.url("/b"))
        async with anyio.create_task_group() as tasks:
            for server in (here, there):
                for _ in range(8):
                    tasks.start_soon(server.world.create)
        await receiver.wait(32)
        await here.world.until(32)
        assert set(Counter(message.id for message in receiver.came).values()) == {1}
        assert not there.world.results


async def test_a_message_does_not_wait_for_the_clock_of_the_server_that_stored_its_event() -> None:
    async with receiving() as receiver, two_servers() as (here, there):
        await here.world.add(receiver.url())
        there.world.now += timedelta(hours=1)
        for _ in range(3):
            await there.world.create()
        await receiver.wait(3)
        assert await here.world.until(3) == ["delivered"] * 3
        assert len({message.id for message in receiver.came}) == 3


async def test_a_release_that_fails_cuts_off_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that is cut off is sent again, whether or not it was taken."""
    held, answered = anyio.Event(), anyio.Event()

    async def answer(_: str) -> Response:
        held.set()
        await answered.wait()
        return Response(status_code=204)

    async def fail(*_: object) -> None:  # noqa: RUF029
        failed.append(True)
        raise StoreUnavailable("The database cannot be written.")

    failed: list[bool] = []
    monkeypatch.setattr(desk, "_RELEASE_S", 0.05)
    async with receiving(answer) as receiver, two_servers() as (here, _):
        await here.world.add(receiver.url())
        await here.world.create()
        with anyio.fail_after(30):
            await held.wait()
            monkeypatch.setattr(WebhookStore, "release", fail)
            while len(failed) < 3:  # noqa: ASYNC110  no signal
                await anyio.sleep(0.01)
            answered.set()
            assert await here.world.until(1) == ["delivered"]
        assert len(receiver.came) == 1


@pytest.mark.parametrize("how", ["dead", "stopping"])
async def test_another_server_goes_on_where_one_has_died_and_no_message_is_lost(how: str) -> None:
    """What was under way when it died is sent again, under the same id; nothing else is."""
    held = anyio.Event()

    async def answer(_: str) -> Response:
        if len(receiver.came) == 2:
            held.set()
            await anyio.sleep_forever()
        return Response(status_code=204)

    async with receiving(answer) as receiver, two_servers() as (here, there):
        await here.world.add(receiver.url())
        for _ in range(6):
            await here.world.create()
        with anyio.fail_after(30):
            await held.wait()
            if how == "dead":
                await here.die()
            else:
                await here.duty.give_up()
            await there.world.until(5)
        assert sorted(Counter(message.id for message in receiver.came).values()) == [*[1] * 5, 2]
        assert here.world.results + there.world.results == ["delivered"] * 6


async def test_a_server_that_was_paused_sends_nothing_that_another_one_may_send() -> None:
    """It had taken a batch before, and is in the middle of it."""
    came, go_on = anyio.Event(), anyio.Event()

    async def answer(_: str) -> Response:
        if len(receiver.came) == 1:
            came.set()
            await go_on.wait()
        return Response(status_code=204)

    async with receiving(answer) as receiver, two_servers() as (here, there):
        await here.world.add(receiver.url())
        for _ in range(4):
            await here.world.create()
        with anyio.fail_after(30):
            await came.wait()
            there.world.now += timedelta(hours=1)  # clocks differ
            here.duty._until_s = 0  # noqa: SLF001  its clock has gone on, and no task has run yet
            go_on.set()
            await here.world.until(1)
            await LeaseStore(here.world.database).beat(here.node, ttl_ms=0)
            await there.world.until(3)
        assert set(Counter(message.id for message in receiver.came).values()) == {1}
        assert here.world.results == ["delivered"]
