"""The index of notes over time: repeated scans, and forgetting."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import anyio
import pytest

from memory.errors import StoreConflict, StoreUnavailable
from memory.intents.builders import Happening, intent_from_memory_injected
from memory.intents.chronicle import SqlChronicle
from memory.notes import index as index_module
from memory.notes.index import Scanned, rest_after
from memory.notes.store import IndexedNote, SqlNoteStore
from tests.support.episodes import AT, recorder_on
from tests.unit.memory.notes.indexed import ITEMS, Indexed, change, indexing


@asynccontextmanager
async def running(notes: Indexed) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(notes.index.run)
        yield
        tasks.cancel_scope.cancel()


async def until_there_are(notes: Indexed, items: int) -> None:
    with anyio.fail_after(30):
        while len(await notes.ids()) != items:
            await anyio.lowlevel.checkpoint()


def watched(on_look: Callable[[], None]) -> Callable[[SqlNoteStore], SqlNoteStore]:
    """Make a store call `on_look` whenever it is asked what is indexed."""

    def around(store: SqlNoteStore) -> SqlNoteStore:
        indexed = store.indexed

        async def look() -> Mapping[str, IndexedNote]:
            on_look()
            return await indexed()

        store.indexed = look  # type: ignore[method-assign]
        return store

    return around


async def test_it_looks_at_once_and_whenever_it_is_woken(notes: Indexed) -> None:
    async with running(notes):
        await until_there_are(notes, ITEMS)
        for number in range(1, 4):
            change(notes, f"new-{number}.md", "x")
            notes.index.wake()
            await until_there_are(notes, ITEMS + number)


async def test_between_two_looks_is_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "rest_after", lambda _: 1_000_000)
    looks: list[None] = []

    around = watched(lambda: looks.append(None))
    async with indexing(tmp_path, around=around) as notes, running(notes):
        await until_there_are(notes, ITEMS)
        for _ in range(200):
            await notes.ids()
    assert len(looks) == 1


def test_a_folder_is_looked_at_every_two_seconds_and_a_slow_one_half_the_time() -> None:
    assert rest_after(0.001) == rest_after(1.0) == 2.0
    assert rest_after(30.0) == 30.0


@pytest.mark.parametrize("error", [StoreUnavailable("full"), StoreConflict("no"), OverflowError()])
async def test_a_look_that_fails_ends_nothing_and_the_next_one_makes_it_good(
    tmp_path: Path, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    errors, failed = [error], anyio.Event()

    def fail_once() -> None:
        if errors:
            failed.set()
            raise errors.pop()

    async with indexing(tmp_path, around=watched(fail_once)) as notes, running(notes):
        with anyio.fail_after(30):
            await failed.wait()
        notes.index.wake()
        await until_there_are(notes, ITEMS)
    assert "notes_not_indexed" in caplog.text


@pytest.mark.parametrize("is_gone_already", [False, True])
async def test_a_note_is_forgotten_once_with_its_file_and_does_not_come_back(
    notes: Indexed, *, is_gone_already: bool
) -> None:
    await notes.index.scan()
    await notes.deliver_all()
    gone = [await notes.item_id(title) for title in ("Ops", "Who", "Where")]
    file, told = notes.workspace / "memory" / "ops.md", list[bool]()
    if is_gone_already:
        file.unlink()

    async def forget() -> None:
        told.append(await notes.index.forget_note(gone[1], "ann"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(forget)
        tasks.start_soon(forget)
    assert told == [True, False]
    assert not file.exists()
    assert sorted((await notes.names()).values()) == ["tea", "部署"]
    assert await notes.deliveries() == Counter(("forget", name) for name in gone)
    assert await notes.index.scan() == Scanned()
    await notes.check_whole()


async def test_a_note_whose_file_cannot_be_removed_is_not_said_to_be_forgotten(
    notes: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    await notes.index.scan()
    item_id = await notes.item_id("tea")
    monkeypatch.setattr(index_module, "remove_note_blocking", lambda *_: False)
    with pytest.raises(StoreUnavailable, match="cannot be removed"):
        await notes.index.forget_note(item_id, "ann")
    assert len(await notes.ids()) == ITEMS


async def show(
    notes: Indexed, turn_id: str, owner_id: str, item_ids: list[str], at: datetime = AT
) -> None:
    """Have a turn of somebody's be shown items."""
    where = Happening(owner_id=owner_id, occurred_at=at, turn_id=turn_id)
    titles = [f"title of {item_id}" for item_id in item_ids]
    await recorder_on(notes.database).record_intent(
        intent_from_memory_injected(where, ids=item_ids, titles=titles)
    )


async def told(notes: Indexed, owner_id: str) -> dict[str, bool]:
    """Return, by key and turn, whether the chronicle has forgotten an owner's intents."""
    page = await SqlChronicle(notes.database).page(owner_id, limit=50)
    return {f"{record.key} {record.turn_id}": record.forgotten for record in page.records}


async def test_what_tells_of_any_of_its_sections_is_forgotten_whoever_was_shown_it(
    notes: Indexed,
) -> None:
    await notes.index.scan()
    ops, who, tea = [await notes.item_id(title) for title in ("Ops", "Who", "tea")]
    await show(notes, "trn_1", "ann", [ops])
    await show(notes, "trn_2", "bob", [tea, who])
    await show(notes, "trn_3", "bob", [tea])
    assert await notes.index.forget_note(ops, "ann")
    assert await told(notes, "ann") == {
        "memory.forgotten None": False,
        "memory.injected trn_1": True,
    }
    assert await told(notes, "bob") == {
        "memory.injected trn_2": True,
        "memory.injected trn_3": False,
    }
    purge = await notes.database.row("SELECT asked FROM word_purge")
    assert purge is not None, "its words are still in the index's file"


async def test_what_is_recorded_of_it_later_is_forgotten_until_the_note_is_written_anew(
    notes: Indexed,
) -> None:
    await notes.index.scan()
    tea = await notes.item_id("tea")
    assert await notes.index.forget_note(tea, "ann")
    await show(notes, "trn_1", "bob", [tea])
    change(notes, "tea.yaml", "tea: black")
    await notes.index.scan()
    await show(notes, "trn_3", "bob", [tea])
    await show(notes, "trn_2", "bob", [tea], at=AT + timedelta(hours=1))
    assert await told(notes, "bob") == {
        "memory.injected trn_1": True,
        "memory.injected trn_2": False,
        "memory.injected trn_3": True,
    }, "what was shown before that was shown as it was"
