"""Field log, problem 1: the skills are there for the real agent process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    SystemMessage,
    TextBlock,
    UserMessage,
)

from gateway.demo.server import serve_demo
from gateway.workspace import prepare_workspace_blocking, skill_names

pytestmark = pytest.mark.e2e

SHIPPED = Path(__file__).parents[2] / ".claude" / "skills"
NAMES = {
    "memory-capture",
    "memory-case",
    "memory-organize",
    "memory-revise",
    "memory-summarize",
}
DEADLINE_S = 60


def build_options(workspace: Path, config: Path, base_url: str) -> ClaudeAgentOptions:
    return ClaudeAgentOptions(
        cwd=workspace,
        setting_sources=["project"],
        strict_mcp_config=True,
        tools=["Skill", "Read", "Write", "Edit", "Glob", "Grep", "Bash"],
        env={
            "ANTHROPIC_BASE_URL": base_url,
            "ANTHROPIC_API_KEY": "demo",
            "CLAUDE_CONFIG_DIR": str(config),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a session showed."""

    init: Mapping[str, Any]
    descriptions: Mapping[str, str]
    """Of each command, by its name."""
    texts: Sequence[str]
    """What reached the model in the user's place, tool results left out."""


async def ask_agent(workspace: Path, config: Path, prompts: Sequence[str]) -> Seen:
    init: Mapping[str, Any] = {}
    texts: list[str] = []
    with anyio.fail_after(DEADLINE_S):
        async with (
            serve_demo(cadence_ms=0) as base_url,
            ClaudeSDKClient(build_options(workspace, config, base_url)) as client,
        ):
            info = await client.get_server_info() or {}
            for prompt in prompts:
                await client.query(prompt)
                async for message in client.receive_response():
                    match message:
                        case SystemMessage(subtype="init", data=data):
                            init = data
                        case UserMessage(content=list(blocks)):
                            texts += [
                                block.text for block in blocks if isinstance(block, TextBlock)
                            ]
                        case _:
                            pass
    descriptions = {
        command["name"]: str(command["description"]) for command in info.get("commands", [])
    }
    return Seen(init=init, descriptions=descriptions, texts=texts)


def shipped(name: str) -> tuple[str, str]:
    """Return a skill's description and its instructions, as they stand in its file."""
    _, front, body = (SHIPPED / name / "SKILL.md").read_text(encoding="utf-8").split("---\n", 2)
    return front.split("description: ", 1)[1].strip(), body.strip()


async def test_the_skills_of_a_prepared_workspace_reach_the_model_whole(tmp_path: Path) -> None:
    workspace = tmp_path / "工作区"
    await anyio.to_thread.run_sync(prepare_workspace_blocking, workspace, SHIPPED)
    prompts = [f"use the {name} skill" for name in sorted(NAMES)]
    seen = await ask_agent(workspace, tmp_path / "config", prompts)
    assert set(await anyio.to_thread.run_sync(skill_names, SHIPPED)) == NAMES
    assert set(seen.init["skills"]) >= NAMES
    assert set(seen.init["slash_commands"]) >= NAMES
    for name in NAMES:
        description, instructions = shipped(name)
        # the words by which it is found came through the front matter whole, the Chinese ones too
        assert description in seen.descriptions[name]
        assert any(instructions in text for text in seen.texts), name
