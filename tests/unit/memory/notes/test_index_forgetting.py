"""A note that is forgotten is gone from the folder, the index and the backends."""

from collections import Counter
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from memory.errors import StoreUnavailable
from memory.intents.builders import Happening, intent_from_memory_injected
from memory.notes import index as index_module
from memory.notes.index import Scanned
from memory.stores.sqlite.chronicle import SqliteChronicle
from tests.support.episodes import AT, recorder_on
from tests.unit.memory.notes.indexed import ITEMS, Indexed, change, indexing


async def test_a_forgotten_note_is_gone_with_its_file_and_does_not_come_back(
    tmp_path: Path,
) -> None:
    async with indexing(tmp_path) as notes:
        await notes.index.scan()
        await notes.deliver_all()
        gone = [await notes.item_id(title) for title in ("Ops", "Who", "Where")]
        assert await notes.index.forget_note(gone[1], "ann")
        assert not (notes.workspace / "memory" / "ops.md").exists()
        assert sorted(await notes.titles()) == ["tea", "部署"]
        assert await notes.deliveries() == Counter(("forget", name) for name in gone)
        assert await notes.index.scan() == Scanned()
        assert not await notes.index.forget_note(gone[1], "ann"), "there is none any more"
        await notes.check_whole()


async def test_a_note_whose_file_is_gone_already_is_forgotten(tmp_path: Path) -> None:
    async with indexing(tmp_path) as notes:
        await notes.index.scan()
        (notes.workspace / "memory" / "tea.yaml").unlink()
        assert await notes.index.forget_note(await notes.item_id("tea"), "ann")
        assert "tea" not in await notes.titles()


async def test_a_note_whose_file_cannot_be_removed_is_not_said_to_be_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with indexing(tmp_path) as notes:
        await notes.index.scan()
        item_id = await notes.item_id("tea")
        monkeypatch.setattr(index_module, "remove_note_blocking", lambda *_: False)
        with pytest.raises(StoreUnavailable, match="cannot be removed"):
            await notes.index.forget_note(item_id, "ann")
        assert len(await notes.ids()) == ITEMS


async def test_who_forgets_a_note_a_moment_later_is_told_that_there_is_none(
    tmp_path: Path,
) -> None:
    told: list[bool] = []
    async with indexing(tmp_path) as notes:
        await notes.index.scan()
        item_id = await notes.item_id("tea")

        async def forget() -> None:
            told.append(await notes.index.forget_note(item_id, "ann"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(forget)
            tasks.start_soon(forget)
    assert told == [True, False]


async def show(notes: Indexed, turn_id: str, owner_id: str, item_ids: list[str]) -> None:
    """Have a turn of somebody's be shown items."""
    where = Happening(owner_id=owner_id, occurred_at=AT, turn_id=turn_id)
    titles = [f"title of {item_id}" for item_id in item_ids]
    await recorder_on(notes.database).record_intent(
        intent_from_memory_injected(where, ids=item_ids, titles=titles)
    )


async def told(notes: Indexed, owner_id: str) -> dict[str, bool]:
    """Return, by key and turn, whether the chronicle has forgotten an owner's intents."""
    page = await SqliteChronicle(notes.database).page(owner_id, limit=50)
    return {f"{record.key} {record.turn_id}": record.forgotten for record in page.records}


async def test_what_tells_of_any_of_its_sections_is_forgotten_whoever_was_shown_it(
    tmp_path: Path,
) -> None:
    async with indexing(tmp_path) as notes:
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
    tmp_path: Path,
) -> None:
    async with indexing(tmp_path) as notes:
        await notes.index.scan()
        tea = await notes.item_id("tea")
        assert await notes.index.forget_note(tea, "ann")
        await show(notes, "trn_1", "bob", [tea])
        change(notes, "tea.yaml", "tea: black")
        await notes.index.scan()
        await show(notes, "trn_3", "bob", [tea])
        later = Happening(owner_id="bob", occurred_at=AT + timedelta(hours=1), turn_id="trn_2")
        await recorder_on(notes.database).record_intent(
            intent_from_memory_injected(later, ids=[tea], titles=["tea"])
        )
        assert await told(notes, "bob") == {
            "memory.injected trn_1": True,
            "memory.injected trn_2": False,
            "memory.injected trn_3": True,
        }, "what was shown before that was shown as it was"
