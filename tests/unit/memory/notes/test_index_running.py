"""The index looks at the folder by itself: at once, when woken, now and then, and after a failure."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from memory.errors import StoreConflict, StoreUnavailable
from memory.items import Item
from memory.notes import index as index_module
from memory.notes.index import IndexedNote, NoteStore
from tests.unit.memory.notes.indexed import ITEMS, Indexed, change, indexing


@asynccontextmanager
async def running(notes: Indexed) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        await tasks.start(notes.index.run)
        yield
        tasks.cancel_scope.cancel()


async def until_there_are(notes: Indexed, items: int) -> None:
    with anyio.fail_after(30):
        while len(await notes.ids()) != items:
            await anyio.lowlevel.checkpoint()


async def test_it_looks_at_once_and_whenever_it_is_woken(tmp_path: Path) -> None:
    async with indexing(tmp_path) as notes, running(notes):
        await until_there_are(notes, ITEMS)
        for number in range(1, 4):
            change(notes, f"new-{number}.md", "x")
            notes.index.wake()
            await until_there_are(notes, ITEMS + number)


async def test_a_slow_look_is_followed_by_a_long_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder on a slow disk is not read all the time."""
    monkeypatch.setattr(index_module, "_LOOK_EVERY_S", 0)
    monkeypatch.setattr(index_module, "_REST_FOLD", 1_000_000)
    looks: list[None] = []

    def around(store: NoteStore) -> NoteStore:
        return Watched(store, lambda: looks.append(None))

    async with indexing(tmp_path, around=around) as notes, running(notes):
        await until_there_are(notes, ITEMS)
        for _ in range(200):
            await notes.ids()
    assert len(looks) == 1


class Watched:
    """A store that tells when what is indexed is asked for."""

    def __init__(self, store: NoteStore, on_look: Callable[[], None]) -> None:
        self._store = store
        self._on_look = on_look

    async def indexed(self) -> Mapping[str, IndexedNote]:
        self._on_look()
        return await self._store.indexed()

    async def put(self, note: IndexedNote, items: Sequence[Item] | None) -> None:
        await self._store.put(note, items)

    async def remove(self, name: str) -> None:
        await self._store.remove(name)

    async def want_forgotten(self, name: str, owner_id: str) -> None:
        await self._store.want_forgotten(name, owner_id)

    async def file_of(self, item_id: str) -> str | None:
        return await self._store.file_of(item_id)


@pytest.mark.parametrize("error", [StoreUnavailable("full"), StoreConflict("no"), OverflowError()])
async def test_a_look_that_fails_ends_nothing_and_the_next_one_makes_it_good(
    tmp_path: Path, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    errors, failed = [error], anyio.Event()

    def fail_once() -> None:
        if errors:
            failed.set()
            raise errors.pop()

    def around(store: NoteStore) -> NoteStore:
        return Watched(store, fail_once)

    async with indexing(tmp_path, around=around) as notes, running(notes):
        with anyio.fail_after(30):
            await failed.wait()
        notes.index.wake()
        await until_there_are(notes, ITEMS)
    assert "notes_not_indexed" in caplog.text
