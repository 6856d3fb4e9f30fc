"""Where the server keeps its files is told to nobody: not to clients, and not to the model."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from gateway.engine.events import ToolReturned
from gateway.engine.own_tools import OwnAnswer, OwnServer, OwnTool
from gateway.settings import Settings
from gateway.trust import trust_blocking
from tests.support.engine_talk import ask, script
from tests.support.engine_world import FRESH, MODEL, real_world
from tests.support.live_server import LiveServer, bash, started_server
from tests.support.live_server import script as live_script
from tests.support.recording_model import recording_model

pytestmark = pytest.mark.e2e

TOOLS = ("Bash", "Edit", "Glob", "Grep", "Read", "Skill", "Write")
STEPS = (
    bash("cat long.txt"),
    bash("cat long.txt missing.txt"),
    {"tool": "Grep", "input": {"pattern": "行", "output_mode": "content", "head_limit": 0}},
    {"tool": "Read", "input": {"file_path": "missing.txt"}},
    {"tool": "Read", "input": {"file_path": "long.txt"}},
    {"tool": "Write", "input": {"file_path": "a.txt", "content": "x"}},
    {"tool": "Edit", "input": {"file_path": "a.txt", "old_string": "z", "new_string": "y"}},
    {"tool": "Skill", "input": {"skill": "greet"}},
    {"tool": "Skill", "input": {"skill": "update-config"}},
    bash("ls | wc"),
    {"text": "done"},
)
"""Calls that succeed, fail, are denied, and return more than is shown."""


def lay_workspace(workspace: Path) -> None:
    """Write a long file and a skill."""
    (workspace / "long.txt").write_text("第一行 and more\n" * 40_000, encoding="utf-8")
    (workspace / ".claude/skills/greet").mkdir(parents=True, exist_ok=True)
    (workspace / ".claude/skills/greet/SKILL.md").write_text("Say good morning.", encoding="utf-8")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with started_server(tmp_path_factory.mktemp("somewhere")) as server:
        lay_workspace(server.workspace)
        trust_blocking(Settings(workspace=server.workspace, data_dir=server.data_dir))
        yield server


async def test_no_answer_to_a_client_holds_a_path_of_the_server(server: LiveServer) -> None:
    async with server.client() as client:
        result = await client.ask(live_script(*STEPS))
        assert {use["status"] for use in result["tools"]} == {"ok", "failed", "denied"}
        conversation = result["conversation_id"]
        events = await client.replay(conversation, result["turn_id"])
        answers = [json.dumps(result), *(json.dumps(event.data) for event in events)]
        paths = ["/conversations", f"/conversations/{conversation}", "/logs", "/readyz", "/metrics"]
        paths += [f"/conversations/{conversation}/messages", f"/logs/{result['log_file']}"]
        for path in paths:
            answer = await client.http.get(path)
            assert answer.status_code == 200, path
            answers.append(f"{path} {answer.text}")
    root = server.workspace.parent
    for told in answers:
        found = re.search(rf".{{0,80}}{root}.{{0,80}}", told)
        assert found is None, found
        # the log keeps each message of the agent program as it came
        assert told.startswith("/logs/") or not re.search("tool_use_error|hook error", told)
    outputs = [event.data.get("output", "") for event in events]
    assert any(output.startswith("File created successfully at: a.txt") for output in outputs)


async def test_the_model_sees_no_path_above_the_workspace(tmp_path: Path) -> None:
    async with recording_model() as model, real_world(tmp_path, tools=TOOLS) as world:
        workspace = world.setup.workspace
        await anyio.to_thread.run_sync(lay_workspace, workspace)
        model_env = {**world.setup.model_env, "ANTHROPIC_BASE_URL": model.url}
        world.engine = world.engine_with(model_env=model_env)
        await world.approve()
        told = await ask(await world.connect(), script(*STEPS))
    heard = json.dumps(
        [request | {"metadata": {}} for request in model.requests], ensure_ascii=False
    )
    above = re.search(rf".{{0,80}}{tmp_path}.{{0,80}}", heard.replace(str(workspace), "."))
    assert above is None, above
    results = told.all(ToolReturned)
    assert len(results) == len(STEPS) - 1
    for result in (results[0], results[2]):
        assert "第一行 and more\n" in result.text
        assert "left out here" in result.text


async def test_a_long_result_of_an_mcp_tool_is_cut_and_saved_to_no_file(tmp_path: Path) -> None:
    async def answer(name: str, arguments: Mapping[str, Any]) -> OwnAnswer:
        await anyio.lowlevel.checkpoint()
        return OwnAnswer(arguments["text"] * 60_000, is_error=name != tool)

    tool = "mcp__test__many"
    fields = {"type": "object", "properties": {"text": {"type": "string"}}}
    server = OwnServer("test", (OwnTool("many", "Repeats a text.", fields),))
    call = {"tool": tool, "input": {"text": "8 chars\n"}}
    async with recording_model() as model, real_world(tmp_path) as world:
        model_env = {**world.setup.model_env, "ANTHROPIC_BASE_URL": model.url}
        world.engine = world.engine_with(model_env=model_env)
        client = await world.engine.connect(replace(MODEL, servers=(server,)), FRESH)
        told = await ask(client, script(call, {"text": "done"}), call_own=answer)
        saved = await anyio.to_thread.run_sync(lambda: [*tmp_path.rglob("tool-results/*")])
    result = told.only(ToolReturned)
    assert result.whole is not None
    assert result.whole.chars == 480_000
    assert result.text.startswith("8 chars\n8 chars\n")
    assert "left out here" in result.text[18_000 - 100 :]
    assert str(tmp_path / "data") not in json.dumps(model.requests)
    assert saved == []
