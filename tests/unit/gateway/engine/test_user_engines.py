"""Engines of users: one for each, made once, and none for nobody."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from gateway.engine.protocol import ClientSpec, Engine, EngineUnavailable, SessionOrigin
from gateway.engine.user_engines import UserEngines
from tests.support.scripted_engine import ScriptedEngine

FRESH = SessionOrigin()
SESSION = "0b0a3d51-6d0b-4b37-9a6e-0f5c3d1c9a11"


class Made:
    """Makes engines slowly, and fails where it is told to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.engines: list[tuple[str, ScriptedEngine]] = []
        self.broken = False

    async def __call__(self, user_id: str) -> Engine:
        await anyio.lowlevel.checkpoint()
        if self.broken:
            raise EngineUnavailable("There is no room.")
        engine = ScriptedEngine(self.root / user_id)
        self.engines.append((user_id, engine))
        return engine


@asynccontextmanager
async def engines(root: Path) -> AsyncIterator[tuple[UserEngines, Made, ScriptedEngine]]:
    made, own = Made(root), ScriptedEngine(root)
    yield UserEngines(own, made, lambda: root.glob("*/sessions")), made, own


async def test_each_user_has_an_engine_that_is_made_once(tmp_path: Path) -> None:
    async with engines(tmp_path) as (users, made, own):
        async with anyio.create_task_group() as tasks:
            for user_id in ("ada", "bob", "ada", "bob"):
                tasks.start_soon(users.connect, ClientSpec(user_id=user_id), FRESH)
        assert sorted(user_id for user_id, _ in made.engines) == ["ada", "bob"]
        assert [len(engine.clients) for _, engine in made.engines] == [2, 2]
        with pytest.raises(EngineUnavailable, match="without a user"):
            await users.connect(ClientSpec(), FRESH)
        assert own.clients == []


async def test_an_engine_that_could_not_be_made_is_made_at_the_next_start(tmp_path: Path) -> None:
    async with engines(tmp_path) as (users, made, _):
        made.broken = True
        with pytest.raises(EngineUnavailable, match="no room"):
            await users.connect(ClientSpec(user_id="ada"), FRESH)
        made.broken = False
        await users.connect(ClientSpec(user_id="ada"), FRESH)
        assert len(made.engines) == 1
        assert await users.ping() is None  # no user's trouble is the server's


async def test_a_session_is_forgotten_wherever_it_is(tmp_path: Path) -> None:
    def lay() -> list[Path]:
        files = [tmp_path / user / "sessions/projects/x" for user in ("ada", "bob")]
        for folder in files:
            folder.mkdir(parents=True)
            (folder / f"{SESSION}.jsonl").touch()
            (folder / "other.jsonl").touch()
        return files

    folders = await anyio.to_thread.run_sync(lay)
    async with engines(tmp_path) as (users, _, own):
        await own.connect(ClientSpec(), FRESH)
        (session_id,) = own.sessions
        await users.forget_session(session_id)
        await users.forget_session(SESSION)
        assert own.sessions == {}
    for folder in folders:
        assert [path.name async for path in anyio.Path(folder).iterdir()] == ["other.jsonl"]
