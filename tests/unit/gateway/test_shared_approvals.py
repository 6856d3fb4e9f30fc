"""What operators approved counts at all servers of a database, each of which has copies."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.to_thread import run_sync

from gateway.errors import StartError
from gateway.mcp_servers.accepted_tools import AcceptedTools
from gateway.mcp_servers.definitions import ToolDefinition
from gateway.shared_approvals import SharedApprovals
from gateway.trust import approvals_file, read_approvals_blocking, write_approvals_blocking
from gateway.users.model import Act
from gateway.users.sql.audit import AuditLog
from memory.clock import utc_now
from memory.stores.database import SqlDatabase
from tests.support.postgres import empty_schema_blocking, open_schema
from tests.support.stores import POSTGRES_MIGRATIONS, open_file

WS = "/ws"
OURS = Act(by="command:ann", at=utc_now())
READ = ToolDefinition("read", "Reads a file.", {"type": "object"})
OTHER = ToolDefinition("read", "Reads a file, and obeys it.", {"type": "object"})


@pytest.fixture(params=["sqlite", "postgresql"])
def schema(request: pytest.FixtureRequest) -> Iterator[str | None]:
    if request.param == "sqlite":
        yield None
    else:
        with empty_schema_blocking("conversations") as name:
            yield name


@asynccontextmanager
async def open_in(root: Path, schema: str | None) -> AsyncIterator[SqlDatabase]:
    opening = open_file(root) if schema is None else open_schema(schema, POSTGRES_MIGRATIONS)
    async with opening as database:
        yield database


async def approved(data_dir: Path) -> dict[str, object]:
    return {**await run_sync(read_approvals_blocking, approvals_file(data_dir))}


async def accepted(data_dir: Path) -> dict[str, object]:
    return {**await run_sync(AcceptedTools(data_dir / "mcp").accepted_blocking)}


async def lay(data_dir: Path, digest: str) -> None:
    """Write an approval to the file of a server."""
    await run_sync(write_approvals_blocking, approvals_file(data_dir), {WS: {"a": digest}})


async def test_an_approval_at_one_server_counts_at_the_other_one(
    tmp_path: Path, schema: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.shared_approvals._LOOK_S", 0.01)
    here, there = tmp_path / "here", tmp_path / "there"
    await lay(here, "1")
    async with open_in(tmp_path, schema) as database:
        one, other = (
            SharedApprovals(database, here, utc_now),
            SharedApprovals(database, there, utc_now),
        )
        await one.begin()
        await other.begin()
        assert await approved(there) == {WS: {"a": "1"}}
        await other.approve("configuration", WS, {"a": "2", "b": "3"}, OURS)
        await other.approve("mcp_tool", "files", {"read": value(READ)}, OURS)
        assert await approved(there) == {WS: {"a": "2", "b": "3"}}
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.run)
            with anyio.fail_after(30):
                while not await accepted(here):  # noqa: ASYNC110  nothing tells
                    await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
        assert await approved(here) == {WS: {"a": "2", "b": "3"}}
        assert await accepted(here) == {"files": {"read": READ}}
        told = await AuditLog(database).page(limit=9)
        assert [(entry.actor, entry.action, entry.subject) for entry in told] == [
            ("command:ann", "tool.accepted", "read"),
            ("command:ann", "configuration.approved", "b"),
            ("command:ann", "configuration.approved", "a"),
            ("", "configuration.approved", "a"),
        ]
        assert told[1].details == {"of": WS, "digest": "3"}


def value(tool: ToolDefinition) -> str:
    return json.dumps([tool.description, tool.input_schema])


async def test_what_was_taken_back_does_not_come_back_from_a_file(
    tmp_path: Path, schema: str | None
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    await lay(here, "1")
    await lay(there, "1")
    async with open_in(tmp_path, schema) as database:
        one = SharedApprovals(database, here, utc_now)
        await one.begin()
        await database.execute("DELETE FROM approved WHERE place <> ''")
        await one.copy()
        await SharedApprovals(database, there, utc_now).begin()
        assert await approved(here) == await approved(there) == {}


async def test_what_one_server_saw_first_is_what_the_other_one_compares_with(
    tmp_path: Path, schema: str | None
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    async with open_in(tmp_path, schema) as database:
        for data_dir, tool in ((here, READ), (there, OTHER)):
            shared = SharedApprovals(database, data_dir, utc_now)
            await shared.begin()
            tools = AcceptedTools(data_dir / "mcp", shared.accept_first_blocking)
            await run_sync(tools.accept_blocking, "files", {"read": tool})
        assert await accepted(there) == await accepted(here) == {"files": {"read": READ}}


async def test_files_that_cannot_be_written_keep_the_server_from_starting(
    tmp_path: Path, schema: str | None
) -> None:
    approvals_file(tmp_path / "here").mkdir(parents=True)
    async with open_in(tmp_path, schema) as database:
        with pytest.raises(StartError, match=r"trusted\.json"):
            await SharedApprovals(database, tmp_path / "here", utc_now).begin()
