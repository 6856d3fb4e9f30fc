"""The real agent process on the demo model: what the unit tests assume about its requests is checked here."""

# ruff: noqa: RUF029 - the SDK wants its callbacks to be coroutines

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookContext,
    HookInput,
    HookJSONOutput,
    HookMatcher,
    PermissionResultAllow,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ToolPermissionContext,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from gateway.demo.server import serve_demo

pytestmark = pytest.mark.e2e

DEADLINE_S = 90
# One the agent does not know, and one it knows: they get hook context in different places.
MODELS = ["candor-demo", "claude-sonnet-4-5"]


@dataclass
class Turn:
    """What one prompt led to."""

    text: str = ""
    calls: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    failures: int = 0
    retries: int = 0
    chunks: int = 0
    result: ResultMessage | None = None


def script(*steps: object) -> str:
    return (
        f"Please play this.\n```candor-script\n{json.dumps(list(steps), ensure_ascii=False)}\n```"
    )


async def allow(
    name: str, tool_input: object, context: ToolPermissionContext
) -> PermissionResultAllow:
    return PermissionResultAllow()


async def add_memory(
    given: HookInput, tool_use_id: str | None, context: HookContext
) -> HookJSONOutput:
    return {
        "hookSpecificOutput": {
            "hookEventName": "UserPromptSubmit",
            "additionalContext": "Remembered:\n- the favourite colour is green",
        }
    }


async def comment_on_tool(
    given: HookInput, tool_use_id: str | None, context: HookContext
) -> HookJSONOutput:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PostToolUse",
            "additionalContext": "list the files",
        }
    }


@asynccontextmanager
async def agent(tmp_path: Path, model: str = "candor-demo") -> AsyncIterator[ClaudeSDKClient]:
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    (workspace / "notes.md").write_text("first note\nsecond note\n", encoding="utf-8")
    with anyio.fail_after(DEADLINE_S):
        async with serve_demo(cadence_ms=0) as base_url:
            options = ClaudeAgentOptions(
                cwd=workspace,
                model=model,
                setting_sources=["project"],
                include_partial_messages=True,
                tools=["Bash", "Edit", "Glob", "Grep", "Read", "Write"],
                can_use_tool=allow,
                hooks={
                    "UserPromptSubmit": [HookMatcher(hooks=[add_memory])],
                    "PostToolUse": [HookMatcher(hooks=[comment_on_tool])],
                },
                env={
                    "ANTHROPIC_BASE_URL": base_url,
                    "ANTHROPIC_API_KEY": "demo",
                    "CLAUDE_CONFIG_DIR": str(tmp_path / "config"),
                    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                },
            )
            async with ClaudeSDKClient(options) as client:
                yield client


async def ask(client: ClaudeSDKClient, prompt: str) -> Turn:
    turn = Turn()
    await client.query(prompt)
    async for message in client.receive_response():
        match message:
            case AssistantMessage(content=blocks):
                turn.text += "".join(block.text for block in blocks if isinstance(block, TextBlock))
                turn.calls += [block.name for block in blocks if isinstance(block, ToolUseBlock)]
            case UserMessage(content=list() as blocks):
                results = [block for block in blocks if isinstance(block, ToolResultBlock)]
                turn.results += [str(block.content) for block in results]
                turn.failures += sum(block.is_error is True for block in results)
            case SystemMessage(subtype="api_retry"):
                turn.retries += 1
            case StreamEvent():
                turn.chunks += 1
            case ResultMessage():
                turn.result = message
            case _:
                pass
    assert turn.result is not None
    return turn


@pytest.mark.parametrize("model", MODELS)
async def test_prompts_hook_context_and_scripts_are_told_apart(tmp_path: Path, model: str) -> None:
    """The hook's comment after the call reads like a request; it must not start the call again."""
    async with agent(tmp_path, model) as client:
        turn = await ask(client, "list the files")
        assert turn.calls == ["Bash"]
        assert "notes.md" in turn.text
        assert "scripted" in turn.text
        await ask(client, "my codeword is plum")
        assert "plum" in (await ask(client, "what is my codeword?")).text
        assert "green" in (await ask(client, "what do you remember?")).text
        echoed = await ask(client, script({"echo": "memory"}))
        assert echoed.text == "Remembered:\n- the favourite colour is green"
        echo = {"tool": "Bash", "input": {"command": "echo one"}}
        others = [{"name": "Bash", "input": {"command": f"echo {n}"}} for n in ("two", "three")]
        turn = await ask(
            client,
            script(
                {"thinking": "hm", "text": "first "} | echo,
                {"tools": others},
                {"repeat": echo, "times": 2},
                {"text": "last"},
            ),
        )
        assert turn.text == "first last"
        assert sorted(turn.results) == ["one", "one", "one", "three", "two"]
        assert turn.chunks > 10
