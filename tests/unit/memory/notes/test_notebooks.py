"""Notes of users who have workspaces of their own: in one memory, and each found by its user alone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from memory.embeddings.choice import EmbedderChoice
from memory.items.scope import Scope
from memory.notes.notebooks import UserNotes
from memory.recall.query import QueryPack
from memory.service.memory import Memory
from tests.support.memories import whole_memory

USERS = ("ada", "bob")
ASKED = "What is in your memory of the harbour?"


def write_note(workspace: Path, text: str, name: str = "harbour.md") -> None:
    note = workspace / "memory" / name
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(f"# Harbour\n\n{text}\n", encoding="utf-8")


@asynccontextmanager
async def opened(root: Path, *, users: tuple[str, ...] | list[str] | None) -> AsyncIterator[Memory]:
    """Open a memory; with `users` each has the workspace of their name."""
    own = UserNotes(workspace_of=lambda user: root / user, users=lambda: users or ())
    async with whole_memory(
        root, embedder=EmbedderChoice(name="none"), user_notes=None if users is None else own
    ) as memory:
        await memory.notes.scan()
        yield memory


async def found(memory: Memory, user: str) -> list[str]:
    search = await memory.search.search(
        ["harbour"], scope=Scope(owner_id=user), kinds=["note"], limit=9
    )
    return [hit.item.body.rpartition("\n")[2] for hit in search.hits]


async def told(memory: Memory, user: str) -> str:
    scope = Scope(owner_id=user)
    return (await memory.reader.recall(QueryPack(queries=(ASKED,), scope=scope))).text


async def test_a_user_finds_and_is_told_their_own_notes_alone(tmp_path: Path) -> None:
    for user in USERS:  # files and headings of one name
        write_note(tmp_path / user, f"The pilot of {user}.")
    async with opened(tmp_path, users=USERS) as memory:
        for user, other in (USERS, USERS[::-1]):
            assert await found(memory, user) == [f"The pilot of {user}."]
            assert f"The pilot of {user}." in await told(memory, user)
            assert f"The pilot of {other}." not in await told(memory, user)
        assert await found(memory, "cyd") == []
        assert "pilot" not in await told(memory, "cyd")


async def test_a_user_forgets_their_own_note_and_no_other(tmp_path: Path) -> None:
    for user in USERS:
        write_note(tmp_path / user, f"The pilot of {user}.")
    async with opened(tmp_path, users=USERS) as memory:
        scope = Scope(owner_id="ada")
        (hit,) = (
            await memory.search.search(["harbour"], scope=scope, kinds=["note"], limit=9)
        ).hits
        assert not await memory.forget(hit.item.id, Scope(owner_id="bob"))
        assert not await memory.notes.forget_note(hit.item.id, "bob")
        assert (tmp_path / "ada/memory/harbour.md").exists()
        assert await memory.forget(hit.item.id, scope)
        assert not (tmp_path / "ada/memory/harbour.md").exists()
        assert await found(memory, "ada") == []
        assert await found(memory, "bob") == ["The pilot of bob."]


@pytest.mark.parametrize("users", [None, USERS])
async def test_what_was_indexed_of_workspaces_that_are_not_in_use_is_found_by_nobody(
    tmp_path: Path, users: tuple[str, ...] | None
) -> None:
    write_note(tmp_path / "workspace", "The pilot of all.")
    write_note(tmp_path / "ada", "The pilot of ada.")
    texts = ["The pilot of all.", "The pilot of ada."]
    before, after = texts if users is None else texts[::-1]
    async with opened(tmp_path, users=users) as memory:
        assert await found(memory, "ada") == [before]
    async with opened(tmp_path, users=USERS if users is None else None) as memory:
        assert await found(memory, "ada") == [after]
        assert await found(memory, "bob") == ([] if users is None else [after])


async def test_a_user_who_comes_later_is_looked_at_from_then_on(tmp_path: Path) -> None:
    users: list[str] = []
    write_note(tmp_path / "bob", "The pilot of bob.")
    async with opened(tmp_path, users=users) as memory:
        assert await found(memory, "bob") == []
        users.append("bob")
        with anyio.fail_after(30):
            while await found(memory, "bob") != ["The pilot of bob."]:  # noqa: ASYNC110
                await anyio.sleep(0.05)
