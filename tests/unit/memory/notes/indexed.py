"""Workspaces with a `memory/` folder, and an index of their notes on a real database."""

import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from memory.intents.masking import Mask
from memory.notes.index import NoteIndex
from memory.notes.store import SqlNoteStore
from memory.stores.sqlite.database import Database
from policies.secrets import mask_secrets
from tests.support.episodes import AT, open_memory, recorder_on

BACKENDS = ["vectors", "memu"]
LONG = "A sentence that fills the room. " * 60
NOTES: dict[str, str | bytes] = {
    "ops.md": f"# Ops\n\n{LONG}\n\n# Who\n\nBob.\n\n# Where\n\nBerlin.\n",
    "tea.yaml": "tea: green",
    "zh/部署.md": "# 部署\n\n九点。\n",
}
ITEMS = 5


@dataclass(kw_only=True)
class Indexed:
    """An index on a real database, and what can be seen of it."""

    workspace: Path
    database: Database
    store: SqlNoteStore
    index: NoteIndex
    changes: list[None] = field(default_factory=list)

    async def names(self) -> dict[str, str]:
        """Return the items' titles by id."""
        rows = await self.database.rows("SELECT id, title FROM items")
        return {row["id"]: row["title"] for row in rows}

    async def item_id(self, title: str) -> str:
        (row,) = await self.database.rows("SELECT id FROM items WHERE title = ?", (title,))
        return str(row["id"])

    async def deliveries(self) -> Counter[tuple[str, str]]:
        """Count what waits to be delivered, by its operation and item; the same for each backend."""
        found = {backend: Counter[tuple[str, str]]() for backend in BACKENDS}
        for row in await self.database.rows(
            "SELECT * FROM outbox WHERE status = 'pending' AND owner_id = '*workspace'"
        ):
            found[row["backend"]][row["operation"], row["item_id"]] += 1
        first, second = found.values()
        assert first == second
        return first

    async def deliver_all(self) -> None:
        await self.database.write(
            lambda writer: writer.execute("UPDATE outbox SET status = 'delivered'")
        )

    async def ids(self) -> list[str]:
        return [row["id"] for row in await self.database.rows("SELECT id FROM items")]

    async def files(self) -> list[str]:
        return sorted(name.removeprefix("memory/") for name in await self.store.indexed())

    async def check_whole(self) -> None:
        """Every item belongs to a file and has its words; every file's items are there."""
        listed = await self.database.rows(
            "SELECT one.value AS id FROM note_files, json_each(item_ids) AS one"
        )
        assert sorted(row["id"] for row in listed) == sorted(await self.ids())
        words = await self.database.rows("SELECT rowid AS seq FROM item_words ORDER BY 1")
        items = await self.database.rows("SELECT seq FROM items ORDER BY 1")
        assert [row["seq"] for row in words] == [row["seq"] for row in items]


@asynccontextmanager
async def indexing(
    root: Path,
    files: dict[str, str | bytes] | None = None,
    *,
    mask: Mask = mask_secrets,
    around: Callable[[SqlNoteStore], SqlNoteStore] = lambda value: value,
) -> AsyncIterator[Indexed]:
    workspace = workspace_with(root, NOTES if files is None else files)
    async with open_memory(root) as database:
        store = around(
            SqlNoteStore(
                database,
                deliver_to=BACKENDS,
                recording=recorder_on(database).recording,
                now=lambda: AT,
            )
        )
        changes: list[None] = []
        index = NoteIndex(workspace, store, mask, on_change=lambda: changes.append(None))
        yield Indexed(
            workspace=workspace, database=database, store=store, index=index, changes=changes
        )


MOMENTS = count(1_800_000_000)


def change(index: Indexed, name: str, content: str | bytes) -> None:
    """Write a file, a moment later than whatever was written before."""
    write(index.workspace, name, content, at_s=next(MOMENTS))


SECRET = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"
NS = 1_000_000_000


def workspace_with(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Make a workspace below `root` with files in its `memory/` folder, each a second younger."""
    workspace = root / "workspace"
    workspace.mkdir(exist_ok=True)
    for number, (name, content) in enumerate(files.items()):
        write(workspace, name, content, at_s=1_700_000_000 + number)
    return workspace


def write(workspace: Path, name: str, content: str | bytes, *, at_s: int | None = None) -> Path:
    """Write a file in the `memory/` folder, changed at a moment where one is given."""
    path = workspace / "memory" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    if at_s is not None:
        os.utime(path, ns=(at_s * NS, at_s * NS))
    return path
