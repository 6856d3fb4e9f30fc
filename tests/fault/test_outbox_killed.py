"""The process is killed while it delivers, at each point: nothing is lost, nothing goes out under two keys."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memory.stores.sqlite.database import Database
from tests.fault.outbox_program import GONE, ITEMS, LATER, deliver
from tests.support.episodes import open_memory
from tests.support.killing import killed_everywhere
from tests.unit.memory.backends.memu_services import Reply, served

SCRIPT = Path(__file__).with_name("outbox_program.py")
KEYS = {*(f"told:put:{item}:1" for item in ITEMS), f"told:forget:{GONE}:1"}
MANY = 20
pytestmark = pytest.mark.fault


async def status(database: Database) -> Mapping[str, int]:
    rows = await database.rows("SELECT status, count(*) AS n FROM outbox GROUP BY status")
    return {row["status"]: row["n"] for row in rows}


async def linked(database: Database) -> list[str]:
    rows = await database.rows("SELECT item_id FROM memory_links ORDER BY item_id")
    return [row["item_id"] for row in rows]


async def test_a_kill_at_any_point_loses_nothing_and_repeats_only_under_the_same_key(
    tmp_path: Path,
) -> None:
    told: dict[str, list[str]] = defaultdict(list)

    def answer(_method: str, _path: str, body: Any) -> Reply:
        assert body["key"] == f"told:{body['what']}:{body['item']}:1"
        told[body["of"]].append(body["key"])
        return 200, {}

    with served(answer) as address:
        count = await killed_everywhere(SCRIPT, address, str(tmp_path), every=1)
        assert count > MANY, "there are that many points to be killed at"
        repeated = 0
        for number in range(1, count + 1):
            name = str(number)
            async with open_memory(tmp_path / name) as database:
                before = await status(database)
                assert sum(before.values()) == len(KEYS), "none is lost"
                assert before.get("delivered", 0) <= len(told[name])
                await deliver(database, address, name, LATER)
                assert await status(database) == {"delivered": len(KEYS)}
                assert await linked(database) == sorted(ITEMS)
                assert await deliver(database, address, name, LATER) == 0
            times = Counter(told[name])
            assert set(times) == KEYS, "each came, under its key"
            assert max(times.values()) <= 2
            assert sum(times.values()) <= len(KEYS) + 1, "only the one that was going out"
            repeated += sum(times.values()) - len(KEYS)
        assert repeated, "some kill came between an answer and its note"
