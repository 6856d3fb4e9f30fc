"""Where it is kept which notes are indexed: the contract, the store against it, and it against wrong ones."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from memory.items.item import Item
from memory.items.scope import WORKSPACE_OWNER, Scope
from memory.notes.folder import NoteFile
from memory.notes.store import IndexedNote, SqlNoteStore
from tests.conformance.suites.opened import OpenedSuite, run_test
from tests.support.episodes import AT, open_memory_in, recorder_on
from tests.support.postgres import empty_schema_blocking
from tests.support.recall import make_item

NAMES = ["memory/ops.md", "memory/部署/a b.yaml", "memory/%_'\";--.md"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenNotes:
    """An open store, and which items are there because of it."""

    store: SqlNoteStore
    item_ids: Callable[[], Awaitable[set[str]]]


Opening = Callable[[], AbstractAsyncContextManager[OpenNotes]]


def item(item_id: str) -> Item:
    return make_item(item_id, "text 一行", scope=Scope(owner_id=WORKSPACE_OWNER))


def note(name: str = NAMES[0], *, mtime_ns: int = 1, digest: str = "d1") -> IndexedNote:
    return IndexedNote(file=NoteFile(name, mtime_ns, 10), digest=digest)


class NoteStoreSuite(OpenedSuite):
    """One test a contract of `SqlNoteStore`."""

    async def test_what_is_put_is_indexed_with_its_items(self, opened: OpenNotes) -> None:
        assert dict(await opened.store.indexed()) == {}
        for place, name in enumerate(NAMES):
            await opened.store.put(note(name), [item(f"{place}a"), item(f"{place}b")])
        assert dict(await opened.store.indexed()) == {entry: note(entry) for entry in NAMES}
        for place, name in enumerate(NAMES):
            assert await opened.store.file_of(f"{place}b") == name
        assert len(await opened.item_ids()) == 2 * len(NAMES)

    async def test_it_is_still_there_after_a_restart(self, opens: Opening) -> None:
        async with opens() as opened:
            await opened.store.put(note(), [item("a")])
        async with opens() as opened:
            assert dict(await opened.store.indexed()) == {NAMES[0]: note()}
            assert await opened.store.file_of("a") == NAMES[0]

    async def test_put_again_its_items_are_the_new_ones_alone(self, opened: OpenNotes) -> None:
        await opened.store.put(note(), [item("a"), item("b")])
        await opened.store.put(note(NAMES[1]), [item("c")])
        await opened.store.put(note(digest="d2"), [item("b"), item("d")])
        assert await opened.item_ids() == {"b", "c", "d"}
        assert await opened.store.file_of("a") is None
        assert await opened.store.file_of("d") == NAMES[0]
        assert (await opened.store.indexed())[NAMES[0]].digest == "d2"

    async def test_of_another_date_its_items_stay(self, opened: OpenNotes) -> None:
        await opened.store.put(note(), [item("a")])
        await opened.store.put(note(mtime_ns=2**63 - 1), None)
        assert (await opened.store.indexed())[NAMES[0]].file.mtime_ns == 2**63 - 1
        assert await opened.item_ids() == {"a"}
        assert await opened.store.file_of("a") == NAMES[0]

    async def test_a_file_may_have_no_items(self, opened: OpenNotes) -> None:
        await opened.store.put(note(), [item("a")])
        await opened.store.put(note(), [])
        assert dict(await opened.store.indexed()) == {NAMES[0]: note()}
        assert await opened.item_ids() == set()

    async def test_a_file_is_removed_with_its_items_and_no_other_is(
        self, opened: OpenNotes
    ) -> None:
        for place, name in enumerate(NAMES):
            await opened.store.put(note(name), [item(str(place))])
        await opened.store.remove(NAMES[2])
        assert set(await opened.store.indexed()) == set(NAMES[:2])
        assert await opened.item_ids() == {"0", "1"}
        assert await opened.store.file_of("2") is None

    async def test_to_remove_what_is_not_there_is_fine(self, opened: OpenNotes) -> None:
        await opened.store.put(note(), [item("a")])
        await opened.store.remove("memory/never.md")
        await opened.store.remove("memory/%")
        assert await opened.item_ids() == {"a"}

    async def test_what_was_removed_can_come_back(self, opened: OpenNotes) -> None:
        for _ in range(3):
            await opened.store.put(note(), [item("a")])
            assert await opened.item_ids() == {"a"}
            await opened.store.remove(NAMES[0])
            assert await opened.item_ids() == set()

    async def test_an_item_of_no_file_is_no_files(self, opened: OpenNotes) -> None:
        await opened.store.put(note(), [item("a")])
        for unknown in ("", "b", "%", '["a"]'):
            assert await opened.store.file_of(unknown) is None


class TestSqlite(NoteStoreSuite):
    @pytest.fixture
    def opens(self, tmp_path: Path) -> Opening:
        return opening(tmp_path)


class TestPostgresNotes(NoteStoreSuite):
    @pytest.fixture
    def opens(self) -> Iterator[Opening]:
        with empty_schema_blocking("memory") as schema:
            yield opening(schema)


def opening(place: Path | str, make: type[SqlNoteStore] = SqlNoteStore) -> Opening:
    @asynccontextmanager
    async def opens() -> AsyncIterator[OpenNotes]:
        async with open_memory_in(place) as database:

            async def item_ids() -> set[str]:
                return {row["id"] for row in await database.rows("SELECT id FROM items")}

            store = make(
                database,
                deliver_to=["vectors"],
                recording=recorder_on(database).recording,
                now=lambda: AT,
            )
            yield OpenNotes(store=store, item_ids=item_ids)

    return opens


class KeepingOldItems(SqlNoteStore):
    old: Sequence[Item] = ()

    async def put(self, note: IndexedNote, items: Sequence[Item] | None) -> None:
        self.old = [*self.old, *(items or ())]
        await super().put(note, None if items is None else self.old)


class DroppingItemsWithTheDate(SqlNoteStore):
    async def put(self, note: IndexedNote, items: Sequence[Item] | None) -> None:
        await super().put(note, items or [])


class RemovingTooMuch(SqlNoteStore):
    async def remove(self, name: str) -> None:
        for indexed in {name, *await self.indexed()}:
            await super().remove(indexed)


class RemovingNothing(SqlNoteStore):
    async def remove(self, name: str) -> None:
        """Remove nothing."""


class NamingAnyFile(SqlNoteStore):
    async def file_of(self, item_id: str) -> str | None:
        return next(iter(await self.indexed()), None)


WRONG = [
    KeepingOldItems,
    DroppingItemsWithTheDate,
    RemovingTooMuch,
    RemovingNothing,
    NamingAnyFile,
]
TESTS = sorted(name for name in vars(NoteStoreSuite) if name.startswith("test_"))


def gone_with_the_process(directory: Path) -> Opening:
    starts = count()

    @asynccontextmanager
    async def opens() -> AsyncIterator[OpenNotes]:
        place = directory / f"{next(starts)}"
        place.mkdir()
        async with opening(place)() as opened:
            yield opened

    return opens


async def caught(opens: Callable[[Path], Opening], directory: Path) -> list[str]:
    """Return the tests of the suite that a store fails."""
    failed = []
    for test in TESTS:
        place = directory / test
        place.mkdir()
        try:
            await run_test(getattr(NoteStoreSuite(), test), opens(place))
        except (AssertionError, KeyError):
            failed.append(test)
    return failed


@pytest.mark.parametrize("wrong", WRONG, ids=lambda name: name.__name__)
async def test_the_suite_catches_a_wrong_store(wrong: type[SqlNoteStore], tmp_path: Path) -> None:
    assert await caught(partial(opening, make=wrong), tmp_path)


async def test_the_suite_catches_a_store_that_is_gone_with_the_process(tmp_path: Path) -> None:
    assert await caught(gone_with_the_process, tmp_path)
