"""The system prompt of an agent.

It replaces the agent program's preset, which describes a terminal, a memory folder that the gate
forbids, and programs that may not be started. It depends on the setup alone, so that every
conversation of a workspace sends the same bytes and the model's service can cache them.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from policies.paths.workspace import ExtraDirectory

_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRules:
    """What the agents of a workspace are told of it."""

    shell_commands: Sequence[str]
    box_hosts: Sequence[str] | None
    """The hosts that commands reach; None: only the listed commands run."""
    projects: Sequence[ExtraDirectory]
    """Shared folders."""
    asks_person: bool
    is_users_own: bool
    """The workspace, and its notes, are one user's."""

    def system_prompt(self, tools: Sequence[str]) -> str:
        """Return the system prompt of an agent with these tools.

        An agent without tools answers questions of the gateway, not of a person.
        """
        if not tools:
            return str(_TEXTS["question"])
        parts = [_TEXTS["place"], *self._of_tools(tools)]
        if "Agent" in tools:
            parts.append(_TEXTS["subagents"])
        if "TaskCreate" in tools:
            parts.append(_TEXTS["task_list"])
        parts += [_TEXTS["memory"], _TEXTS["own_notes" if self.is_users_own else "notes"]]
        if "Skill" in tools:
            parts.append(_TEXTS["memory_by_skill"])
        return "".join(parts)

    def subagent_prompt(self, tools: Sequence[str]) -> str:
        """Return the system prompt of a sub-agent with these tools."""
        return "".join([_TEXTS["subagent"], *self._of_tools(tools)])

    def _of_tools(self, tools: Sequence[str]) -> list[str]:
        parts: list[str] = [_TEXTS["tools"]]
        ways = [words for tool, words in _TEXTS["file_tools"].items() if tool in tools]
        if ways:
            sentence = ", ".join(ways)
            parts.append(f"- {sentence[0].upper()}{sentence[1:]}.\n")
        if self.projects:
            parts.append(_describe_projects(self.projects))
        if "Bash" in tools:
            parts.append(self._of_shell())
        if "Skill" in tools:
            parts.append(_TEXTS["skills"])
        return parts

    def _of_shell(self) -> str:
        if self.box_hosts is None:
            return str(_TEXTS["shell_asking" if self.asks_person else "shell"]).format(
                commands=", ".join(self.shell_commands)
            )
        network = _TEXTS["box_network"].format(hosts=", ".join(self.box_hosts))
        told = network if self.box_hosts else _TEXTS["box_no_network"]
        return str(_TEXTS["box"]).format(network=told)


def _describe_projects(projects: Sequence[ExtraDirectory]) -> str:
    rights = ((place.path, "" if place.writable else " (read only)") for place in projects)
    listed = ", ".join(f"`{path}`{right}" for path, right in rights)
    return str(_TEXTS["projects"]).format(projects=listed)
