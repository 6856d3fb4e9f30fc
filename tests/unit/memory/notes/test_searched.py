"""Notes are searched like everything else, and told where memory itself is asked for."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from memory.assemble import Memory, open_memory
from memory.plan import MemoryPlan
from memory.recall.query import QueryPack
from memory.scope import Scope
from policies.secrets import mask_secrets
from tests.support.episodes import AT
from tests.unit.memory.notes.folders import workspace_with, write

ANN = Scope(owner_id="ann")
LONG = "Nothing of interest stands in this paragraph of the note. " * 40
NOTES: dict[str, str | bytes] = {
    "ledger.md": f"# Ledger\n\n{LONG}\n\n# Pager\n\nThe pager is carried by Ophelia.\n",
    "部署.md": "# 部署\n\n灰度发布从上海机房开始。\n",
    "ports.yaml": "gateway_port: 8471\n",
}


@asynccontextmanager
async def remembering(root: Path) -> AsyncIterator[Memory]:
    workspace = workspace_with(root, NOTES)
    plan = MemoryPlan(data_dir=root, workspace=workspace, mask=mask_secrets, serves_vectors=False)
    async with open_memory(plan, now=lambda: AT, draw=lambda: 0.0) as memory:
        await memory.notes.scan()
        yield memory


async def found(memory: Memory, text: str, scope: Scope = ANN) -> list[tuple[str, str]]:
    """Return source and title of what a question finds."""
    answer = await memory.search.search([text], scope=scope, limit=5)
    return [(hit.item.source, hit.item.title) for hit in answer.hits]


@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("who carries the pager?", ("memory/ledger.md", "Pager")),
        ("灰度发布从哪里开始", ("memory/部署.md", "部署")),
        ("gateway_port", ("memory/ports.yaml", "ports")),
    ],
)
async def test_a_note_is_found_by_its_words_section_by_section(
    tmp_path: Path, question: str, note: tuple[str, str]
) -> None:
    async with remembering(tmp_path) as memory:
        assert (await found(memory, question))[0] == note


async def test_notes_are_everybodys_in_the_workspace(tmp_path: Path) -> None:
    async with remembering(tmp_path) as memory:
        for owner in ("ann", "bob"):
            assert await found(memory, "Ophelia", Scope(owner_id=owner))


async def test_what_was_changed_is_found_as_it_is_now(tmp_path: Path) -> None:
    async with remembering(tmp_path) as memory:
        write(tmp_path / "workspace", "部署.md", "# 部署\n\n回滚由奥菲负责。\n")
        await memory.notes.scan()
        assert await found(memory, "回滚由奥菲负责") == [("memory/部署.md", "部署")]
        assert await found(memory, "灰度发布") == []


async def test_what_was_deleted_is_not_found(tmp_path: Path) -> None:
    async with remembering(tmp_path) as memory:
        (tmp_path / "workspace" / "memory" / "ledger.md").unlink()
        await memory.notes.scan()
        assert await found(memory, "Ophelia") == []


async def test_a_note_that_was_written_in_a_turn_is_found_after_it(tmp_path: Path) -> None:
    async with remembering(tmp_path) as memory:
        write(tmp_path / "workspace", "new.md", "The kestrel nests on the roof.")
        memory.turn_ended()
        with anyio.fail_after(30):
            while not await found(memory, "kestrel"):
                await anyio.lowlevel.checkpoint()


async def test_who_forgets_a_note_forgets_its_file(tmp_path: Path) -> None:
    async with remembering(tmp_path) as memory:
        answer = await memory.search.search(["Ophelia"], scope=ANN, limit=5)
        assert await memory.forget(answer.hits[0].item.id, ANN)
        assert await found(memory, "Ophelia") == []
        assert not (tmp_path / "workspace" / "memory" / "ledger.md").exists()
        await memory.notes.scan()
        assert await found(memory, "Ophelia") == []


def asking(message: str, budget_chars: int = 3000) -> QueryPack:
    return QueryPack(queries=[message], scope=ANN, budget_chars=budget_chars)


@pytest.mark.parametrize(
    "message", ["what do you remember?", "总结一下个人记忆", "记忆系统里有什么"]
)
async def test_a_question_about_memory_is_given_the_notes(tmp_path: Path, message: str) -> None:
    async with remembering(tmp_path) as memory:
        pack = await memory.reader.recall(asking(message))
    assert "Answer from them; do not say that there is no access to memory." in pack.text
    assert "\n> 灰度发布从上海机房开始。" in pack.text
    assert "\n> gateway_port: 8471" in pack.text
    assert pack.degraded == ()


async def test_another_question_is_not(tmp_path: Path) -> None:
    async with remembering(tmp_path) as memory:
        pack = await memory.reader.recall(asking("who carries the pager?"))
    assert "The message asks about memory" not in pack.text
    assert "Ophelia" in pack.text


@pytest.mark.parametrize("budget", [0, 100, 500, 1000, 3000])
async def test_the_notes_take_part_of_the_budget_and_never_more(
    tmp_path: Path, budget: int
) -> None:
    async with remembering(tmp_path) as memory:
        content = await memory.notes.content(
            "记忆", budget_chars=budget // 2, most_items=30, active_tools=()
        )
        pack = await memory.reader.recall(asking("记忆", budget))
    assert len(content.text) <= budget // 2
    assert len(pack.text) <= budget
    assert content.text in pack.text
