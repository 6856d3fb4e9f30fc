"""What the model is told besides the conversation, as the real agent process sends it.

`model_request.txt` is one whole request in readable form. Read its difference when a test here
fails: a new version of the agent program says something new to the model, and somebody has to judge
whether it is true here. Then replace the file with the one that the failure names.
"""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.engine.protocol import SessionOrigin
from policies.calls import TASK_LIST_TOOLS
from policies.rules import shipped_rules
from tests.support.engine_talk import ask, bash, script
from tests.support.engine_world import RealWorld, real_world
from tests.support.recording_model import RecordingModel, recording_model

pytestmark = pytest.mark.e2e

PINNED = Path(__file__).with_name("model_request.txt")
SKILL = "---\nname: greet\ndescription: Greets the person.\n---\nSay good morning.\n"


def texts(content: Any) -> list[str]:
    """List the texts of a message or of a system prompt."""
    return [content] if isinstance(content, str) else [block["text"] for block in content]


def readable(request: dict[str, Any], workspace: Path) -> str:
    """Write a request as text; what differs from machine to machine is named, not shown."""
    parts = [f"=== system\n{text}" for text in texts(request["system"])]
    for message in request["messages"]:
        parts += [f"=== {message['role']}\n{text}" for text in texts(message["content"])]
    for tool in request["tools"]:
        schema = json.dumps(tool["input_schema"], indent=1, ensure_ascii=False)
        parts.append(f"=== tool {tool['name']}\n{tool['description']}\n{schema}")
    told = "\n".join(parts).replace(str(workspace), "{WORKSPACE}") + "\n"
    for pattern, name in (
        (r"(?<=cc_version=)[\w.]+", "{VERSION}"),
        (r"(?<= - Platform: ).*", "{PLATFORM}"),
        (r"(?<= - OS Version: ).*", "{SYSTEM}"),
        (r"(?<=Today's date is )[\d-]+", "{DATE}"),
    ):
        told = re.sub(pattern, name, told)
    return told


def lay_workspace(workspace: Path) -> None:
    """Write a repository with instructions and one skill."""
    (workspace / ".claude/skills/greet").mkdir(parents=True)
    (workspace / ".claude/skills/greet/SKILL.md").write_text(SKILL, encoding="utf-8")
    (workspace / "CLAUDE.md").write_text("Be brief.\n", encoding="utf-8")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run([*git, "init", "-q"], cwd=workspace, check=True)
    subprocess.run(
        [*git, "commit", "-q", "--allow-empty", "-m", "first"], cwd=workspace, check=True
    )


def with_model(world: RealWorld, model: RecordingModel, **changes: Any) -> RealWorld:
    """Offer a world's agents the tools of a server, and ask the recorded model."""
    rules = shipped_rules().with_optional(dict.fromkeys(("Agent", *TASK_LIST_TOOLS), True))
    offered: dict[str, Any] = {
        "tools": sorted(rules.offered_tools),
        "shell_commands": sorted(rules.commands),
        "model_env": {**world.setup.model_env, "ANTHROPIC_BASE_URL": model.url},
    }
    world.engine = world.engine_with(**{**offered, **changes})
    return world


async def test_a_whole_request_is_the_one_that_was_judged(tmp_path: Path) -> None:
    async with recording_model() as model, real_world(tmp_path) as world:
        workspace = world.setup.workspace
        await anyio.to_thread.run_sync(lay_workspace, workspace)
        await world.approve()
        client = await with_model(world, model).connect()
        await ask(client, "hello", context="What memory found.")
        told = readable(model.requests[0], workspace)
    actual = tmp_path / PINNED.name
    actual.write_text(told, encoding="utf-8")
    pinned = await anyio.to_thread.run_sync(PINNED.read_text, "utf-8")
    assert told == pinned, f"Judge what is new, then copy {actual} to {PINNED}."


async def test_a_resumed_session_is_told_the_rules_of_today(tmp_path: Path) -> None:
    """The agent program would send the system prompt of the session's first request for ever."""
    async with recording_model() as model, real_world(tmp_path) as world:
        client = await with_model(world, model, shell_commands=["ls", "yesterday"]).connect()
        await ask(client, "hello")
        session = client.session_id
        await client.close()
        client = await with_model(world, model).connect(SessionOrigin(resume=session))
        await ask(client, script(bash("ls"), {"text": "done"}))
    first, last = (json.dumps(item["system"]) for item in (model.requests[0], model.requests[-1]))
    assert "ls, yesterday" in first
    assert "yesterday" not in last
    assert "cat, cp, ls, mkdir, mv, rm" in last


KEPT_FROM_IT = (
    *(".env", "a.env", "id_rsa", "id_rsa.md", "s/.ssh/notes.md", ".aws/credentials"),
    *(
        ".docker/config.json",
        "s/.config/gh/hosts.md",
        "x.git/config",
        "Secrets.TOML",
        ".candor/x.md",
    ),
)
SHOWN = ("ok.md", "s/ok.json", "environment.md")


async def test_instructions_that_include_files_include_no_secret(tmp_path: Path) -> None:
    async with recording_model() as model, real_world(tmp_path) as world:
        workspace = world.setup.workspace
        names = [*KEPT_FROM_IT, *SHOWN]
        for name in names:
            path = workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"content of <{name}>", encoding="utf-8")
        (workspace / "CLAUDE.md").write_text("\n".join(f"- @{name}" for name in names))
        await ask(await with_model(world, model).connect(), "hello")
    heard = model.heard.decode()
    assert [name for name in names if f"content of <{name}>" in heard] == list(SHOWN)
