"""Questions to a model beside all conversations, by the real agent process on the demo model."""

from functools import partial
from pathlib import Path

import anyio
import pytest

from gateway.agents import make_side_query
from gateway.engine.sdk import SdkEngine
from gateway.engine.side_query import SideQuery
from memory.remote.small_model import ModelUnavailable
from tests.support.engine_talk import LONG_S
from tests.support.engine_world import MODEL, RealWorld, real_world
from tests.support.live_server import agents_of, script

pytestmark = pytest.mark.e2e


def asking(world: RealWorld) -> SideQuery:
    assert MODEL.model is not None
    return make_side_query(world.setup, MODEL.model)


async def test_it_answers_without_tools_or_workspace_and_leaves_nothing(tmp_path: Path) -> None:
    async with real_world(tmp_path) as world:
        (world.setup.workspace / "CLAUDE.md").write_text("Always say platypus.", encoding="utf-8")
        ask = partial(asking(world), system="Answer with a list of ids.", timeout_s=LONG_S)
        with anyio.fail_after(LONG_S):
            answer = await ask(prompt=script({"text": '["epi_1"]'}))
            tools = await ask(prompt=script({"echo": "tools"}))
            told = await ask(prompt=script({"echo": "messages"}))
            with_tools = SideQuery(partial(SdkEngine, world.setup), MODEL.model)
            control = await with_tools(
                system="Answer.", prompt=script({"echo": "tools"}), timeout_s=LONG_S
            )
        assert answer == '["epi_1"]'
        assert "Write" in control
        assert "Write" not in tools
        assert "Answer with a list of ids." in told
        assert "platypus" not in told
        assert agents_of(world.setup.owner) == {}
        assert world.setup.config_dir is not None
        kept = world.setup.config_dir.rglob("*.jsonl")
        assert [path for path in kept if "epi_1" in path.read_text()] == []


async def test_failure_delay_and_tool_calls_are_no_answer(tmp_path: Path) -> None:
    write = {"tool": "Write", "input": {"file_path": "x.txt", "content": "x"}}
    async with real_world(tmp_path) as world:
        ask = asking(world)
        with pytest.raises(ModelUnavailable, match="in time"):
            await ask(system="Answer.", prompt=script({"hang": True}), timeout_s=3)
        for step in ({"status": 400, "times": 9}, write):
            with pytest.raises(ModelUnavailable):
                await ask(system="Answer.", prompt=script(step), timeout_s=LONG_S)
        assert not (world.setup.workspace / "x.txt").exists()
        assert agents_of(world.setup.owner) == {}
