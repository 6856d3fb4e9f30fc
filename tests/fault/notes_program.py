"""Look at a folder of notes, or forget one, and die before a given statement; once for each there is.

`python notes_program.py scan|forget DIRECTORY` makes `DIRECTORY/<n>` for n = 1, 2, …: each a copy of the
same workspace and memory, left by a process that was killed before its n-th statement. It prints each n,
and `done` when a process came to its end.
"""

import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memory.intents.builders import Happening, intent_from_memory_injected
from memory.notes.index import NoteIndex, Scanned
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.notes import SqliteNoteStore
from policies.secrets import mask_secrets
from tests.support.episodes import AT, open_memory, recorder_on
from tests.support.killing import KillPoints, kill_at_each

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


WORK: Mapping[str, Callable[[Path, Database], Awaitable[object]]] = {
    "scan": scan,
    "forget": forget,
}
PREPARE = {"scan": prepare, "forget": prepare_scanned}


async def work_until(what: str, directory: Path, points: KillPoints) -> None:
    """Do it, and be killed before a statement of the writer's."""
    async with open_memory(directory) as database:
        await database.write(points.watch)
        await WORK[what](directory, database)


if __name__ == "__main__":
    task = sys.argv[1]
    kill_at_each(Path(sys.argv[2]), PREPARE[task], partial(work_until, task))
