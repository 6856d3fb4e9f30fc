"""The SDK's options for one client: what is frozen when the agent process starts.

The workspace's own settings are loaded (skills come with them), so everything that could act in them
is held down a second time here: hooks off, helpers empty, servers none, and each variable that could
redirect the agent or its shell pinned by the flag settings, which stand above a project's.
"""

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from claude_agent_sdk import ClaudeAgentOptions, SandboxSettings

from gateway.engine.environment import KEEPS, PATH, SHELL, SWITCHED_OFF, kept_names, pins
from gateway.engine.hooks import RunHooks
from gateway.engine.mounting import mount
from gateway.engine.own_tools import OwnServer
from gateway.engine.processes import MARK
from gateway.engine.protocol import ClientSpec, SessionOrigin
from gateway.engine.system_prompt import build_system_prompt
from policies.paths.protected import secret_exclusions

MAX_LINE_BYTES = 64 * 1024 * 1024
"""The longest line of the agent's that is read; the SDK's own 1 MiB breaks the session (SDK #58)."""

_KEEP_SESSIONS_DAYS = 36_500
"""The agent program sweeps sessions after 30 days; a conversation is the user's to delete."""

HOST_ROUTES = "CLAUDE_CODE_PROVIDER_MANAGED_BY_HOST"
"""With it the agent takes no provider, address, proxy or key from a settings file, runs no helper of
theirs, and keeps its key out of the commands that it starts. A login does not work with it."""

_NOT_LOOKED_INTO = "CLAUDE_CODE_AUTOMOUNT_ROOTS"
"""The agent looks for skills, agents and CLAUDE.md in each folder above its own, up to HOME, but not in
those that are named here: what stands outside the workspace has no say in it."""

_HELPERS = (
    *("apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "gcpAuthRefresh"),
    *("otelHeadersHelper", "proxyAuthHelper"),
)
"""Settings that name a command to run; empty ones run nothing."""

_NOT_FOR_AGENTS = (
    *("Agent", "Task", "TaskOutput", "TaskStop", "Workflow", "Monitor", "SendMessage"),
    *("CronCreate", "CronDelete", "CronList", "ScheduleWakeup", "RemoteTrigger"),
    *("EnterPlanMode", "ExitPlanMode", "EnterWorktree", "ExitWorktree"),
    *("BashOutput", "KillShell", "KillBash", "PowerShell", "LSP", "ToolSearch", "WebSearch"),
    *("ListMcpResourcesTool", "ReadMcpResourceTool", "SlashCommand", "MultiEdit"),
)
"""What the agent program has besides the tools that are offered; it has more with every version, so
this is the second line, and the list of what is offered the first."""

_SANDBOXED_BASH: SandboxSettings = {
    "enabled": True,
    "autoAllowBashIfSandboxed": False,  # it would run past the policy
    "allowUnsandboxedCommands": False,
}

_BUILT_IN_PLUGINS_OFF = {"cc-plugin-plugin-authoring@builtin": False}
"""A skill that changes the agent program itself comes with it; the built-in plugin that reads AGENTS.md stays."""


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
    home: Path | None = None
    """The agent's HOME, so that no profile and no tool's configuration of a person's is read; None:
    the server's own, for a login that is kept there."""
    inherited: Collection[str] = ()
    """Names of the server's environment that the agent may have; see `environment`."""
    model_env: Mapping[str, str] = field(default_factory=dict)
    """How the model's service is reached, over and above what is inherited."""
    takes_login: bool = False
    """Whether the agent uses a person's login, and no key or cloud."""
    temp_dir: Path | None = None
    """For temporary files of the agents alone; None: the system's."""
    sandboxed_bash: bool = False
    """Whether the agent program itself confines what Bash runs: where the kernel's wall does not."""
    approvals_file: Path | None = None
    """Which of the workspace's configuration a person approved."""
    own_servers: Sequence[OwnServer] = ()
    """The gateway's own tools that a client may have; without them it does not see their skills."""
    reads_workspace: bool = True
    """Whether the workspace's instructions and skills are loaded."""
    max_agent_steps: int | None = None
    max_budget_usd: float | None = None


def mark_of(setup: AgentSetup, client_id: str) -> str:
    """Give the mark that the client's processes carry."""
    return f"{setup.owner}:{client_id}"


def _environment(setup: AgentSetup, client_id: str) -> dict[str, str]:
    env = {MARK: mark_of(setup, client_id), "SHELL": SHELL, **SWITCHED_OFF}
    if os.name == "posix":
        env["PATH"] = PATH
    if not setup.takes_login:
        env[HOST_ROUTES] = "1"
    env[_NOT_LOOKED_INTO] = os.pathsep.join(str(parent) for parent in setup.workspace.parents)
    if setup.home is not None:
        env["HOME"] = str(setup.home)
    if setup.config_dir is not None:
        env["CLAUDE_CONFIG_DIR"] = str(setup.config_dir)
    if setup.temp_dir is not None:
        env |= dict.fromkeys(("TMPDIR", "CLAUDE_CODE_TMPDIR"), str(setup.temp_dir))
    env |= setup.model_env
    return {**env, KEEPS: kept_names(env, setup.inherited)}


def _flag_settings(setup: AgentSetup, spec: ClientSpec, env: Mapping[str, str]) -> str:
    """Settings above the workspace's own: every call is asked for, nothing of a file's acts."""
    inherited = dict.fromkeys(setup.inherited, "set")  # their values are for nobody's eyes
    return json.dumps(
        {
            "permissions": {"ask": ["*"]},
            "disableAllHooks": True,
            "enableAllProjectMcpServers": False,
            **dict.fromkeys(_HELPERS, ""),
            "attribution": {"commit": "", "pr": ""},
            "enabledPlugins": _BUILT_IN_PLUGINS_OFF,
            "skillOverrides": dict.fromkeys(_hidden_skills(setup, spec), "off"),
            "claudeMdExcludes": _secrets_as_globs(),
            "cleanupPeriodDays": _KEEP_SESSIONS_DAYS,
            "env": pins({**inherited, **env}, setup.shell_commands),
        }
    )


def _hidden_skills(setup: AgentSetup, spec: ClientSpec) -> list[str]:
    """List the skills of tools that this client does not have."""
    return [
        server.skill for server in setup.own_servers if server.skill and server not in spec.servers
    ]


def _secrets_as_globs() -> list[str]:
    """List what no `@path` in a CLAUDE.md brings into the prompt: the same that Grep leaves out."""
    names = [pattern.removeprefix("!") for pattern in secret_exclusions().split()]
    return [glob for name in names for glob in (f"**/{name}", f"**/{name}/**")]


def build_options(
    setup: AgentSetup,
    spec: ClientSpec,
    origin: SessionOrigin,
    hooks: RunHooks,
    client_id: str,
) -> ClaudeAgentOptions:
    """Make the options; the caller adds where standard error goes."""
    env = _environment(setup, client_id)
    return ClaudeAgentOptions(
        cli_path=setup.cli_path,
        cwd=setup.workspace,
        env=env,
        model=spec.model,
        system_prompt={
            "type": "custom",
            "prompt": build_system_prompt(setup.tools, setup.shell_commands),
            "snapshot": False,  # else a resumed session keeps the rules of the day it began
        },
        tools=list(setup.tools),
        allowed_tools=[],  # it approves in advance
        disallowed_tools=[name for name in _NOT_FOR_AGENTS if name not in setup.tools],
        setting_sources=["project"] if setup.reads_workspace else [],
        settings=_flag_settings(setup, spec, env),
        sandbox=_SANDBOXED_BASH if setup.sandboxed_bash else None,
        mcp_servers={**mount(spec.servers, lambda: hooks.own_tools)},
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
