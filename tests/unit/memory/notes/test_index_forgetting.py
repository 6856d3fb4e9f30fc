"""A note that is forgotten is gone from the folder, the index and the backends."""

from collections import Counter
from pathlib import Path

import anyio
import pytest

from memory.errors import StoreUnavailable
from memory.notes import index as index_module
from memory.notes.index import Scanned
from tests.unit.memory.notes.indexed import ITEMS, change, indexing


async def test_a_forgotten_note_is_gone_with_its_file_and_does_not_come_back(
    tmp_path: Path,
) -> None:
    async with indexing(tmp_path) as notes:
        await notes.index.scan()
        await notes.deliver_all()
        gone = [await notes.item_id(one) for one in ("Ops", "Who", "Where")]
        assert await notes.index.forget_note(gone[1])
        assert not (notes.workspace / "memory" / "ops.md").exists()
        assert sorted(await notes.titles()) == ["tea", "部署"]
        assert await notes.deliveries() == Counter(("forget", one) for one in gone)
        assert await notes.index.scan() == Scanned()
        assert not await notes.index.forget_note(gone[1]), "there is none any more"
        await notes.check_whole()


async def test_what_is_no_notes_item_is_not_forgotten_here(tmp_path: Path) -> None:
    async with indexing(tmp_path) as notes:
        await notes.index.scan()
        for unknown in ("", "epi_1", "memory/ops.md", "not_%"):
            assert not await notes.index.forget_note(unknown)
        assert len(await notes.ids()) == ITEMS
        assert (notes.workspace / "memory" / "ops.md").exists()


async def test_a_note_whose_file_is_gone_already_is_forgotten(tmp_path: Path) -> None:
    async with indexing(tmp_path) as notes:
        await notes.index.scan()
        (notes.workspace / "memory" / "tea.yaml").unlink()
        assert await notes.index.forget_note(await notes.item_id("tea"))
        assert "tea" not in await notes.titles()


async def test_a_note_whose_file_cannot_be_removed_is_not_said_to_be_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with indexing(tmp_path) as notes:
        await notes.index.scan()
        item_id = await notes.item_id("tea")
        monkeypatch.setattr(index_module, "remove_note_blocking", lambda *_: False)
        with pytest.raises(StoreUnavailable, match="cannot be removed"):
            await notes.index.forget_note(item_id)
        assert len(await notes.ids()) == ITEMS


async def test_a_note_is_not_forgotten_while_a_look_that_read_it_goes_on(tmp_path: Path) -> None:
    async with indexing(tmp_path) as notes:
        await notes.index.scan()
        item_id = await notes.item_id("tea")
        change(notes, "tea.yaml", "tea: black")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(notes.index.scan)
            await anyio.lowlevel.checkpoint()
            tasks.start_soon(notes.index.forget_note, item_id)
        assert "tea" not in await notes.titles()
        await notes.check_whole()


async def test_who_forgets_a_note_a_moment_later_is_told_that_there_is_none(
    tmp_path: Path,
) -> None:
    told: list[bool] = []
    async with indexing(tmp_path) as notes:
        await notes.index.scan()
        item_id = await notes.item_id("tea")

        async def forget() -> None:
            told.append(await notes.index.forget_note(item_id))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(forget)
            tasks.start_soon(forget)
    assert told == [True, False]
