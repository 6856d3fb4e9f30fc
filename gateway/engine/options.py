"""The SDK's options for one client: what is fixed when the agent process starts.

The workspace's own settings are loaded, because skills come with them. So everything in them that
could act is also disabled here: hooks are off, helpers empty, servers none, and the flag settings,
which take precedence, pin each variable that could redirect the agent or its shell. Skills,
sub-agents and commands that the review found not to be approved are withheld by their names.
"""

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    SandboxSettings,
    SdkMcpTool,
    ToolAnnotations,
    create_sdk_mcp_server,
)
from claude_agent_sdk.types import McpSdkServerConfig

from gateway.engine.box.outputs import CommandOutputs
from gateway.engine.environment import KEEPS, PATH, SHELL, SWITCHED_OFF, kept_names, pins
from gateway.engine.hooks import RunHooks
from gateway.engine.own_tools import OwnServer, OwnTool, call_own
from gateway.engine.processes import MARK
from gateway.engine.protocol import ClientSpec, SessionOrigin
from gateway.engine.system_prompt import AgentRules
from gateway.instructions import Instruction, names_of
from gateway.relay.supervisor import RelayProcess
from policies.calls import SUBAGENT_TYPE, TASK_LIST_TOOLS
from policies.configuration import FOLDER
from policies.paths.protected import secret_exclusions
from policies.paths.workspace import ExtraDirectory
from policies.tools import PLANS, is_skill_name

MAX_LINE_BYTES = 64 * 1024 * 1024
"""The longest line read from the agent; the SDK's default of 1 MiB breaks the session (SDK #58)."""

_KEEP_SESSIONS_DAYS = 36_500
"""The agent program deletes sessions after 30 days by default; only the user deletes a
conversation."""

HOST_ROUTES = "CLAUDE_CODE_PROVIDER_MANAGED_BY_HOST"
"""With it the agent takes no provider, address, proxy, key or helper from a settings file, and
keeps its key out of the commands that it starts. A login does not work with it."""

_NOT_LOOKED_INTO = "CLAUDE_CODE_AUTOMOUNT_ROOTS"
"""The agent looks for skills, agents and CLAUDE.md in each folder above its own, up to HOME, except
in those named here."""

NO_INSTRUCTIONS = {"CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1"}
"""With it the agent reads no CLAUDE.md and prepares for none, which takes some 70 ms of processor
time."""

_HELPERS = (
    *("apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "gcpAuthRefresh"),
    *("otelHeadersHelper", "proxyAuthHelper"),
)
"""Settings that name a command to run; they are set to empty."""

_NOT_SAVED_CHARS = 50_000
"""The agent program saves a result of some 25,000 tokens to a file before `PostToolUse` can cut it,
unless the tool states a limit. The limit itself counts for the cut result, and exceeds it."""

_NOT_FOR_AGENTS = (
    *("Agent", "Task", "TaskOutput", "TaskStop", "Workflow", "Monitor", "SendMessage"),
    *("CronCreate", "CronDelete", "CronList", "ScheduleWakeup", "RemoteTrigger"),
    *("EnterPlanMode", "ExitPlanMode", "EnterWorktree", "ExitWorktree"),
    *("BashOutput", "KillShell", "KillBash", "PowerShell", "LSP", "ToolSearch", "WebSearch"),
    *("ListMcpResourcesTool", "ReadMcpResourceTool", "SlashCommand", "MultiEdit"),
)
"""Further tools of the agent program. The list of offered tools excludes them too; this is a second
check."""

_NOT_FOR_SUBAGENTS = frozenset(
    {"Agent", *TASK_LIST_TOOLS, "AskUserQuestion", "EnterPlanMode", "ExitPlanMode"}
)
"""Tools of the agent that talks with the person. The gateway's own tools are for that agent alone,
too."""

_SANDBOXED_BASH: SandboxSettings = {
    "enabled": True,
    "autoAllowBashIfSandboxed": False,  # it would run past the policy
    "allowUnsandboxedCommands": False,
}

_BUILT_IN_PLUGINS_OFF = {"cc-plugin-plugin-authoring@builtin": False}
"""It brings a skill that changes the agent program; the built-in plugin that reads AGENTS.md
stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSetup:
    """What all clients of a server have in common."""

    cli_path: Path
    workspace: Path
    config_dir: Path | None
    """The agent's folder for sessions; None: its own default, for a login on this machine."""
    tools: Sequence[str]
    shell_commands: Sequence[str]
    owner: str
    home: Path | None = None
    """The agent's HOME, so that no person's profile or tool configuration is read; None: the
    server's own, for a login that is kept there."""
    inherited: Collection[str] = ()
    """Names of the server's environment that the agent may have; see `environment`."""
    model_env: Mapping[str, str] = field(default_factory=dict)
    """Further variables that say how the model's service is reached."""
    takes_login: bool = False
    """The agent uses a person's login instead of a key or cloud."""
    shell_prefix: Path | None = None
    """A program that runs the agent's command lines in a box; None: its shell runs them."""
    outputs: CommandOutputs | None = None
    """Learns what commands in the box write while they run."""
    shell_hosts: Sequence[str] = ()
    """What commands in the box reach of the network."""
    temp_dir: Path | None = None
    """The agents' temporary directory; None: the system's."""
    sandboxed_bash: bool = False
    """The agent program itself confines what Bash runs, because the kernel's sandbox does not."""
    asks_person: bool = False
    """A person is asked about commands that are not in `shell_commands`."""
    approvals_file: Path | None = None
    """Lists the configuration of the workspace that a person approved."""
    own_servers: Sequence[OwnServer] = ()
    """The gateway's own tools; a client without them does not see their skills."""
    projects: Sequence[ExtraDirectory] = ()
    """Shared folders beside the workspace."""
    is_users_own: bool = False
    """The workspace belongs to one user, who alone reads its notes."""
    reads_workspace: bool = True
    """Load the workspace's instructions and skills."""
    max_agent_steps: int | None = None
    max_budget_usd: float | None = None
    relay: RelayProcess | None = None
    """Stands between the agents and the model's service; None: the agents reach the service
    themselves."""


def mark_of(setup: AgentSetup, client_id: str) -> str:
    """Return the mark of the client's processes."""
    return f"{setup.owner}:{client_id}"


def _environment(setup: AgentSetup, client_id: str, token: str | None) -> dict[str, str]:
    env = {MARK: mark_of(setup, client_id), "SHELL": SHELL, "PATH": PATH, **SWITCHED_OFF}
    if not set(TASK_LIST_TOOLS).isdisjoint(setup.tools):
        env["CLAUDE_CODE_ENABLE_TASKS"] = "1"
    if not setup.takes_login:
        env[HOST_ROUTES] = "1"
    env[_NOT_LOOKED_INTO] = os.pathsep.join(str(parent) for parent in setup.workspace.parents)
    if setup.home is not None:
        env["HOME"] = str(setup.home)
    if setup.config_dir is not None:
        env["CLAUDE_CONFIG_DIR"] = str(setup.config_dir)
    if setup.temp_dir is not None:
        env |= dict.fromkeys(("TMPDIR", "CLAUDE_CODE_TMPDIR"), str(setup.temp_dir))
    if setup.shell_prefix is not None:
        env["CLAUDE_CODE_SHELL_PREFIX"] = str(setup.shell_prefix)
    env |= setup.model_env
    if token is not None:
        env["ANTHROPIC_API_KEY"] = token
    return {**env, KEEPS: kept_names(env, setup.inherited)}


def _flag_settings(
    setup: AgentSetup,
    spec: ClientSpec,
    env: Mapping[str, str],
    instructions: Sequence[Instruction],
) -> str:
    """Return the settings that override the workspace's: ask for every call, run nothing from a
    file.
    """
    inherited = dict.fromkeys(setup.inherited, "set")  # never their values
    withheld = _withheld_agents(instructions)
    hidden = [*_hidden_skills(setup, spec), *_skills_elsewhere(instructions)]
    return json.dumps(
        {
            "permissions": {"ask": ["*"], **({"deny": withheld} if withheld else {})},
            "disableAllHooks": True,
            "enableAllProjectMcpServers": False,
            **dict.fromkeys(_HELPERS, ""),
            "attribution": {"commit": "", "pr": ""},
            "enabledPlugins": _BUILT_IN_PLUGINS_OFF,
            "skillOverrides": dict.fromkeys(hidden, "off"),
            "claudeMdExcludes": _secrets_as_globs(),
            "cleanupPeriodDays": _KEEP_SESSIONS_DAYS,
            "plansDirectory": PLANS,
            "env": pins({**inherited, **env}, setup.shell_commands),
        }
    )


def _hidden_skills(setup: AgentSetup, spec: ClientSpec) -> list[str]:
    return [
        server.skill for server in setup.own_servers if server.skill and server not in spec.servers
    ]


def _skills_elsewhere(instructions: Sequence[Instruction]) -> list[str]:
    """Return the skills deeper in the workspace, which are found once a file beside them is read.

    A name that is allowed at the top would let them in.
    """
    return [
        f"{item.path.split(f'/{FOLDER}/', 1)[0]}:{item.name}"
        for item in instructions
        if item.kind == "skill" and not item.path.startswith(f"{FOLDER}/")
    ]


def _withheld_agents(instructions: Sequence[Instruction]) -> list[str]:
    """Return rules against the sub-agents that are not given; the gateway defines the others."""
    given = {SUBAGENT_TYPE, *names_of(instructions, ("agent",))}
    names = {item.name for item in instructions if item.kind == "agent" and item.name not in given}
    return [f"Agent({name})" for name in sorted(names) if is_skill_name(name)]


def _secrets_as_globs() -> list[str]:
    """Return a glob of what `@path` in a CLAUDE.md may not include: the files that Grep leaves out.

    The agent program compiles each glob at its start, which takes 85 ms for 140 of them and 10 for
    one.
    """
    names = [pattern.removeprefix("!") for pattern in secret_exclusions().split()]
    return ["**/{" + ",".join(names).replace("[!", "[^") + "}{,/**}"]


def _mount(server: OwnServer, hooks: RunHooks) -> McpSdkServerConfig:
    tools = [_mount_tool(server.full_name(tool), tool, hooks) for tool in server.tools]
    return create_sdk_mcp_server(server.name, tools=tools)


def _mount_tool(full_name: str, tool: OwnTool, hooks: RunHooks) -> SdkMcpTool[Any]:
    async def answer(arguments: dict[str, Any]) -> dict[str, Any]:
        told = await call_own(hooks.own_tools, full_name, arguments)
        return {"content": [{"type": "text", "text": told.text}], "is_error": told.is_error}

    schema = advisory_schema(tool.input_schema, is_foreign=tool.is_foreign)
    unsaved = ToolAnnotations(max_result_size_chars=_NOT_SAVED_CHARS)
    return SdkMcpTool(tool.name, tool.description, schema, handler=answer, annotations=unsaved)


def advisory_schema(schema: Mapping[str, Any], *, is_foreign: bool = False) -> dict[str, Any]:
    """Return the schema of an object whose fields accept anything.

    The SDK validates a call before the tool sees it and answers in its validator's words. So the
    types stay for the model to read, and the tool itself says what is wrong with a value. The
    validator stops at the first form that fits, so it never reads the fields of a foreign schema,
    whose expressions could keep it busy for ever.
    """
    fields = {
        name: {
            "description": field.get("description", ""),
            "anyOf": [{}, dict(field)] if is_foreign else [dict(field), {}],
        }
        for name, field in schema.get("properties", {}).items()
    }
    return {**schema, "properties": fields}


def _rules(setup: AgentSetup) -> AgentRules:
    return AgentRules(
        shell_commands=setup.shell_commands,
        box_hosts=None if setup.shell_prefix is None else setup.shell_hosts,
        projects=setup.projects,
        asks_person=setup.asks_person,
        is_users_own=setup.is_users_own,
    )


def _subagents(
    setup: AgentSetup, instructions: Sequence[Instruction]
) -> dict[str, AgentDefinition] | None:
    """Return the definitions of the sub-agents, if they are offered: the gateway's own, and those
    of the workspace with its instructions and no more tools.

    They take precedence over the files of the same names, which could switch off the questions of
    the gate.
    """
    if "Agent" not in setup.tools:
        return None
    tools = [name for name in setup.tools if name not in _NOT_FOR_SUBAGENTS]
    own = _define_subagent(setup, "A sub-agent with the tools for files and commands.", tools)
    return {SUBAGENT_TYPE: own} | {
        item.name: _define_subagent(
            setup,
            item.description,
            [name for name in tools if item.tools is None or name in item.tools],
            f"\n\n{item.body}",
        )
        for item in instructions
        if item.kind == "agent" and item.is_loaded
    }


def _define_subagent(
    setup: AgentSetup, description: str, tools: list[str], more: str = ""
) -> AgentDefinition:
    prompt = _rules(setup).subagent_prompt(tools)
    return AgentDefinition(
        description=description, prompt=f"{prompt}{more}", tools=tools, background=False
    )


def _not_for_agents(setup: AgentSetup) -> list[str]:
    """Return the tools that the agent must not have; `Task` is another name of `Agent`."""
    offered = {*setup.tools, *(("Task",) if "Agent" in setup.tools else ())}
    return [name for name in _NOT_FOR_AGENTS if name not in offered]


def build_options(
    setup: AgentSetup,
    spec: ClientSpec,
    origin: SessionOrigin,
    hooks: RunHooks,
    client_id: str,
    token: str | None = None,
    instructions: Sequence[Instruction] | None = None,
) -> ClaudeAgentOptions:
    """Return the options, with the relay's token; the caller adds the callback
    for standard error.

    `instructions` are those of the workspace as they were reviewed; None: the agent program loads
    what it finds.
    """
    env = _environment(setup, client_id, token)
    is_filtered = setup.reads_workspace and instructions is not None
    reviewed = instructions or ()
    return ClaudeAgentOptions(
        cli_path=setup.cli_path,
        cwd=setup.workspace,
        env=env,
        model=spec.model,
        system_prompt={
            "type": "custom",
            "prompt": _rules(setup).system_prompt(setup.tools),
            "snapshot": False,  # else a resumed session keeps the rules of the day it began
        },
        tools=list(setup.tools),
        allowed_tools=[],  # these would be approved in advance
        disallowed_tools=_not_for_agents(setup),
        agents=_subagents(setup, reviewed),
        skills=list(names_of(reviewed, ("skill", "command"))) if is_filtered else None,
        setting_sources=["project"] if setup.reads_workspace else [],
        settings=_flag_settings(setup, spec, env, reviewed),
        sandbox=_SANDBOXED_BASH if setup.sandboxed_bash else None,
        mcp_servers={server.name: _mount(server, hooks) for server in spec.servers},
        strict_mcp_config=True,
        can_use_tool=hooks.can_use_tool,
        hooks=hooks.matchers(),
        include_partial_messages=True,
        max_buffer_size=MAX_LINE_BYTES,
        max_turns=setup.max_agent_steps,
        max_budget_usd=setup.max_budget_usd,
        resume=origin.resume,
        fork_session=origin.fork_at is not None,
        resume_session_at=origin.fork_at,
    )
