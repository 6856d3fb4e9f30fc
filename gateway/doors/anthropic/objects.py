"""Agents, environments and sessions as their clients see them."""

from collections.abc import Mapping
from typing import Any, Final

from gateway.chat import Chat
from gateway.conversations.model import ClientObject, ClientObjectKind, Spending
from gateway.errors import NotFound, UnprocessableEntity
from gateway.ids import UserId
from memory.clock import rfc3339

MODEL: Final = "candor"
"""The name of the server's own model."""
INSTRUCTIONS: Final = "\n\n--- Instructions of the agent ---\n"
"""Stands between the first message of a session and what its agent's `system` says."""
NO_AGENT: Final[Mapping[str, Any]] = {"id": "", "version": 1, "name": "Candor", "model": MODEL}
"""The agent of a conversation that was begun elsewhere."""


async def find(chat: Chat, user_id: UserId, kind: ClientObjectKind, id_: str) -> ClientObject:
    """Return an object. Raise `NotFound` if the user has none of that id."""
    found = await chat.client_objects.get(user_id, kind, id_)
    if found is None:
        raise NotFound(f"There is no such {kind}.")
    return found


def check_open(thing: ClientObject) -> None:
    """Raise `UnprocessableEntity` if an object is archived."""
    if thing.archived_at is not None:
        raise UnprocessableEntity(f"This {thing.kind} is archived; it takes nothing new.")


def agent_view(agent: ClientObject) -> dict[str, Any]:
    """Return an agent."""
    return {**_times(agent), **agent_fields({"id": agent.id, **agent.data})}


def agent_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return an agent as it stands in its sessions."""
    return {
        "id": data["id"],
        "type": "agent",
        "version": data["version"],
        "name": data["name"],
        "description": data.get("description"),
        "model": {"id": data["model"]},
        "system": data.get("system"),
        "tools": data.get("tools") or [],
        "metadata": data.get("metadata") or {},
        "mcp_servers": [],
        "skills": [],
        "multiagent": None,
        "execution_identity": None,
    }


def environment_view(environment: ClientObject) -> dict[str, Any]:
    """Return an environment; all are where this server runs."""
    return {
        **_times(environment),
        "id": environment.id,
        "type": "environment",
        "name": environment.data["name"],
        "description": environment.data.get("description"),
        "metadata": environment.data.get("metadata") or {},
        "config": {"type": "self_hosted"},
    }


def session_view(session: ClientObject, *, title: str, is_idle: bool, spent: Spending) -> Any:
    """Return a session."""
    return {
        **_times(session),
        "id": session.id,
        "type": "session",
        "status": "idle" if is_idle else "running",
        "title": title or None,
        "agent": agent_fields(session.data["agent"]),
        "environment_id": session.data.get("environment_id"),
        "metadata": session.data.get("metadata") or {},
        "resources": [],
        "vault_ids": [],
        "stats": {},
        "usage": {
            "input_tokens": spent.input_tokens,
            "output_tokens": spent.output_tokens,
            "cache_read_input_tokens": spent.cached_tokens,
        },
        "outcome_evaluations": [],
    }


def _times(thing: ClientObject) -> dict[str, Any]:
    archived = thing.archived_at
    return {
        "created_at": rfc3339(thing.created_at),
        "updated_at": rfc3339(thing.updated_at),
        "archived_at": None if archived is None else rfc3339(archived),
    }
