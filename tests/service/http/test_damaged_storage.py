"""A database whose file is damaged, removed or replaced, or cannot store events."""

import sqlite3
from pathlib import Path

import anyio
import pytest

from gateway.lost_data import DATABASE
from memory.errors import StoreUnavailable
from tests.service.http.client import Client
from tests.service.http.stage import LIMIT_S, Json, assert_error, running, staged


def damage(writer: sqlite3.Connection) -> None:
    """Make a table begin at a page beyond the file's end."""
    writer.execute("PRAGMA writable_schema=ON")
    writer.execute("UPDATE sqlite_master SET rootpage=999999 WHERE name='conversations'")
    version = writer.execute("PRAGMA schema_version").fetchone()[0]
    writer.execute(f"PRAGMA schema_version={version + 1}")


async def test_a_damaged_store_is_told_as_a_fault_that_stays(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await stage.database.write(damage)
        answer = await stage.client().get("/conversations")
        error = assert_error(answer, 503, "storage_unavailable")
        assert error["retryable"] is False
        assert "damaged" in error["message"]
        assert "retry-after" not in answer.headers


async def test_a_damaged_conversation_does_not_hide_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        made = [await client.new_conversation() for _ in range(4)]
        statement = "UPDATE conversations SET created_at = 'never' WHERE id = ?"
        await stage.database.write(lambda writer: writer.execute(statement, (made[1],)))
        found = await client.pages("/conversations", "conversations", limit=1)
        assert [conversation["id"] for conversation in found] == [made[3], made[2], made[0]]
        assert "conversation_damaged" in caplog.messages


async def test_a_damaged_turn_does_not_hide_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        chat = await client.new_conversation()
        for n in range(5):
            await client.say(str(n), chat)
        statement = "UPDATE turns SET result = '{' WHERE seq IN (2, 3)"
        await stage.database.write(lambda writer: writer.execute(statement))
        for limit in (1, 3, 100):
            found = await client.messages(chat, limit)
            assert [entry["text"] for entry in found[::2]] == ["0", "3", "4"]
        assert "turn_damaged" in caplog.messages


async def fault_of(client: Client, part: str) -> str:
    answer = await client.get("/readyz")
    told: Json = answer.json()["parts"][part]
    assert (answer.status_code == 200) == told["ok"]
    return str(told.get("message", ""))


async def test_a_database_file_that_is_removed_or_replaced_is_told_by_readyz(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as (services, client):
        assert await fault_of(client, "database") == ""
        file = anyio.Path(services.settings.data_dir / DATABASE)
        away = file.with_name("away.sqlite3")
        await file.rename(away)
        assert "removed or replaced" in await fault_of(client, "database")
        await file.write_bytes(await away.read_bytes())
        assert "removed or replaced" in await fault_of(client, "database")
        await away.rename(file)
        assert await fault_of(client, "database") == ""


async def test_readyz_tells_at_once_that_events_cannot_be_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        await anyio.lowlevel.checkpoint()
        raise StoreUnavailable("The disk is full.")

    async with running(tmp_path) as (services, client):
        with monkeypatch.context() as patch, anyio.fail_after(LIMIT_S):
            patch.setattr("gateway.conversations.sql.events.EventStore.append", fail)
            await services.send("hi")
            while not await fault_of(client, "events"):
                await anyio.lowlevel.checkpoint()
        with anyio.fail_after(LIMIT_S):
            while await fault_of(client, "events"):
                await anyio.lowlevel.checkpoint()
