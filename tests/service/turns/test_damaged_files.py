"""Databases with flipped bytes: the server tells the damage, and goes on with what it can read."""

import random
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import anyio
import anyio.lowlevel
import pytest

from gateway.conversations.sql.turns import TurnStore
from gateway.errors import NotFound
from gateway.ids import LOCAL_USER, TurnId
from memory.errors import StoreDamaged, StoreUnavailable
from memory.service.plan import MemoryPlan
from tests.support.services import RunningServices, running_services, script

TURNS = 12


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directories of a server that has served some turns."""
    root = tmp_path_factory.mktemp("written")

    async def serve() -> None:
        async with running_services(root) as services:
            for n in range(TURNS):
                ls = {"tool": "Bash", "input": {"command": "ls"}}
                await services.ask(script(ls, {"text": f"{n} 完成"}))
            await services.open_memory.episode_worker.drain()

    anyio.run(serve)
    return root


def damaged(written: Path, root: Path, name: str, *, flips: int, seed: int) -> Path:
    """Copy the directories and change some bytes of a database at random."""
    shutil.copytree(written, root, dirs_exist_ok=True)
    file = root / "data" / name
    content, chance = bytearray(file.read_bytes()), random.Random(seed)
    for _ in range(flips):
        content[chance.randrange(len(content))] ^= chance.randrange(1, 256)
    file.write_bytes(content)
    return root


async def told(services: RunningServices, part: str) -> str | None:
    """Return what `/readyz` says of the damage of a part."""
    answer = await services.pings[part]()
    if isinstance(answer, Mapping):
        return answer["detail"] if answer["state"] == "unavailable" else None
    return answer


@pytest.mark.parametrize("seed", range(2))
async def test_a_damaged_memory_ends_no_server(written: Path, tmp_path: Path, seed: int) -> None:
    await anyio.to_thread.run_sync(
        lambda: damaged(written, tmp_path, "memory.sqlite3", flips=200, seed=seed)
    )
    async with running_services(tmp_path) as services:
        result = await services.ask(script({"text": "still here"}))
        assert (result["outcome"], result["reply"]) == ("answered", "still here")
        detail = await told(services, "memory")
        assert detail is not None
        assert "damaged" in detail
        assert await told(services, "database") is None


async def test_a_memory_that_could_not_be_created_is_created_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The empty file that the failed start left is not taken for an emptied database."""

    def fail(plan: MemoryPlan, **options: object) -> NoReturn:
        (plan.data_dir / "memory.sqlite3").touch()
        raise StoreUnavailable("The disk is broken.")

    with monkeypatch.context() as broken:
        broken.setattr("gateway.memory.open_memory", fail)
        async with running_services(tmp_path) as services:
            await services.ask(script({"text": "Remembered by nobody."}))
            assert services.memory is None
    async with running_services(tmp_path) as services:
        assert services.memory is not None


async def test_a_memory_that_was_emptied_is_not_begun_anew(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        await services.ask(script({"text": "Remembered."}))
    for file in (tmp_path / "data").glob("memory.sqlite3*"):
        file.write_bytes(b"")
    async with running_services(tmp_path) as services:
        assert services.memory is None
        assert "earlier conversations" in str(await told(services, "memory"))


async def test_a_turn_that_ran_and_is_not_found_is_reported_as_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index that lost a row hides it: the answer is not that there is no such turn."""
    async with running_services(tmp_path) as services:
        accepted = await services.begin()

        async def read_result() -> None:
            with pytest.raises(StoreDamaged):
                await services.chat.reader.result(LOCAL_USER, accepted.turn_id)

        async def lost(_store: TurnStore, _turn_id: TurnId) -> None:
            await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read_result)
            await anyio.wait_all_tasks_blocked()
            monkeypatch.setattr(TurnStore, "get", lost)
            await services.interrupt(accepted.conversation_id)


async def read_all(services: RunningServices) -> int:
    """Read all messages; return how many conversations cannot be read because of damage."""
    failed = 0
    for view in await services.views():
        try:
            await services.messages_of(view.conversation.id, limit=100)
        except (StoreDamaged, NotFound):  # a damaged index hides a row
            failed += 1
    return failed


@pytest.mark.parametrize("seed", range(2))
async def test_damaged_conversations_are_told_where_reading_them_fails(
    written: Path, tmp_path: Path, seed: int
) -> None:
    """A file of which the schema is damaged cannot be opened at all; it is refused in a sentence."""
    await anyio.to_thread.run_sync(
        lambda: damaged(written, tmp_path, "candor.sqlite3", flips=40, seed=seed)
    )
    with suppress(StoreDamaged):
        async with running_services(tmp_path) as services:
            try:
                failed = await read_all(services)
            except StoreDamaged:
                failed = TURNS
            assert (await told(services, "database") is not None) or not failed
