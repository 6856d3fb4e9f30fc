"""The process crashes before each statement of a note's indexing: the next look makes it whole."""

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from memory.intents.builders import Happening, intent_from_memory_injected
from memory.notes.index import NoteIndex, Scanned
from memory.notes.store import SqlNoteStore
from memory.stores.sqlite.database import Database
from policies.secrets import mask_secrets
from tests.support.crash_images import at_points, crashed_everywhere, texts
from tests.support.episodes import AT, recorder_on

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
State = dict[str, list[tuple[object, ...]]]
SAME_DATE = {"kept.md"}
FORGOTTEN = "changed.md"
STATE = {
    "items": "SELECT id, title, body, revision FROM items ORDER BY id",
    "files": "SELECT name, mtime_ns, size, digest, item_ids FROM note_files ORDER BY name",
    "told": "SELECT key, owner_id, turn_id, text, payload FROM intents ORDER BY seq",
    "purge": "SELECT asked FROM word_purge",
    "outbox": "SELECT idempotency_key, status FROM outbox ORDER BY idempotency_key",
}
pytestmark = pytest.mark.fault


def folder_of(database: Database) -> Path:
    return database.path.parent / "workspace" / "memory"


def index_on(database: Database) -> NoteIndex:
    """Index the notes of the workspace beside a database."""
    recording = recorder_on(database).recording
    store = SqlNoteStore(database, deliver_to=BACKENDS, recording=recording, now=lambda: AT)
    return NoteIndex(folder_of(database).parent, store, mask_secrets)


def write_blocking(folder: Path, files: Mapping[str, str], at_s: int) -> None:
    """Make the folder hold just these files."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.name not in files:
            path.unlink()
    for name, text in files.items():
        path = folder / name
        if not (path.exists() and name in SAME_DATE):
            path.write_text(text, encoding="utf-8")
            os.utime(path, (at_s, at_s))


async def change(database: Database) -> None:
    """Make a memory that knows the notes as they were, everything delivered; then they change."""
    write_blocking(folder_of(database), BEFORE, 1_700_000_000)
    await scan(database)
    await database.write(lambda writer: writer.execute("UPDATE outbox SET status='delivered'"))
    write_blocking(folder_of(database), AFTER, 1_800_000_000)


async def scan(database: Database) -> Scanned:
    """Look what has changed."""
    return await index_on(database).scan()


async def show(database: Database) -> None:
    """Record that a turn was shown a note."""
    ids = await texts(database, "SELECT id FROM items WHERE title = 'One'")
    shown = Happening(owner_id="bob", occurred_at=AT, turn_id="trn_1")
    injected = intent_from_memory_injected(shown, ids=ids, titles=["One"])
    await recorder_on(database).record_intent(injected)


async def forget(database: Database) -> bool:
    """Forget the note with the most items, by one of them."""
    row = await database.row("SELECT id FROM items WHERE title = 'Three'")
    return row is not None and await index_on(database).forget_note(row["id"], "ann")


async def state_of(database: Database) -> State:
    return {name: [tuple(row) for row in await database.rows(sql)] for name, sql in STATE.items()}


async def check_whole(database: Database) -> set[str]:
    """Whatever is there is there with all that belongs to it; returns the files that are indexed."""
    items = await texts(database, "SELECT id FROM items ORDER BY id")
    of_files = "SELECT one.value FROM note_files, json_each(item_ids) AS one ORDER BY 1"
    assert await texts(database, of_files) == items
    puts = await texts(database, "SELECT item_id FROM outbox WHERE operation = 'put'")
    assert Counter(puts) == Counter(dict.fromkeys(items, len(BACKENDS)))
    forgets = await texts(database, "SELECT item_id FROM outbox WHERE operation = 'forget'")
    assert set(Counter(forgets).values()) <= {len(BACKENDS)}
    assert not set(forgets) & set(items)
    names = await texts(database, "SELECT name FROM note_files")
    return {name.removeprefix("memory/") for name in names}


@at_points
async def test_a_kill_between_any_two_statements_leaves_each_file_as_it_was_or_as_it_is(
    tmp_path: Path, every: int
) -> None:
    async def check(database: Database) -> tuple[int, State]:
        assert await check_whole(database) <= set(BEFORE) | set(AFTER)
        scanned = await scan(database)
        assert await check_whole(database) == set(AFTER)
        state = await state_of(database)
        assert await scan(database) == Scanned()
        return scanned.indexed + scanned.removed, state

    found = await crashed_everywhere(tmp_path, [change, scan], check, every=every, fewest=20)
    seen = [changes for changes, _ in found]
    assert all(state == found[-1][1] for _, state in found), "a crash leaves no trace in the end"
    assert seen == sorted(seen, reverse=True), "what was done is not done again"
    assert set(seen) == set(range(CHANGES.indexed + CHANGES.removed + 1))


@at_points
async def test_a_kill_in_the_middle_of_forgetting_a_note_brings_nothing_of_it_back(
    tmp_path: Path, every: int
) -> None:
    states: list[State] = []

    async def check(database: Database) -> tuple[bool, bool]:
        is_file_gone = not (folder_of(database) / FORGOTTEN).exists()
        files = await check_whole(database)
        assert set(AFTER) - {FORGOTTEN} <= files <= set(AFTER)
        await scan(database)
        assert await forget(database) is not is_file_gone, "who asks again gets it done"
        assert await check_whole(database) == set(AFTER) - {FORGOTTEN}
        states.append(await state_of(database))
        return is_file_gone, FORGOTTEN not in files

    steps = [change, scan, show, forget]
    outcomes = await crashed_everywhere(tmp_path, steps, check, every=every, fewest=7)
    expected = states[-1]
    assert expected["told"] == [
        ("memory.injected", "bob", "trn_1", None, None),
        ("memory.forgotten", "ann", None, *expected["told"][1][3:]),
    ]
    assert expected["purge"]
    assert all(state == expected for state in states)
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {(False, False), (True, False), (True, True)}
