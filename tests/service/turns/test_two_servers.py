"""Two servers on one database: one of them runs a conversation, and the other one may follow it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.conversations.leases import LeaseStore
from gateway.conversations.model import TurnEvent
from gateway.conversations.sqlite.leases import SqliteLeaseStore
from gateway.errors import NotStored
from gateway.ids import LOCAL_USER
from tests.support.services import RunningServices, running_services
from tests.support.stores import open_file


@asynccontextmanager
async def two_servers(
    root: Path,
) -> AsyncIterator[tuple[RunningServices, RunningServices, LeaseStore]]:
    """Open two servers, and their leases."""
    async with (
        running_services(root / "a", node="a") as here,
        running_services(root / "b", node="b", beside=root / "a") as there,
        open_file(here.settings.data_dir) as database,
    ):
        yield here, there, SqliteLeaseStore(database)


async def stored_in(services: RunningServices, conversation_id: str) -> list[TurnEvent]:
    subscription = await services.chat.reader.follow_all(LOCAL_USER, conversation_id)
    async with subscription:
        return await subscription.next(0)


@pytest.mark.parametrize("notices_by", ["writing", "beating"])
async def test_a_server_that_was_taken_for_dead_writes_nothing_and_stops(
    tmp_path: Path, notices_by: str
) -> None:
    async with two_servers(tmp_path) as (here, there, leases):
        accepted = await here.begin()
        where = accepted.conversation_id
        waiting = await here.send("And then?", where)
        await here.events_of(waiting, until="turn.queued")
        await leases.beat(here.ownership.node, ttl_ms=0)
        assert await there.ownership.hold(where) == 2
        before = await stored_in(there, where)
        if notices_by == "writing":
            await here.interrupt(where)
        else:
            await here.ownership.beat()
        for one in (accepted, waiting):
            with pytest.raises(NotStored):
                await here.result_of(one)
        await here.chat.intake.shut_down(grace_s=0)
        assert await stored_in(there, where) == before
        found = [turn.state for turn in await there.messages_of(where)]
        assert found == ["running", "queued"]
        assert not any(client.is_alive for client in here.scripted.clients)
        here.assert_nothing_is_left()
