"""A call of a tool as the policy is asked about it, and the tools that no file of rules names."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

TASK_LIST_TOOLS = ("TaskCreate", "TaskGet", "TaskList", "TaskUpdate")
"""The tools of the list of tasks that an agent keeps for itself."""

SUBAGENT_TYPE = "general-purpose"
"""The kind of sub-agent that the gateway defines; no file of the workspace shapes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a tool, as the agent's process reported it before running it."""

    name: str
    input: Mapping[str, Any]
    cwd: str
    """The working directory that relative paths start from, absolute."""
    tool_use_id: str = ""
    agent_id: str | None = None
    """The calling subagent; `None`: the main agent. Both are judged alike."""
    index: int = 0
    """The call's number in its turn, from 1; 0 while it has none. `tool_use_id` may repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnToolRule:
    """What the operator says of a tool of the gateway that no file of rules names."""

    changes: bool = True
    ask: Literal["changes", "always", "never"] = "changes"
    """When a person is asked: about a change, if approvals are on; about each call; never."""


FindOwnToolRule = Callable[[str], OwnToolRule | None]
"""Returns the rule of a tool by its exact name; `None`: there is no such tool now."""
