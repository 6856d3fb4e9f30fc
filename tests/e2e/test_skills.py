"""Field log, problem 1: the skills are there for the real agent process."""

import json
from pathlib import Path

import anyio
import pytest

from gateway.engine.events import SessionReady
from gateway.workspace import prepare_workspace_blocking, skill_names
from tests.support.engine_talk import ask, script
from tests.support.engine_world import real_world
from tests.support.recording_model import recording_model

pytestmark = pytest.mark.e2e

SHIPPED = Path(__file__).parents[2] / ".claude" / "skills"
NAMES = {f"memory-{does}" for does in ("capture", "case", "organize", "revise", "summarize")}


def shipped(name: str) -> tuple[str, str]:
    """Return a skill's description and its instructions, as they stand in its file."""
    _, front, body = (SHIPPED / name / "SKILL.md").read_text(encoding="utf-8").split("---\n", 2)
    return front.split("description: ", 1)[1].strip(), body.strip()


async def test_the_skills_of_a_prepared_workspace_reach_the_model_whole(tmp_path: Path) -> None:
    assert set(await anyio.to_thread.run_sync(skill_names, SHIPPED)) == NAMES
    async with recording_model() as model, real_world(tmp_path) as world:
        await anyio.to_thread.run_sync(prepare_workspace_blocking, world.setup.workspace, SHIPPED)
        model_env = {**world.setup.model_env, "ANTHROPIC_BASE_URL": model.url}
        world.engine = world.engine_with(model_env=model_env)
        uses = [{"tool": "Skill", "input": {"skill": name}} for name in sorted(NAMES)]
        told = await ask(await world.connect(), script(*uses, {"text": "done"}))
    ready = told.only(SessionReady)
    assert set(ready.skills) >= NAMES
    assert set(ready.slash_commands) >= NAMES
    heard = json.dumps(model.requests)
    for name in NAMES:
        for text in shipped(name):  # the words by which it is found too, the Chinese ones as well
            assert json.dumps(text)[1:-1] in heard, name
