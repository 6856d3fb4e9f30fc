"""The index follows the folder: what changed is read, nothing else, and what is gone is gone everywhere."""

import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from memory.background import NoOthers
from memory.intents.masking import Mask
from memory.items.scope import WORKSPACE_OWNER
from memory.notes import index as index_module
from memory.notes.folder import NoteFile, NoteText, read_note_blocking
from memory.notes.index import NoteIndex, Scanned
from policies.secrets import mask_secrets
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


async def test_the_first_look_reads_everything_and_has_it_delivered_and_the_next_does_nothing(
    notes: Indexed, reads: list[str]
) -> None:
    assert await notes.index.scan() == Scanned(indexed=3)
    before = await written(notes)
    assert await notes.index.scan() == Scanned()
    assert await written(notes) == before
    assert sorted(reads) == sorted(NOTES)
    assert sorted((await notes.names()).values()) == ["Ops", "Where", "Who", "tea", "部署"]
    assert await notes.deliveries() == Counter(("put", item_id) for item_id in await notes.ids())
    assert len(notes.changes) == 1
    await notes.check_whole()


def write_keeping_date(notes: Indexed, content: str, *, earlier_ns: int) -> None:
    path = notes.workspace / "memory" / "tea.yaml"
    at_ns = path.stat().st_mtime_ns - earlier_ns
    path.write_text(content)
    os.utime(path, ns=(at_ns, at_ns))


def remove(notes: Indexed) -> None:
    (notes.workspace / "memory" / "zh" / "部署.md").unlink()


def rename(notes: Indexed) -> None:
    memory = notes.workspace / "memory"
    (memory / "tea.yaml").rename(memory / "green-tea.yaml")


MATCHA = partial(write_keeping_date, content="tea: matcha", earlier_ns=0)
BLACK = partial(write_keeping_date, content="tea: black", earlier_ns=1)
TOUCH = partial(change, name="tea.yaml", content=NOTES["tea.yaml"])
NO_WHO = str(NOTES["ops.md"]).replace("# Who\n\nBob.\n\n", "")
DROP = partial(change, name="ops.md", content=NO_WHO)
MOVED = partial(change, name="ops.md", content=str(NOTES["ops.md"]).replace("Berlin", "Paris"))
RENAMED = Scanned(indexed=1, removed=1)


@pytest.mark.parametrize(
    ("act", "scanned_as", "read", "waiting"),
    [
        (MATCHA, Scanned(indexed=1), ["tea.yaml"], ["put tea"]),
        (BLACK, Scanned(indexed=1), ["tea.yaml"], ["put tea"]),
        (TOUCH, Scanned(), ["tea.yaml"], []),
        (DROP, Scanned(indexed=1), ["ops.md"], ["forget Who"]),
        (MOVED, Scanned(indexed=1), ["ops.md"], ["put Where"]),
        (remove, Scanned(removed=1), [], ["forget 部署"]),
        (rename, RENAMED, ["green-tea.yaml"], ["forget tea", "put green-tea"]),
    ],
    ids=[
        "same date",
        "same size",
        "touched",
        "section dropped",
        "one section",
        "removed",
        "renamed",
    ],
)
async def test_what_changed_is_read_delivered_and_forgotten_and_nothing_else(
    scanned: Indexed,
    reads: list[str],
    act: Callable[[Indexed], None],
    scanned_as: Scanned,
    read: list[str],
    waiting: list[str],
) -> None:
    names = await scanned.names()
    act(scanned)
    assert await scanned.index.scan() == scanned_as
    assert await scanned.index.scan() == Scanned(), "the date was noted"
    assert reads == read
    names |= await scanned.names()
    due = [f"{what} {names[name]}" for what, name in (await scanned.deliveries()).elements()]
    assert sorted(due) == waiting
    assert len(scanned.changes) == (1 if act is TOUCH else 2)
    await scanned.check_whole()


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
    (row,) = await scanned.database.rows("SELECT revision FROM items WHERE id = ?", (item_id,))
    assert row["revision"] == 2, "it is new after it was gone, and changed once"


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


async def test_what_is_saved_while_many_notes_are_read_comes_before_the_rest_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first look at tens of thousands of sections takes minutes."""
    monkeypatch.setattr(index_module, "_LOOK_AGAIN_AFTER", 4)
    files: dict[str, str | bytes] = {f"n{n}.md": "# A\n\na\n\n# B\n\nb\n" for n in range(9)}
    read: list[str] = []

    async with indexing(tmp_path, files) as notes:

        def reading(workspace: Path, file: NoteFile, mask: Mask) -> NoteText | None:
            if not read:
                change(notes, "new.md", "just saved")
            read.append(file.name.removeprefix("memory/"))
            return read_note_blocking(workspace, file, mask)

        monkeypatch.setattr(index_module, "read_note_blocking", reading)
        assert await notes.index.scan() == Scanned(indexed=10)
    assert read[:3] == ["n8.md", "n7.md", "new.md"], "the latest first, two sections in each"
    assert sorted(read) == sorted({*files, "new.md"})
    assert len(notes.changes) == 5, "each part is delivered at once"


async def test_a_note_that_could_not_be_read_is_tried_again_while_nothing_else_changes(
    scanned: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(scanned, "tea.yaml", "tea: oolong")
    with monkeypatch.context() as locked:
        locked.setattr(index_module, "read_note_blocking", lambda *_: None)
        assert await scanned.index.scan() == Scanned(removed=1)
    assert await scanned.index.scan() == Scanned(indexed=1)


class OneByOne(NoOthers):
    """The duties of two servers of one process."""

    def __init__(self) -> None:
        self._lock = anyio.Lock()

    @asynccontextmanager
    async def alone(self, what: str) -> AsyncIterator[None]:
        assert what == f"notes of {WORKSPACE_OWNER}"
        async with self._lock:
            yield


async def test_a_note_that_another_server_forgets_while_it_is_read_does_not_come_back(
    scanned: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(scanned, "tea.yaml", "tea: with milk")
    here, there = [
        NoteIndex(scanned.workspace, scanned.store, mask_secrets, duties=duties)
        for duties in [OneByOne()] * 2
    ]
    writing, is_forgotten, put = anyio.Event(), anyio.Event(), scanned.store.put

    async def put_late(*given: Any) -> None:
        writing.set()
        with anyio.move_on_after(0.3):
            await is_forgotten.wait()
        await put(*given)

    monkeypatch.setattr(scanned.store, "put", put_late)
    (item_id,) = [key for key, name in (await scanned.names()).items() if name == "tea"]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(here.scan)
        await writing.wait()
        await there.forget_note(item_id, WORKSPACE_OWNER)
        is_forgotten.set()
    assert "tea.yaml" not in await scanned.files()
    await scanned.check_whole()
