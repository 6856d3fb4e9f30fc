"""The gateway's own tools as an engine offers them to an agent: names, descriptions and schemas.

Each run brings the caller that answers its calls, so a reused client never acts for another
conversation.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from policies.calls import OwnToolRule

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OwnTool:
    """One tool as the model sees it."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    """JSON Schema of its arguments."""
    is_foreign: bool = False
    """The schema comes from outside: it is shown to the model and never evaluated."""


@dataclass(frozen=True, slots=True, eq=False)
class OwnServer:
    """Tools that are offered together under one name; compared by identity."""

    name: str
    tools: tuple[OwnTool, ...]
    skill: str | None = None
    """The skill that explains the tools; an agent without them does not see it."""
    revision: str = ""
    """What tells servers of one name apart: an agent with another one is not reused."""

    def full_name(self, tool: OwnTool) -> str:
        """Return the name by which the agent and the policies know a tool."""
        return f"mcp__{self.name}__{tool.name}"


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    """The result of a call as the model sees it."""

    text: str
    is_error: bool = False


class OwnToolCaller(Protocol):
    """Answers the calls of the gateway's own tools in one run."""

    async def __call__(self, name: str, arguments: Mapping[str, Any]) -> OwnAnswer:
        """Answer a call that the gate allowed; `name` is the full name, `mcp__server__tool`.

        The agent learns of an exception as a failure, without its text.
        """


class ToolSource(Protocol):
    """Further tools that every conversation has; they may change while the server runs."""

    def servers(self) -> Sequence[OwnServer]:
        """Return the tools that are offered now, by server."""

    def rule_of(self, name: str) -> OwnToolRule | None:
        """Return the policy's rule of a tool by its full name; None if it is not offered now."""

    async def __call__(self, name: str, arguments: Mapping[str, Any]) -> OwnAnswer:
        """Answer a call that the gate allowed; see `OwnToolCaller`."""


_NO_RUN: Final = OwnAnswer("No turn is running that this call could belong to.", is_error=True)
_BROKEN: Final = OwnAnswer("The tool broke; what it did of its work is not known.", is_error=True)


async def call_own(
    caller: OwnToolCaller | None, name: str, arguments: Mapping[str, Any]
) -> OwnAnswer:
    """Return the caller's answer, or an error answer if there is no caller or it raises."""
    if caller is None:
        return _NO_RUN
    try:
        return await caller(name, arguments)
    except Exception:  # noqa: BLE001  the agent is told, and its run goes on
        _log.exception("own_tool_failed", extra={"tool": name})
        return _BROKEN
