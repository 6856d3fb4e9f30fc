"""Questions to a model beside all conversations, by the real agent process on the demo model."""

from functools import partial
from pathlib import Path

import anyio
import pytest

from gateway.agents import make_side_query
from gateway.engine.sdk import SdkEngine
from gateway.engine.side_query import SideQuery
from memory.small_model import ModelUnavailable
from tests.support.engine_talk import LONG_S
from tests.support.engine_world import MODEL, RealWorld, real_world
from tests.support.live_server import agents_of, script

pytestmark = pytest.mark.e2e


def asking(world: RealWorld) -> SideQuery:
    assert MODEL.model is not None
    return make_side_query(world.setup, MODEL.model)


async def test_it_answers_and_leaves_no_process_and_no_session(tmp_path: Path) -> None:
    async with real_world(tmp_path) as world:
        ask = asking(world)
        with anyio.fail_after(LONG_S):
            answer = await ask(
                system="Answer with a list of ids.",
                prompt=script({"text": '["epi_1"]'}),
                timeout_s=LONG_S,
            )
        assert answer == '["epi_1"]'
        assert agents_of(world.setup.owner) == {}
        assert world.setup.config_dir is not None
        left = [
            path for path in world.setup.config_dir.rglob("*.jsonl") if "epi_1" in path.read_text()
        ]
        assert left == []


async def test_it_is_offered_no_tools_and_none_would_run(tmp_path: Path) -> None:
    async with real_world(tmp_path) as world:
        ask = asking(world)
        tools = await ask(system="Answer.", prompt=script({"echo": "tools"}), timeout_s=LONG_S)
        with_tools = SideQuery(partial(SdkEngine, world.setup), MODEL.model)
        control = await with_tools(
            system="Answer.", prompt=script({"echo": "tools"}), timeout_s=LONG_S
        )
        assert "Write" in control
        assert "Write" not in tools
        write = {"tool": "Write", "input": {"file_path": "x.txt", "content": "x"}}
        with pytest.raises(ModelUnavailable):
            await ask(system="Answer.", prompt=script(write), timeout_s=LONG_S)
        assert not (world.setup.workspace / "x.txt").exists()


async def test_nothing_of_the_workspace_is_in_it(tmp_path: Path) -> None:
    async with real_world(tmp_path) as world:
        (world.setup.workspace / "CLAUDE.md").write_text("Always say platypus.", encoding="utf-8")
        ask = asking(world)
        told = await ask(system="Answer.", prompt=script({"echo": "messages"}), timeout_s=LONG_S)
        system = await ask(system="Answer.", prompt=script({"echo": "system"}), timeout_s=LONG_S)
    assert "platypus" not in told + system


async def test_one_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    async with real_world(tmp_path) as world:
        with pytest.raises(ModelUnavailable, match="in time"):
            await asking(world)(system="Answer.", prompt=script({"hang": True}), timeout_s=3)
        assert agents_of(world.setup.owner) == {}


async def test_a_model_that_fails_is_no_answer(tmp_path: Path) -> None:
    async with real_world(tmp_path) as world:
        with pytest.raises(ModelUnavailable):
            await asking(world)(
                system="Answer.", prompt=script({"status": 400, "times": 9}), timeout_s=LONG_S
            )
        assert agents_of(world.setup.owner) == {}
