"""The process is killed before each statement of a note's indexing: the next look makes it whole."""

from collections import Counter
from pathlib import Path

import pytest

from memory.notes.index import Scanned
from memory.stores.sqlite.database import Database
from tests.fault.notes_program import AFTER, BACKENDS, BEFORE, CHANGES, forget, scan
from tests.support.episodes import open_memory
from tests.support.killing import at_points, killed_everywhere

SCRIPT = Path(__file__).with_name("notes_program.py")
MANY = 20
MANY_TO_FORGET = 7
FORGOTTEN = "changed.md"
pytestmark = pytest.mark.fault

STATE = {
    "items": "SELECT id, title, body, revision FROM items ORDER BY id",
    "files": "SELECT name, mtime_ns, size, digest, item_ids FROM note_files ORDER BY name",
    "told": "SELECT key, owner_id, turn_id, text, payload FROM intents ORDER BY seq",
    "purge": "SELECT asked FROM word_purge",
    "outbox": "SELECT idempotency_key, status FROM outbox ORDER BY idempotency_key",
}


async def texts(database: Database, sql: str) -> list[str]:
    return [str(row[0]) for row in await database.rows(sql)]


async def state_of(database: Database) -> dict[str, list[tuple[object, ...]]]:
    return {name: [tuple(row) for row in await database.rows(sql)] for name, sql in STATE.items()}


async def check_whole(database: Database) -> set[str]:
    """Whatever is there is there with all that belongs to it; returns the files that are indexed."""
    assert await texts(database, "PRAGMA integrity_check") == ["ok"]
    items = await texts(database, "SELECT id FROM items ORDER BY id")
    of_files = "SELECT one.value FROM note_files, json_each(item_ids) AS one ORDER BY 1"
    assert await texts(database, of_files) == items
    words = await texts(database, "SELECT rowid FROM item_words")
    assert sorted(words) == sorted(await texts(database, "SELECT seq FROM items"))
    puts = await texts(database, "SELECT item_id FROM outbox WHERE operation = 'put'")
    assert Counter(puts) == Counter(dict.fromkeys(items, len(BACKENDS)))
    forgets = await texts(database, "SELECT item_id FROM outbox WHERE operation = 'forget'")
    assert set(Counter(forgets).values()) <= {len(BACKENDS)}
    assert not set(forgets) & set(items)
    return {
        text.removeprefix("memory/")
        for text in await texts(database, "SELECT name FROM note_files")
    }


@at_points
async def test_a_kill_between_any_two_statements_leaves_each_file_as_it_was_or_as_it_is(
    tmp_path: Path, every: int
) -> None:
    count = await killed_everywhere(SCRIPT, "scan", str(tmp_path), every=every)
    assert count > MANY, "there are that many places to be killed at"
    async with open_memory(tmp_path / str(count)) as database:
        expected = await state_of(database)
    seen: list[int] = []
    for number in range(1, count + 1):
        directory = tmp_path / str(number)
        async with open_memory(directory) as database:
            files = await check_whole(database)
            assert files <= set(BEFORE) | set(AFTER)
            scanned = await scan(directory, database)
            assert await check_whole(database) == set(AFTER)
            assert await state_of(database) == expected
            assert await scan(directory, database) == Scanned()
        seen.append(scanned.indexed + scanned.removed)
    assert seen == sorted(seen, reverse=True), "what was done is not done again"
    assert set(seen) == set(range(CHANGES.indexed + CHANGES.removed + 1))


@at_points
async def test_a_kill_in_the_middle_of_forgetting_a_note_brings_nothing_of_it_back(
    tmp_path: Path, every: int
) -> None:
    count = await killed_everywhere(SCRIPT, "forget", str(tmp_path), every=every)
    assert count > MANY_TO_FORGET
    async with open_memory(tmp_path / str(count)) as database:
        expected = await state_of(database)
    assert expected["told"] == [
        ("memory.injected", "bob", "trn_1", None, None),
        ("memory.forgotten", "ann", None, *expected["told"][1][3:]),
    ]
    assert expected["purge"]
    outcomes: list[tuple[bool, bool]] = []
    for number in range(1, count + 1):
        directory = tmp_path / str(number)
        is_file_gone = not (directory / "workspace" / "memory" / FORGOTTEN).exists()
        async with open_memory(directory) as database:
            files = await check_whole(database)
            assert set(AFTER) - {FORGOTTEN} <= files <= set(AFTER)
            outcomes.append((is_file_gone, FORGOTTEN not in files))
            await scan(directory, database)
            is_left = not is_file_gone
            assert await forget(directory, database) == is_left, "who asks again gets it done"
            assert await check_whole(database) == set(AFTER) - {FORGOTTEN}
            assert await state_of(database) == expected
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {(False, False), (True, False), (True, True)}
