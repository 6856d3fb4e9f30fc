"""A database whose file is damaged: the answer does not send anybody to try again."""

import sqlite3
from pathlib import Path

from tests.service.http.stage import assert_error, staged


def damage(writer: sqlite3.Connection) -> None:
    """Let a table begin at a page that the file does not have."""
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
