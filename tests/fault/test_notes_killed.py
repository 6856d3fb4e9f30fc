"""The process crashes before each statement of a note's indexing: the next look makes it whole."""

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

import pytest

from memory.intents.builders import Happening, intent_from_memory_injected
from memory.notes.index import NoteIndex, Scanned
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.notes import SqliteNoteStore
from policies.secrets import mask_secrets
from tests.support.crash_images import CrashImages, at_points, crashed_everywhere
from tests.support.episodes import AT, open_memory, recorder_on

BACKENDS = ("memu", "vectors")
PARAGRAPH = "A sentence that fills the room. " * 60
BEFORE = {
    "changed.md": f"# One\n\n{PARAGRAPH}\n\n# Two\n\ntwo\n\n# Three\n\nthree\n",
    "gone.md": "# Gone\n\nThis goes.\n",
    "kept.md": "# Kept\n\nThis stays.\n",
    "moved.yaml": "name: moved\n",
    "touched.md": "# Touched\n",
}
AFTER = {
    "changed.md": f"# One\n\n{PARAGRAPH} 变了\n\n# Three\n\nthree\n\n# Four\n\nfour\n",
    "elsewhere.yaml": "name: moved\n",
    "kept.md": BEFORE["kept.md"],
    "new.md": "# 新的\n\n新笔记。\n",
    "touched.md": BEFORE["touched.md"],
}
CHANGES = Scanned(indexed=3, removed=2)
SAME_DATE = {"kept.md"}


def index_on(directory: Path, database: Database) -> NoteIndex:
    """Index the notes of a directory's workspace."""
    store = SqliteNoteStore(
        database,
        deliver_to=BACKENDS,
        recording=recorder_on(database).recording,
        now=lambda: AT,
    )
    return NoteIndex(directory / "workspace", store, mask_secrets)


def write_blocking(directory: Path, files: Mapping[str, str], at_s: int) -> None:
    """Make the folder hold just these files."""
    folder = directory / "workspace" / "memory"
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.name not in files:
            path.unlink()
    for name, text in files.items():
        path = folder / name
        if not (path.exists() and name in SAME_DATE):
            path.write_text(text, encoding="utf-8")
            os.utime(path, (at_s, at_s))


async def prepare(directory: Path) -> None:
    """Make a memory that knows the notes as they were, everything delivered; then they change."""
    write_blocking(directory, BEFORE, 1_700_000_000)
    async with open_memory(directory) as database:
        await index_on(directory, database).scan()
        await database.write(lambda writer: writer.execute("UPDATE outbox SET status='delivered'"))
    write_blocking(directory, AFTER, 1_800_000_000)


async def prepare_scanned(directory: Path) -> None:
    """Make a memory that knows them as they are, and of which a turn was shown something."""
    await prepare(directory)
    async with open_memory(directory) as database:
        await index_on(directory, database).scan()
        row = await database.row("SELECT id FROM items WHERE title = 'One'")
        assert row is not None
        shown = Happening(owner_id="bob", occurred_at=AT, turn_id="trn_1")
        await recorder_on(database).record_intent(
            intent_from_memory_injected(shown, ids=[row["id"]], titles=["One"])
        )


async def scan(directory: Path, database: Database) -> Scanned:
    """Look what has changed."""
    return await index_on(directory, database).scan()


async def forget(directory: Path, database: Database) -> bool:
    """Forget the note with the most items, by one of them."""
    row = await database.row("SELECT id FROM items WHERE title = 'Three'")
    return row is not None and await index_on(directory, database).forget_note(row["id"], "ann")


async def work_until(
    work: Callable[[Path, Database], Awaitable[object]], directory: Path, points: CrashImages
) -> None:
    """Do it; each statement of the writer's is a point."""
    async with open_memory(directory) as database:
        await database.write(points.watch)
        await work(directory, database)


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
    count = await crashed_everywhere(tmp_path, prepare, partial(work_until, scan), every=every)
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
    count = await crashed_everywhere(
        tmp_path, prepare_scanned, partial(work_until, forget), every=every
    )
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
