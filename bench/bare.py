"""The bare SDK, as somebody would use it who has no gateway: the side to compare with."""

import time
from pathlib import Path

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, StreamEvent

from policies.tools import OFFERED_TOOLS


def options(
    workspace: Path, url: str, config_dir: Path, *, resume: str | None = None
) -> ClaudeAgentOptions:
    return ClaudeAgentOptions(
        cwd=workspace,
        env=environment(url, config_dir),
        model="candor-demo",
        tools=list(OFFERED_TOOLS),
        system_prompt={"type": "preset", "preset": "claude_code"},
        setting_sources=["project"],
        include_partial_messages=True,
        resume=resume,
    )


def environment(url: str, config_dir: Path) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CONFIG_DIR": str(config_dir),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


async def ask(client: ClaudeSDKClient, text: str, begin: float) -> tuple[float, str]:
    """Ask; gives the seconds from `begin` to the first text, and the session."""
    first: float | None = None
    await client.query(text)
    async for message in client.receive_messages():
        if first is None and isinstance(message, StreamEvent):
            delta = message.event.get("delta") or {}
            if delta.get("type") == "text_delta":
                first = time.perf_counter() - begin
        if isinstance(message, ResultMessage):
            assert first is not None
            return first, message.session_id
    raise AssertionError("the stream ended without a result")


async def connect_and_ask(opts: ClaudeAgentOptions, text: str) -> tuple[float, str]:
    """Connect, ask, disconnect; the seconds from before connecting to the first text."""
    begin = time.perf_counter()
    client = ClaudeSDKClient(opts)
    await client.connect()
    try:
        return await ask(client, text, begin)
    finally:
        await client.disconnect()
