"""The system prompt of an agent.

It replaces the agent program's preset, which describes a terminal, a memory folder that the gate
forbids, and programs that may not be started. It depends on the setup alone, so that every
conversation of a workspace sends the same bytes and the model's service can cache them.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path

from policies.paths.workspace import ExtraDirectory

_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def build_system_prompt(
    tools: Sequence[str],
    shell_commands: Sequence[str],
    box_hosts: Sequence[str] | None = None,
    projects: Sequence[ExtraDirectory] = (),
    *,
    asks_person: bool = False,
    is_users_own: bool = False,
) -> str:
    """Return the system prompt of an agent with these tools.

    An agent without tools answers questions of the gateway, not of a person. `box_hosts` are the
    hosts that commands reach; None: only the listed commands run. `projects` are shared folders;
    with `is_users_own` the workspace, and its notes, are one user's.
    """
    if not tools:
        return str(_TEXTS["question"])
    rules = _tool_rules(tools, shell_commands, box_hosts, projects, asks_person=asks_person)
    parts = [_TEXTS["place"], *rules]
    if "Agent" in tools:
        parts.append(_TEXTS["subagents"])
    if "TaskCreate" in tools:
        parts.append(_TEXTS["task_list"])
    parts += [_TEXTS["memory"], _TEXTS["own_notes" if is_users_own else "notes"]]
    if "Skill" in tools:
        parts.append(_TEXTS["memory_by_skill"])
    return "".join(parts)


def build_subagent_prompt(
    tools: Sequence[str],
    shell_commands: Sequence[str],
    box_hosts: Sequence[str] | None = None,
    projects: Sequence[ExtraDirectory] = (),
    *,
    asks_person: bool = False,
) -> str:
    """Return the system prompt of a sub-agent with these tools; see `build_system_prompt`."""
    rules = _tool_rules(tools, shell_commands, box_hosts, projects, asks_person=asks_person)
    return "".join([_TEXTS["subagent"], *rules])


def _tool_rules(
    tools: Sequence[str],
    shell_commands: Sequence[str],
    box_hosts: Sequence[str] | None,
    projects: Sequence[ExtraDirectory],
    *,
    asks_person: bool,
) -> list[str]:
    parts: list[str] = [_TEXTS["tools"]]
    ways = [words for tool, words in _TEXTS["file_tools"].items() if tool in tools]
    if ways:
        sentence = ", ".join(ways)
        parts.append(f"- {sentence[0].upper()}{sentence[1:]}.\n")
    if projects:
        parts.append(_describe_projects(projects))
    if "Bash" in tools:
        parts.append(_describe_shell(shell_commands, box_hosts, asks_person=asks_person))
    if "Skill" in tools:
        parts.append(_TEXTS["skills"])
    return parts


def _describe_projects(projects: Sequence[ExtraDirectory]) -> str:
    rights = ((place.path, "" if place.writable else " (read only)") for place in projects)
    listed = ", ".join(f"`{path}`{right}" for path, right in rights)
    return str(_TEXTS["projects"]).format(projects=listed)


def _describe_shell(
    commands: Sequence[str], box_hosts: Sequence[str] | None, *, asks_person: bool
) -> str:
    if box_hosts is None:
        return str(_TEXTS["shell_asking" if asks_person else "shell"]).format(
            commands=", ".join(commands)
        )
    network = _TEXTS["box_network"].format(hosts=", ".join(box_hosts))
    return str(_TEXTS["box"]).format(network=network if box_hosts else _TEXTS["box_no_network"])
