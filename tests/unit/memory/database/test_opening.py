"""A database is opened: as it promises, for its user alone, or refused in words."""

import shutil
import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from gateway.conversations import migrations
from memory.errors import StoreUnavailable
from memory.stores.sqlite.database import Database, migrations_of
from memory.stores.sqlite.integrity import holds_nothing_blocking
from tests.unit.memory.database.words_file import TABLE, insert, opened, threads_left

GATEWAY = migrations_of(migrations.__name__)


async def test_what_is_committed_survives_a_power_cut_and_readers_never_wait(
    database: Database,
) -> None:
    """The pragmas that promise it; none of them can be seen to work in a test."""
    said = {
        name: (await database.row(f"PRAGMA {name}") or [None])[0]
        for name in ("journal_mode", "query_only", "busy_timeout")
    }
    assert said == {"journal_mode": "wal", "query_only": 1, "busy_timeout": 5000}

    def work(writer: sqlite3.Connection) -> dict[str, Any]:
        return {
            name: writer.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("synchronous", "foreign_keys", "busy_timeout")
        }

    assert (await database.write(work, is_synced=False))["synchronous"] == 1
    assert await database.write(work) == {
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 5000,
    }


async def test_a_file_system_without_wal_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class WithoutWal(sqlite3.Connection):
        def execute(self, sql: str, *rest: Any) -> sqlite3.Cursor:
            return super().execute(sql.replace("journal_mode=WAL", "journal_mode=DELETE"), *rest)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", partial(connect, factory=WithoutWal))
    with pytest.raises(StoreUnavailable, match="WAL"):
        await opened(tmp_path / "d", [TABLE])


@pytest.mark.parametrize("kind", ["garbage", "directory", "no parent", "torn"])
async def test_what_is_no_database_is_refused_in_words_without_a_path(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "secret place" / "d"
    if kind != "no parent":
        path.parent.mkdir()
    if kind == "garbage":
        path.write_bytes(b"this is no database, it is a letter to a friend" * 100)
    elif kind == "directory":
        path.mkdir()
    elif kind == "torn":
        await (await opened(path, GATEWAY)).close()
        path.write_bytes(path.read_bytes()[:5000] + b"\xff" * 3000)
    with pytest.raises(StoreUnavailable) as caught:
        await opened(path, [*GATEWAY, "CREATE TABLE x AS SELECT * FROM turns"])
    assert "secret" not in str(caught.value)
    assert "/" not in str(caught.value)
    assert str(caught.value).endswith(".")


async def test_opening_that_fails_leaves_no_thread(tmp_path: Path) -> None:
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            await opened(tmp_path / "d", [TABLE, "nonsense"])
    assert await threads_left() == []


async def test_the_files_are_this_users_alone_and_what_is_deleted_is_zeroed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    database = await opened(tmp_path / "a.sqlite3", [TABLE])
    await insert(database, "Zitronella")
    for file in tmp_path.iterdir():
        assert file.stat().st_mode & 0o077 == 0, file.name
    await database.write(lambda writer: writer.execute("DELETE FROM words"))
    await database.close()
    assert b"Zitronella" not in (tmp_path / "a.sqlite3").read_bytes()


async def test_a_file_that_opens_for_reading_alone_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite falls back to that when no descriptor is left for a moment, and would never write again."""
    await (await opened(tmp_path / "d", [TABLE])).close()
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda path, **more: connect(f"file:{path}?mode=ro", uri=True, **more)
    )
    with pytest.raises(StoreUnavailable, match="opened: it is read-only"):
        await opened(tmp_path / "d", [TABLE])


@pytest.mark.parametrize("is_gone", [True, False])
async def test_a_log_that_is_gone_after_a_kill_is_reported_once(
    tmp_path: Path, *, is_gone: bool
) -> None:
    await anyio.Path(tmp_path / "live").mkdir()
    database = await opened(tmp_path / "live" / "d", [TABLE])
    await insert(database, "a")
    await anyio.to_thread.run_sync(shutil.copytree, tmp_path / "live", tmp_path / "killed")
    await database.close()
    killed = tmp_path / "killed" / "d"
    if is_gone:
        await anyio.Path(tmp_path / "killed" / "d-wal").unlink()
    assert await anyio.to_thread.run_sync(holds_nothing_blocking, killed) == is_gone
    for file, is_told in ((killed, is_gone), (killed, False), (tmp_path / "live" / "d", False)):
        database = await opened(file, [TABLE])
        assert (database.loss is not None) == is_told
        await database.close()
        assert [path.name async for path in anyio.Path(file.parent).iterdir()] == ["d"]
