"""Which intents tell of something that was forgotten: by its id, wherever that stands in them."""

import json
import sqlite3
from datetime import UTC, datetime

import pytest

from memory.stores.sqlite.database import Database
from memory.stores.sqlite.forgotten import forgotten_at_blocking, note_forgotten_blocking

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SHOWN, SEARCHED = "memory.injected", "tool.mcp__memory_case__memory_case_search.ok"


@pytest.mark.parametrize(
    ("key", "payload", "tells"),
    [
        (SHOWN, {"ids": ["epi_b", "cas_a2"], "titles": ["x", "y"]}, True),
        (SHOWN, {"ids": ["cas_a2b"], "titles": ["another one"]}, False),
        (SHOWN, {"ids": [], "titles": []}, False),
        (SEARCHED, {"result": "found:\ncas_a2 (accepted)\tthe pool ran dry"}, True),
        (SEARCHED, {"args": {"case_id": "cas_a2"}}, True),
        (SEARCHED, {"result": "故障cas_a2。"}, True),
        ("tool.Bash.ok", {"result": "cas_a2"}, False),
        ("llm.response", {"text": "cas_a2"}, False),
    ],
    ids=str,
)
async def test_it_is_known_by_its_id(
    database: Database, key: str, payload: dict[str, object], *, tells: bool
) -> None:
    def work(connection: sqlite3.Connection) -> str | None:
        note_forgotten_blocking(connection, ["cas_a2"], AT)
        told = json.dumps(payload, ensure_ascii=False)
        return forgotten_at_blocking(connection, key, told, AT)

    assert (await database.write(work) is not None) == tells
