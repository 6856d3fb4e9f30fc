"""Which intents tell of something that was forgotten: by its id, wherever that stands in them."""

import json
import sqlite3
from datetime import UTC, datetime

from memory.stores.sqlite.database import Database
from memory.stores.sqlite.forgotten import forgotten_at_blocking, note_forgotten_blocking

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SHOWN, SEARCHED = "memory.injected", "tool.mcp__memory_case__memory_case_search.ok"
INTENTS: list[tuple[str, dict[str, object], bool]] = [
    (SHOWN, {"ids": ["epi_b", "cas_a2"], "titles": ["x", "y"]}, True),
    (SHOWN, {"ids": ["cas_a2b"], "titles": ["another one"]}, False),
    (SHOWN, {"ids": [], "titles": []}, False),
    (SEARCHED, {"result": "found:\ncas_a2 (accepted)\tthe pool ran dry"}, True),
    (SEARCHED, {"args": {"case_id": "cas_a2"}}, True),
    (SEARCHED, {"result": "故障cas_a2。"}, True),
    ("tool.Bash.ok", {"result": "cas_a2"}, False),
    ("llm.response", {"text": "cas_a2"}, False),
]


async def test_the_words_of_a_forgotten_turn_are_forgotten_when_they_come_later(
    database: Database,
) -> None:
    keys = {"turn.received": True, "llm.response": True, "tool.Bash.ok": False}

    def work(connection: sqlite3.Connection) -> list[bool]:
        note_forgotten_blocking(connection, ["trn_1"], AT)
        return [
            forgotten_at_blocking(connection, key, "{}", "trn_1", AT) is not None for key in keys
        ]

    assert await database.write(work) == list(keys.values())


async def test_it_is_known_by_its_id(database: Database) -> None:
    def work(connection: sqlite3.Connection) -> list[bool]:
        note_forgotten_blocking(connection, ["cas_a2"], AT)
        told = [(key, json.dumps(payload, ensure_ascii=False)) for key, payload, _ in INTENTS]
        return [forgotten_at_blocking(connection, *each, "trn_1", AT) is not None for each in told]

    assert await database.write(work) == [tells for *_, tells in INTENTS]
