"""The process is killed before each statement of remembering: nothing is lost, doubled or half there."""

from collections import Counter
from pathlib import Path

import pytest

from memory.stores.sqlite.database import Database
from tests.fault.memory_program import COMMANDS, forget, remember
from tests.support.episodes import open_memory
from tests.support.killing import at_points, killed_everywhere

SCRIPT = Path(__file__).with_name("memory_program.py")
EPISODES = 3
"""Four turns, of which two say the same."""
MANY = 20
MANY_TO_FORGET = 4
pytestmark = pytest.mark.fault


async def texts(database: Database, sql: str) -> list[str]:
    return [str(row[0]) for row in await database.rows(sql)]


async def check_whole(database: Database) -> int:
    """Whatever is there is there with all that belongs to it; returns how many turns are marked."""
    assert await texts(database, "PRAGMA integrity_check") == ["ok"]
    assert await database.rows("PRAGMA foreign_key_check") == []
    episodes = await texts(database, "SELECT episode_id FROM episodes ORDER BY episode_id")
    assert await texts(database, "SELECT id FROM items ORDER BY id") == episodes
    words = await texts(database, "SELECT rowid FROM item_words")
    assert sorted(words) == sorted(await texts(database, "SELECT seq FROM items"))
    deliveries = Counter(await texts(database, "SELECT item_id FROM outbox"))
    assert deliveries == Counter(dict.fromkeys(episodes, 2))
    marked = await texts(database, "SELECT turn_id FROM ended_turns WHERE remembered_at NOT NULL")
    for turn_id in COMMANDS:
        sources = await database.rows(
            "SELECT DISTINCT episode FROM episode_sources JOIN intents ON intents.id = intent_id"
            " WHERE turn_id = ?",
            (turn_id,),
        )
        assert len(sources) == (1 if turn_id in marked else 0)
    return len(marked)


@at_points
async def test_a_kill_between_any_two_statements_leaves_each_turn_whole_or_waiting(
    tmp_path: Path, every: int
) -> None:
    count = await killed_everywhere(SCRIPT, "remember", str(tmp_path), every=every)
    assert count > MANY, "there are that many places to be killed at"
    marked_at: list[int] = []
    for number in range(1, count + 1):
        async with open_memory(tmp_path / str(number)) as database:
            marked = await check_whole(database)
            marked_at.append(marked)
            assert await remember(database) == len(COMMANDS) - marked
            assert await check_whole(database) == len(COMMANDS)
            assert len(await texts(database, "SELECT id FROM episodes")) == EPISODES
            assert await remember(database) == 0
    assert marked_at == sorted(marked_at)
    assert set(marked_at) == set(range(len(COMMANDS) + 1))


@at_points
async def test_a_kill_in_the_middle_of_forgetting_forgets_all_or_nothing(
    tmp_path: Path, every: int
) -> None:
    count = await killed_everywhere(SCRIPT, "forget", str(tmp_path), every=every)
    assert count > MANY_TO_FORGET
    outcomes: list[bool] = []
    for number in range(1, count + 1):
        async with open_memory(tmp_path / str(number)) as database:
            forgotten = not await texts(database, "SELECT id FROM items WHERE body LIKE '%shop%'")
            told = await texts(database, "SELECT backend FROM outbox WHERE operation = 'forget'")
            assert sorted(told) == (["memu", "vector"] if forgotten else [])
            assert len(await texts(database, "SELECT id FROM episodes")) == EPISODES - forgotten
            waits = "SELECT id FROM outbox WHERE operation = 'put'"
            assert len(await texts(database, waits)) == 2 * (EPISODES - forgotten)
            left = "SELECT id FROM intents WHERE payload LIKE '%shop%' OR text LIKE '%shop%'"
            assert bool(await texts(database, left)) is not forgotten
            noted = await texts(database, "SELECT id FROM intents WHERE key = 'memory.forgotten'")
            assert len(noted) == int(forgotten)
            assert await forget(database) is not forgotten
            assert await remember(database) == 0, "it does not come back"
            outcomes.append(forgotten)
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {False, True}
