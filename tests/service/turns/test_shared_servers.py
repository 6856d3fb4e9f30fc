"""Two servers on one PostgreSQL database: their lists are the same, and what is due happens once."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import psycopg
import pytest

from gateway.conversations.database_clock import DatabaseClock
from gateway.conversations.model import Turn
from gateway.errors import StartError
from gateway.ids import LOCAL_USER as ME
from gateway.settings import Secret
from gateway.turns.ownership import HeldElsewhere
from gateway.turns.requests import Accepted
from memory.items.item import ItemKind
from memory.items.scope import Scope
from tests.support.postgres import new_database_blocking, plain_user_blocking
from tests.support.services import HANG, RunningServices, running_services, script

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ASKS = script({"tool": "Bash", "input": {"command": "rm a.txt"}}, {"text": "Done."})
LONG = "".join(f"{n:05} otter\n" for n in range(2_000))
READ = script({"tool": "Bash", "input": {"command": "cat long.txt"}}, {"text": "Done."})
MINE = Scope(owner_id=ME)
PASSWORD = "of-the-database"


@pytest.fixture
def url() -> Iterator[str]:
    """Make a database of the test's own."""
    with new_database_blocking(PASSWORD) as address:
        yield address


@pytest.fixture
def plain_url(url: str) -> Iterator[str]:
    """Make the database one that takes no extension."""
    with plain_user_blocking(url) as address:
        yield address


@pytest.fixture
def newer_url(url: str) -> str:
    """Make the database one whose memory a newer server has written."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA candor_memory")
        connection.execute(
            "CREATE TABLE candor_memory.schema_version (version INTEGER PRIMARY KEY,"
            " applied_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp())"
        )
        connection.execute("INSERT INTO candor_memory.schema_version VALUES (999)")
    return url


@asynccontextmanager
async def shared(root: Path, url: str, **settings: Any) -> AsyncIterator[list[RunningServices]]:
    """Run two servers that share a database and the directory of the journals; the first one has
    the duty.
    """
    given = {
        "database_url": Secret(url),
        "log_dir": root / "logs",
        "approvals": "on",
        **settings,
    }
    first = running_services(root / "a", node="a", node_url="http://127.0.0.1:9", **given)
    async with first as here:
        await until(lambda: ready(here.duty.is_held))
        other = running_services(root / "b", node="b", node_url="http://127.0.0.1:10", **given)
        async with other as there:
            yield [here, there]


async def ready(value: object) -> object:  # noqa: RUF029  as `until` wants
    return value


async def until(look: Callable[[], Awaitable[Any]]) -> Any:
    """Wait until a look finds something; return that."""
    with anyio.fail_after(30):
        while not (found := await look()):  # noqa: ASYNC110  no signal
            await anyio.sleep(0.02)
    return found


async def test_an_approval_is_listed_with_all_its_fields_by_both_servers(
    tmp_path: Path, url: str
) -> None:
    async with shared(tmp_path, url) as (here, there):
        accepted = await here.send(ASKS)
        question = await here.pending_in(accepted)
        assert question["permits"]
        assert await there.asked() == [question]
        extended = await here.chat.approvals.extend(ME, question["approval_id"])
        assert await there.asked() == [{**question, "expires_at": extended}]
        other = await there.send(ASKS)
        second = await there.pending_in(other)
        both = [{**question, "expires_at": extended}, second]
        assert await here.asked() == await there.asked() == both
        await here.answer(question, "allow")
        await there.stop(other)
        await here.result_of(accepted)
        assert await here.asked() == await there.asked() == []


async def test_an_approval_whose_run_has_ended_waits_at_both_servers(
    tmp_path: Path, url: str
) -> None:
    async with shared(tmp_path, url, approval_timeout_s=0.3) as (here, there):
        accepted = await here.send(ASKS)
        await here.result_of(accepted)
        (listed,) = await there.asked()
        assert (listed["state"], listed["permits"], listed["expires_at"]) == ("waiting", [], None)
        assert await here.asked() == [listed]


async def test_conversations_that_another_server_runs_are_listed_as_that(
    tmp_path: Path, url: str
) -> None:
    async with shared(tmp_path, url) as (here, there):
        accepted = await here.begin(HANG)
        await here.create()
        for server in (here, there):
            views = {view.conversation.id: view.state for view in await server.views()}
            assert sorted(views.values()) == ["idle", "running"]
            assert views[accepted.conversation_id] == "running"
        await here.stop(accepted)
        assert [view.state for view in await there.views()] == ["idle", "idle"]


async def test_outputs_are_read_and_deleted_at_another_server(tmp_path: Path, url: str) -> None:
    async with shared(tmp_path, url) as (here, there):
        (here.settings.workspace / "long.txt").write_text(LONG, encoding="utf-8")
        result = await here.ask(READ)
        where, turn_id = result["conversation_id"], result["turn_id"]
        call = await here.chat.reader.tool_call(ME, where, turn_id, 1)
        await here.ownership.end()
        assert call["output_kept_chars"] == len(LONG)
        assert await there.chat.reader.tool_call(ME, where, turn_id, 1) == call
        assert await there.journal_of(result)
        await there.delete(where)
        assert not [path async for path in anyio.Path(tmp_path).rglob(f"{turn_id}-*")]


async def in_all(servers: Sequence[RunningServices]) -> list[Turn]:
    """Return all turns of the database; each server is asked for those that it may show."""
    turns: list[Turn] = []
    for view in await servers[0].views():
        for server in servers:
            with suppress(HeldElsewhere):
                turns += await server.messages_of(view.conversation.id)
                break
    return turns


async def add(server: RunningServices, **fields: Any) -> str:
    given = {"conversation_id": None, "project_id": None, "enabled": True, "name": "Hours"}
    times = {"cron": "0 * * * *", "time_zone": "UTC", "message": "hello"}
    return (await server.chat.schedules.create(ME, {**given, **times, **fields})).schedule.id


@pytest.mark.parametrize("bound_to", [None, 0, 1], ids=["new", "held_here", "held_there"])
async def test_a_due_message_is_sent_once(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch, bound_to: int | None
) -> None:
    """By the server that holds its conversation, or has the duty."""
    now = [NOON]
    monkeypatch.setattr(DatabaseClock, "now", lambda _: now[0])
    async with shared(tmp_path, url, schedules="on") as servers:
        place = None
        if bound_to is not None:
            place = (await servers[bound_to].ask("before"))["conversation_id"]
        schedule_id = await add(servers[bound_to or 0], conversation_id=place)
        now[0] += timedelta(hours=1)
        async with anyio.create_task_group() as tasks:
            for server in servers:
                for _ in range(2):
                    tasks.start_soon(server.chat.schedules.runner.run_due, lambda _: True)
        view = await servers[1].chat.schedules.get(ME, schedule_id)
        assert view.schedule.problem is None
        assert view.schedule.last_due_at == now[0]
        (turn,) = [turn for turn in await in_all(servers) if turn.schedule is not None]
        assert turn.id == view.schedule.last_turn_id
        sender = servers[bound_to or 0]
        assert sender.lanes.find(turn.id) is not None or sender.pool.is_hot(turn.conversation_id)


async def test_another_server_sends_what_is_due_when_the_one_with_the_duty_has_died(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [NOON]
    monkeypatch.setattr(DatabaseClock, "now", lambda _: now[0])
    async with shared(tmp_path, url, schedules="on") as (here, there):
        schedule_id = await add(here)
        now[0] += timedelta(hours=1)
        await there.chat.schedules.runner.run_due(lambda _: True)
        assert await in_all([there]) == []
        await die(here)
        await until(lambda: ready(there.duty.is_held))
        await there.chat.schedules.runner.run_due(lambda _: True)
        await here.chat.schedules.runner.run_due(lambda _: True)
        (begun,) = await in_all([there])
        await there.result_of(Accepted(conversation_id=begun.conversation_id, turn_id=begun.id))
        (turn,) = await in_all([there])
        assert (await there.chat.schedules.get(ME, schedule_id)).last_turn == turn


async def die(server: RunningServices) -> None:
    """End a server's heart."""
    await server.ownership.end()


@pytest.mark.parametrize("kind", ["turn", "episode"])
async def test_what_one_server_records_another_one_remembers(
    tmp_path: Path, url: str, kind: ItemKind
) -> None:
    """Episodes and the record are written by the one that has the duty."""
    async with shared(tmp_path, url, record="on") as (here, there):
        await there.ask(f"Look for the zebra.\n{READ}")
        for server in (here, there):
            search = server.open_memory.items.search
            await until(partial(search, "zebra", MINE, kinds=[kind], limit=9))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"memu": "cli", "memu_url": "http://127.0.0.1:9"}, "CANDOR_MEMU=server or off"),
        ({"embedder": "multilingual"}, "only a superuser may add pgvector .* CANDOR_EMBEDDER=none"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
async def test_a_server_that_would_keep_to_itself_what_others_need_does_not_start(
    tmp_path: Path, plain_url: str, settings: dict[str, Any], told: str
) -> None:
    with pytest.raises(StartError, match=told):
        async with shared(tmp_path, plain_url, **settings):
            pass


async def test_a_server_without_memory_does_not_start(tmp_path: Path, newer_url: str) -> None:
    """It would have the duty, and nobody would do memory's work."""
    with pytest.raises(StartError, match="Memory cannot be opened"):
        async with shared(tmp_path, newer_url):
            pass
