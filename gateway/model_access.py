"""How the server reaches its model, and what came with finding that out."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from anyio.abc import TaskGroup

from gateway.credentials import Credential
from gateway.engine.environment import DEFAULT_BASE_URL
from gateway.engine.protocol import Engine
from gateway.mcp_servers.plan import ServerPlan
from gateway.transcripts import TranscriptStore
from memory.remote.small_model import AskModel

_DEMO_KEY = "candor-demo-needs-no-key"

Ping = Callable[[], Awaitable[str | Mapping[str, str] | None]]
"""Returns None or its state if a part works, else a sentence."""


class MakeEngine(Protocol):
    """Makes the server's engine."""

    def __call__(self, tasks: TaskGroup, transcripts: TranscriptStore | None = None, /) -> Engine:
        """Return the engine that runs in a task group, and stores its agents' sessions if there is
        a store for them.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAccess:
    """The model that the server uses."""

    demo: bool
    model: str | None
    secrets: tuple[str, ...] = ()
    """Values that are masked wherever they occur."""
    pings: Mapping[str, Ping] = field(default_factory=dict)
    """Further parts, such as the sandbox."""
    ask_model: AskModel | None = None
    """Asks a small model outside of all conversations; None with the demo model."""
    mcp_servers: Sequence[ServerPlan] = ()
    """The servers of `CANDOR_MCP_FILE`."""
    is_confined: bool = False
    """A wall of the kernel's confines each agent and whatever it starts to the workspace."""


def demo_environment(url: str) -> dict[str, str]:
    """Point the agent at the demo model, whatever else is in the environment."""
    clouds = ("BEDROCK", "VERTEX", "FOUNDRY")
    cleared = ["ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"]
    cleared += [f"CLAUDE_CODE_USE_{cloud}" for cloud in clouds]
    reached = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": _DEMO_KEY}
    return {**dict.fromkeys(cleared, ""), **reached}


def base_url(environ: Mapping[str, str]) -> str:
    """Return the address of the model's service."""
    return environ.get("ANTHROPIC_BASE_URL", "").strip() or DEFAULT_BASE_URL


def service_environment(environ: Mapping[str, str], credential: Credential) -> dict[str, str]:
    """Return the variables to set for a real model; the agent inherits the others.

    The address is always set, because the workspace's own settings could fill in a missing one.
    """
    env = {"ANTHROPIC_BASE_URL": base_url(environ)}
    if credential.kind == "server":  # a private server often needs no key, but the agent does
        env["ANTHROPIC_API_KEY"] = _DEMO_KEY
    return env
