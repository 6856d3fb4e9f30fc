"""The SDK's options for one client: what is frozen when the agent process starts."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from claude_agent_sdk import ClaudeAgentOptions

from gateway.engine.hooks import RunHooks
from gateway.engine.processes import MARK
from gateway.engine.protocol import ClientSpec, SessionOrigin

MAX_LINE_BYTES = 64 * 1024 * 1024
"""The longest line of the agent's that is read; the SDK's own 1 MiB breaks the session (SDK #58)."""

_KEEP_SESSIONS_DAYS = 36_500
"""The agent program sweeps sessions after 30 days; a conversation is the user's to delete."""

_GUIDE = """\
You run inside Candor, a chat gateway, and work in the workspace at your working directory.
- Files outside the workspace, and protected files inside it, cannot be touched.
- In Bash only these run, one plain command a call: {commands}. No pipes, redirections, variables, \
substitutions or `cd`. To find and read use Glob, Grep and Read; to write use Write and Edit.
- A denied call tells its reason. Follow it, or tell the person plainly what could not be done.
- Say what really happened. Never claim that something was done when its tool call failed.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSetup:
    """What all clients of a server have in common."""

    cli_path: Path
    workspace: Path
    config_dir: Path | None
    """Where the agent keeps its sessions; None: its own default, for a login on this machine."""
    tools: Sequence[str]
    shell_commands: Sequence[str]
    owner: str
    model_env: Mapping[str, str] = field(default_factory=dict)
    """How the model's service is reached, over and above the server's own environment."""
    max_agent_steps: int | None = None
    max_budget_usd: float | None = None


def mark_of(setup: AgentSetup, client_id: str) -> str:
    """Give the mark that the client's processes carry."""
    return f"{setup.owner}:{client_id}"


def _environment(setup: AgentSetup, client_id: str) -> dict[str, str]:
    env = {
        MARK: mark_of(setup, client_id),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "SHELL": "/bin/bash",
        **setup.model_env,
    }
    if setup.config_dir is not None:
        env["CLAUDE_CONFIG_DIR"] = str(setup.config_dir)
    return env


def _flag_settings(setup: AgentSetup) -> str:
    """Settings above the workspace's own: every call is asked for, no hook of a file's runs."""
    pinned = {"SHELL": "/bin/bash"}
    if url := setup.model_env.get("ANTHROPIC_BASE_URL"):
        pinned["ANTHROPIC_BASE_URL"] = url
    return json.dumps(
        {
            "permissions": {"ask": ["*"]},
            "disableAllHooks": True,
            "cleanupPeriodDays": _KEEP_SESSIONS_DAYS,
            "env": pinned,
        }
    )


def build_options(
    setup: AgentSetup,
    spec: ClientSpec,
    origin: SessionOrigin,
    hooks: RunHooks,
    client_id: str,
) -> ClaudeAgentOptions:
    """Make the options; the caller adds where standard error goes."""
    return ClaudeAgentOptions(
        cli_path=setup.cli_path,
        cwd=setup.workspace,
        env=_environment(setup, client_id),
        model=spec.model,
        system_prompt={
            "type": "preset",
            "preset": "claude_code",
            "append": _GUIDE.format(commands=", ".join(setup.shell_commands)),
        },
        tools=list(setup.tools),
        setting_sources=["project"],
        settings=_flag_settings(setup),
        strict_mcp_config=True,
        can_use_tool=hooks.can_use_tool,
        hooks=hooks.matchers(),
        include_partial_messages=True,
        verbatim_prompts=True,  # else `@path` and `/…` in a message are expanded past the gate
        max_buffer_size=MAX_LINE_BYTES,
        max_turns=setup.max_agent_steps,
        max_budget_usd=setup.max_budget_usd,
        resume=origin.resume,
        fork_session=origin.fork_at is not None,
        resume_session_at=origin.fork_at,
    )
