"""A server that lost a conversation to another one writes nothing into the memory that they share."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.conversations.leases import Node
from gateway.conversations.sql.leases import LeaseStore
from gateway.ids import LOCAL_USER as ME
from gateway.ids import NodeId
from gateway.settings import Secret
from gateway.storage import open_storage
from gateway.turns.turn_recall import TurnRecall
from memory.facts.keeper import FactKeeper
from memory.intents.chronicle import SqlChronicle
from memory.items.scope import Scope
from tests.support.fact_turns import LOCKER, forget, remember, saying
from tests.support.postgres import new_database_blocking
from tests.support.services import RunningServices, hold_calls, running_services, script

TABLES = ("intents", "pending_context", "facts", "forgotten_on_request")
RIVAL = Node(id=NodeId("rival"), incarnation="1")


@pytest.fixture
def url() -> Iterator[str]:
    """Make a database of the test's own."""
    with new_database_blocking("of-the-database") as address:
        yield address


async def stored(services: RunningServices) -> dict[str, list[list[Any]]]:
    """Return what memory holds of turns."""
    database = services.open_memory.database
    return {
        table: sorted([*row] for row in await database.rows(f"SELECT * FROM {table}"))
        for table in TABLES
    }


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (SqlChronicle.record, script({"text": "Done."})),
        (TurnRecall.mark_sent, script({"text": "Done."})),
        (FactKeeper.conclude, f"Remember that {LOCKER}"),
        (FactKeeper.remember, saying(LOCKER, remember(LOCKER))),
        (FactKeeper.forget, saying("Forget where I live.", forget("Forget where I live", "{}"))),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
async def test_what_an_old_owner_still_writes_is_refused(
    tmp_path: Path,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    method: Callable[..., Any],
    message: str,
) -> None:
    given: dict[str, Any] = {"database_url": Secret(url), "node_url": "http://127.0.0.1:9"}
    async with running_services(tmp_path, **given) as here:
        database = await open_storage(here.settings)
        leases = LeaseStore(database)
        await leases.join(RIVAL, ttl_ms=3_600_000)
        assert here.open_memory.facts is not None
        home = await here.open_memory.facts.write("I live in Ulm.", Scope(owner_id=ME))
        begun = await here.begin()
        await here.stop(begun)  # so that something waits for the next prompt
        held = hold_calls(monkeypatch, method)
        await here.send(message.replace("{}", home.id), begun.conversation_id)
        with anyio.fail_after(30):
            await held.came.wait()
        with anyio.fail_after(30):
            lease = None
            while lease is None:  # the server's own beat may come between
                await leases.beat(here.ownership.node, ttl_ms=0)
                lease = await leases.take(RIVAL, begun.conversation_id)
        await database.close()
        before = await stored(here)
        held.let_go.set()
        with anyio.fail_after(30):
            while not here.lanes.is_empty:  # noqa: ASYNC110  nothing tells
                await anyio.sleep(0.01)
        assert await stored(here) == before
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
