"""The index follows the folder: what changed is read, nothing else, and what is gone is gone everywhere."""

import os
from collections import Counter
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import anyio
import pytest

from memory.intents.masking import Mask
from memory.notes import index as index_module
from memory.notes.folder import NoteFile, NoteText, read_note_blocking
from memory.notes.index import Scanned
from tests.conformance.suites.cancellation import cut_by_scope, cut_by_task
from tests.unit.memory.notes.indexed import ITEMS, NOTES, SECRET, Indexed, change, indexing


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """List the files that are read, as they are read."""
    found: list[str] = []

    def read(workspace: Path, file: NoteFile, mask: Mask) -> NoteText | None:
        found.append(file.name.removeprefix("memory/"))
        return read_note_blocking(workspace, file, mask)

    monkeypatch.setattr(index_module, "read_note_blocking", read)
    return found


@pytest.fixture
async def scanned(notes: Indexed, reads: list[str]) -> Indexed:
    """Return an index that has read everything and had it delivered."""
    await notes.index.scan()
    await notes.deliver_all()
    reads.clear()
    return notes


async def written(notes: Indexed) -> int:
    """Count the rows that were ever written through this database."""
    return await notes.database.write(lambda writer: writer.total_changes)


async def test_the_first_look_reads_everything_and_has_it_delivered(
    notes: Indexed, reads: list[str]
) -> None:
    assert await notes.index.scan() == Scanned(indexed=3)
    assert sorted(reads) == sorted(NOTES)
    assert sorted(await notes.titles()) == ["Ops", "Where", "Who", "tea", "部署"]
    assert await notes.deliveries() == Counter(("put", item_id) for item_id in await notes.ids())
    assert len(notes.changes) == 1
    await notes.check_whole()


async def test_where_nothing_changed_nothing_is_read_or_written(
    notes: Indexed, reads: list[str]
) -> None:
    await notes.index.scan()
    reads.clear()
    before = await written(notes)
    assert await notes.index.scan() == Scanned()
    assert reads == []
    assert await written(notes) == before
    assert len(notes.changes) == 1


async def test_of_what_changed_that_file_alone_is_read_and_delivered(
    scanned: Indexed, reads: list[str]
) -> None:
    change(scanned, "tea.yaml", "tea: black")
    assert await scanned.index.scan() == Scanned(indexed=1)
    assert reads == ["tea.yaml"]
    assert await scanned.items("tea.yaml") == {"tea": 2}
    assert await scanned.items("zh/部署.md") == {"部署": 1}
    assert await scanned.deliveries() == Counter([("put", await scanned.item_id("tea"))])
    assert len(scanned.changes) == 2


async def test_a_section_that_is_gone_is_forgotten_and_the_others_stay(scanned: Indexed) -> None:
    kept, gone = await scanned.item_id("Where"), await scanned.item_id("Who")
    change(scanned, "ops.md", str(NOTES["ops.md"]).replace("# Who\n\nBob.\n\n", ""))
    await scanned.index.scan()
    assert await scanned.items("ops.md") == {"Ops": 2, "Where": 2}
    waiting = await scanned.deliveries()
    assert waiting == Counter(
        [("put", await scanned.item_id("Ops")), ("put", kept), ("forget", gone)]
    )
    await scanned.check_whole()


async def test_a_file_that_is_gone_is_taken_out_without_reading(
    scanned: Indexed, reads: list[str]
) -> None:
    gone = await scanned.item_id("部署")
    (scanned.workspace / "memory" / "zh" / "部署.md").unlink()
    assert await scanned.index.scan() == Scanned(removed=1)
    assert reads == []
    assert await scanned.deliveries() == Counter([("forget", gone)])
    assert await scanned.files() == ["ops.md", "tea.yaml"]
    assert len(scanned.changes) == 2
    await scanned.check_whole()


async def test_a_renamed_file_is_another_one(scanned: Indexed, reads: list[str]) -> None:
    before = await scanned.item_id("tea")
    memory = scanned.workspace / "memory"
    (memory / "tea.yaml").rename(memory / "green-tea.yaml")
    assert await scanned.index.scan() == Scanned(indexed=1, removed=1)
    assert reads == ["green-tea.yaml"]
    after = await scanned.item_id("green-tea")
    assert await scanned.deliveries() == Counter([("put", after), ("forget", before)])
    await scanned.check_whole()


async def test_of_a_file_that_was_only_touched_the_date_is_noted_and_nothing_else(
    scanned: Indexed, reads: list[str]
) -> None:
    change(scanned, "tea.yaml", NOTES["tea.yaml"])
    assert await scanned.index.scan() == Scanned()
    assert reads == ["tea.yaml"]
    assert await scanned.items("tea.yaml") == {"tea": 1}
    assert await scanned.deliveries() == Counter()
    assert await scanned.index.scan() == Scanned()
    assert reads == ["tea.yaml"], "the date was noted"
    assert len(scanned.changes) == 1
    await scanned.check_whole()


@pytest.mark.parametrize(("content", "earlier_ns"), [("tea: matcha", 0), ("tea: black", 1)])
async def test_a_change_shows_in_the_size_or_in_the_date_alone(
    notes: Indexed, content: str, earlier_ns: int
) -> None:
    await notes.index.scan()
    path = notes.workspace / "memory" / "tea.yaml"
    at_ns = path.stat().st_mtime_ns - earlier_ns
    path.write_text(content)
    os.utime(path, ns=(at_ns, at_ns))
    assert await notes.index.scan() == Scanned(indexed=1)


async def test_a_note_that_comes_back_is_delivered_again(scanned: Indexed) -> None:
    item_id = await scanned.item_id("tea")
    path = scanned.workspace / "memory" / "tea.yaml"
    path.unlink()
    await scanned.index.scan()
    await scanned.deliver_all()
    for content in ("tea: green", "tea: black"):
        change(scanned, "tea.yaml", content)
        await scanned.index.scan()
        assert await scanned.deliveries() == Counter([("put", item_id)])
        await scanned.deliver_all()


async def test_a_note_that_cannot_be_read_is_taken_out_until_it_can(
    notes: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    await notes.index.scan()
    change(notes, "tea.yaml", "tea: black")
    with monkeypatch.context() as closed:
        closed.setattr(index_module, "read_note_blocking", lambda *_: None)
        assert await notes.index.scan() == Scanned(removed=1)
        assert await notes.files() == ["ops.md", "zh/部署.md"]
        assert await notes.index.scan() == Scanned()
    assert await notes.index.scan() == Scanned(indexed=1)
    await notes.check_whole()


async def test_secrets_are_nowhere_in_the_index(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "a.md": f"# {SECRET}\n\nkey {SECRET}",
        f"{SECRET}.md": "by its name",
        f"{SECRET}/b.md": "by its folder",
    }
    async with indexing(tmp_path, files) as notes:
        for _ in range(2):
            await notes.index.scan()
        assert await notes.files() == ["a.md"]
        dumped = await notes.database.write(lambda writer: "\n".join(writer.iterdump()))
    assert "[masked]" in dumped
    assert SECRET not in dumped
    assert "by its" not in dumped


async def test_looks_at_the_same_time_take_turns(tmp_path: Path, reads: list[str]) -> None:
    async with indexing(tmp_path) as notes, anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(notes.index.scan)
    assert sorted(reads) == sorted(NOTES)


async def test_a_look_that_is_cancelled_at_any_point_is_made_good_by_the_next(
    tmp_path: Path,
) -> None:
    for step in range(1, 500):
        cut = cut_by_scope if step % 2 else cut_by_task
        root = tmp_path / str(step)
        root.mkdir()
        async with indexing(root) as notes:
            was_cut = await cut(_scan(notes), step)
            await notes.check_whole()
            await notes.index.scan()
            await notes.check_whole()
            assert len(await notes.ids()) == ITEMS
            assert await notes.deliveries() == Counter(
                ("put", item_id) for item_id in await notes.ids()
            )
        if not was_cut:
            break
    assert step > 8, "it waits in that many places"


def _scan(notes: Indexed) -> Coroutine[Any, Any, Scanned]:
    return notes.index.scan()
