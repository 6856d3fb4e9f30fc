"""Skills, sub-agents and commands reach the model if a person approved them, and only then."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.engine.events import ToolReturned
from gateway.settings import Settings
from gateway.skills import REFRESH_S
from gateway.trust import trust_blocking
from tests.support.engine_talk import Gate, ask, script
from tests.support.engine_world import RealWorld, real_world, write
from tests.support.live_server import LiveServer, running_server
from tests.support.live_server import script as live_script
from tests.support.recording_model import RecordingModel, recording_model

pytestmark = pytest.mark.e2e

TOOLS = ("Agent", "Read", "Skill", "Write")
LATER_S = 2.0
"""The agent program looks at changed files within half a second."""


def text(mark: str, name: str | None = None) -> str:
    return f"---\nname: {name or mark}\ndescription: about-{mark}\n---\nfollow-{mark}\n"


GOOD = {
    ".claude/skills/goodskill/SKILL.md": text("goodskill"),
    ".claude/commands/goodcommand.md": text("goodcommand"),
    ".claude/commands/folder/goodinner.md": text("goodinner"),
    ".claude/agents/goodagent.md": text("goodagent"),
}
BAD = {
    ".claude/skills/badskill/SKILL.md": text("badskill"),
    ".claude/skills/badmask/SKILL.md": text("badmask", "goodskill"),
    ".claude/commands/badcommand.md": text("badcommand"),
    ".claude/commands/folder/badinner.md": text("badinner"),
    ".claude/agents/badagent.md": text("badagent"),
    ".claude/agents/folder/badnested.md": text("badnested"),
    "deep/.claude/skills/goodskill/SKILL.md": text("baddeep"),
    "deep/.claude/skills/badbelow/SKILL.md": text("badbelow"),
}


def lay(workspace: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        write(workspace / name, content)


def use(name: str) -> dict[str, Any]:
    return {"tool": "Skill", "input": {"skill": name}}


def hand_to(kind: str) -> dict[str, Any]:
    given = {"description": "d", "prompt": script({"echo": "system"}), "subagent_type": kind}
    return {"tool": "Agent", "input": given}


def recorded(world: RealWorld, model: RecordingModel) -> RealWorld:
    model_env = {**world.setup.model_env, "ANTHROPIC_BASE_URL": model.url}
    world.engine = world.engine_with(model_env=model_env)
    return world


async def test_what_nobody_approved_is_not_in_what_the_model_is_sent(tmp_path: Path) -> None:
    async with recording_model() as model, real_world(tmp_path, tools=TOOLS) as world:
        workspace = world.setup.workspace
        lay(workspace, GOOD)
        await world.approve()
        lay(workspace, {**BAD, "deep/notes.txt": "Notes."})
        client = await recorded(world, model).connect()
        look = {"tool": "Read", "input": {"file_path": f"{workspace}/deep/notes.txt"}}
        tried = [use(name) for name in ("goodskill", "badskill", "badcommand", "badbelow")]
        told = await ask(client, script(look, *tried, hand_to("badagent"), {"text": "done"}))
        for name in ("goodcommand", "folder:goodinner"):  # whose text the demo model answers anew
            await ask(client, script(use(name), {"text": "done"}))
    heard = model.heard
    for mark in ("goodskill", "goodcommand", "goodinner"):
        assert f"about-{mark}".encode() in heard
        assert f"follow-{mark}".encode() in heard
    assert b"about-goodagent" in heard
    assert b"about-bad" not in heard
    assert b"follow-bad" not in heard
    shown = model.requests[0]["messages"]
    assert "bad" not in str(shown[-1]["content"][0])  # neither is a name
    failed = [event.is_error for event in told.all(ToolReturned)]
    assert failed == [False] * 2 + [True] * 4


async def test_an_approved_sub_agent_works_by_its_file_with_the_tools_that_it_names(
    tmp_path: Path,
) -> None:
    definition = (
        "---\nname: reader\ndescription: Reads.\ntools: Read, Bash, WebFetch\n"
        "permissionMode: bypassPermissions\n---\nRead it backwards.\n"
    )
    async with recording_model() as model, real_world(tmp_path, tools=TOOLS) as world:
        write(world.setup.workspace / ".claude/agents/reader.md", definition)
        await world.approve()
        gate = Gate()
        await ask(
            await recorded(world, model).connect(),
            script(hand_to("reader"), {"text": "done"}),
            gate,
        )
    (request,) = [sent for sent in model.requests if "Read it backwards." in str(sent["system"])]
    assert "You are a sub-agent in Candor" in str(request["system"])
    assert [tool["name"] for tool in request["tools"]] == ["Read"]
    assert gate.kinds == ["judge", "decide"]


async def test_what_changes_while_an_agent_lives_does_not_reach_it(tmp_path: Path) -> None:
    async with recording_model() as model, real_world(tmp_path, tools=TOOLS) as world:
        lay(world.setup.workspace, GOOD)
        await world.approve()
        client = await recorded(world, model).connect()
        await ask(client, script({"text": "one"}))
        changed = {name: content.replace("good", "bad") for name, content in GOOD.items()}
        lay(world.setup.workspace, {**changed, ".claude/agents/badlate.md": text("badlate")})
        await anyio.sleep(LATER_S)
        await ask(client, script(use("goodskill"), use("goodcommand"), {"text": "two"}))
        await anyio.sleep(LATER_S)
        await ask(client, script({"text": "three"}))
    assert b"follow-goodskill" in model.heard
    assert b"about-bad" not in model.heard
    assert b"follow-bad" not in model.heard


async def approve(server: LiveServer) -> None:
    settings = Settings(workspace=server.workspace, data_dir=server.data_dir)
    await anyio.to_thread.run_sync(trust_blocking, settings)


async def test_an_approval_counts_from_the_next_turn_on_until_the_file_changes(
    tmp_path: Path,
) -> None:
    """Also in a conversation that goes on, and where an agent was prewarmed before."""
    skill = ".claude/skills/goodskill/SKILL.md"
    tries = live_script(use("goodskill"), {"text": "Done."})
    async with running_server(tmp_path) as server, server.client() as client:
        lay(server.workspace, GOOD)
        before = await client.ask(tries)
        typed = await client.ask("/goodcommand")
        await approve(server)
        await anyio.sleep(REFRESH_S)
        after = await client.ask(tries, before["conversation_id"])
        new = await client.ask(live_script(hand_to("goodagent"), {"text": "Done."}))
        report = await client.get(
            f"/conversations/{new['conversation_id']}/turns/{new['turn_id']}/tools/1"
        )
        asked = await client.ask("/goodcommand")
        write(server.workspace / skill, GOOD[skill] + "More.")
        at_once = await client.ask(tries, before["conversation_id"])
        await anyio.sleep(REFRESH_S)
        changed = await client.ask(tries, before["conversation_id"])
    (refused,) = at_once["tools"]
    assert refused["status"] in {"denied", "failed"}  # by the gate, or by an agent that is new
    for turn in (before, changed):
        ((status, error),) = [(use["status"], use["error"]) for use in turn["tools"]]
        assert (status, "goodskill is not in this session's skills" in error) == ("failed", True)
    assert "/goodcommand" in typed["reply"]
    assert typed["notices"][0]["code"] == "answered_by_gateway"
    for turn in (after, new, asked):
        assert {use["status"] for use in turn["tools"]} == {"ok"}
    assert "follow-goodagent" in report["output"]
