"""The seam between the gateway and whatever runs an agent.

The Claude Agent SDK with its agent process stands behind it, and in tests a scripted engine; one suite
runs on both. Nothing above this seam knows the SDK.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from gateway.engine.events import EngineEvent
from gateway.engine.own_tools import OwnServer, OwnToolCaller
from policies.configuration import Concern
from policies.tools import ToolCall
from policies.verdict import Allow, Deny, Verdict


class EngineError(Exception):
    """The engine could not do what was asked; `detail` is for the journal alone."""

    def __init__(self, message: str, *, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


class EngineUnavailable(EngineError):
    """No agent process could be started."""


class WorkspaceUntrusted(EngineUnavailable):
    """The workspace's own configuration would act, and nobody approved it: no agent was started."""

    def __init__(self, concerns: Sequence[Concern]) -> None:
        told = "; ".join(f"{concern.path}: {concern.what}" for concern in concerns)
        super().__init__("The workspace's configuration is not approved.", detail=told)
        self.concerns = tuple(concerns)


class SessionGone(EngineError):
    """The session to resume does not exist any more."""


class ClientDead(EngineError):
    """The client can take no prompt any more; nothing was sent to it."""


class ToolGatekeeper(Protocol):
    """Who decides on the tool calls of one run."""

    async def judge(self, call: ToolCall) -> Verdict:
        """Say at once what the policy says; asked for every call, before anything else.

        Whatever it raises counts as a denial.
        """
        ...

    async def decide(self, call: ToolCall) -> Allow | Deny:
        """Give the last word on a call that `judge` did not deny; may wait for a person."""
        ...


Context = Callable[[], Awaitable[str]]
"""Gives what is shown to the model beside a prompt; empty: nothing. Never raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What one run is asked."""

    text: str
    """What the person wrote, as they wrote it."""
    gatekeeper: ToolGatekeeper
    context: Context | None = None
    """Shown beside the text, never inside it; None: nothing. Asked for when the agent has taken the text,
    so that what is still being looked for then is shown as well; the model waits for it."""
    call_own: OwnToolCaller | None = None
    """Answers the gateway's own tools; None: the run has none."""
    calls_before: int = 0
    """How many tool calls the turn has made so far; the run numbers its own from there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSpec:
    """What a client is made of. Clients with equal fingerprints may stand in for each other."""

    model: str | None = None
    servers: tuple[OwnServer, ...] = ()
    """The gateway's own tools that the agent has."""

    @property
    def fingerprint(self) -> str:
        """Name everything that is frozen once the client is connected."""
        servers = "".join(f" server={server.name}" for server in self.servers)
        return f"model={self.model or ''}{servers}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOrigin:
    """Which session a client continues; all empty: a fresh one."""

    resume: str | None = None
    fork_at: str | None = None
    """With `resume`: branch off into a new session after this message; the old one stays."""


class AgentRun(Protocol):
    """One prompt on its way through the agent."""

    @property
    def heard_at(self) -> float:
        """Clock time of the last message from the agent process, of whatever kind.

        Infinite while the agent compacts the session: it says nothing until that is done.
        """
        ...

    def events(self) -> AsyncIterator[EngineEvent]:
        """Give the run's events in order; the last is `RunFinished` or `ClientLost`.

        One reader. The agent never waits for it: what is not read yet is kept.
        """
        ...

    async def interrupt(self) -> None:
        """Ask the agent to stop; the events go on to a `RunFinished`, if it obeys.

        Returns when the request was sent; never raises. May be called twice.
        """
        ...


class AgentClient(Protocol):
    """A live agent with a session. One run at a time."""

    @property
    def client_id(self) -> str:
        """Name of this client, unlike any other's."""
        ...

    @property
    def session_id(self) -> str | None:
        """The session that a later client can resume; None before the first run has begun."""
        ...

    def is_alive(self) -> bool:
        """Whether a run can be started, judged by the process itself; cheap."""
        ...

    async def start_run(self, prompt: Prompt) -> AgentRun:
        """Send a prompt.

        Raises:
            ClientDead: the process has ended, or is at work on a run that was given up; nothing
                was sent.
        """
        ...

    async def close(self) -> None:
        """End the process and its children, politely first; bounded; idempotent.

        Returns when they are gone. Not cut short by cancellation.
        """
        ...

    async def kill(self) -> None:
        """End the process and its children at once. Idempotent. The run gets `ClientLost`."""
        ...

    def memory_bytes_blocking(self) -> int:
        """Proportional memory of the process and its children; 0 where it cannot be read."""
        ...

    def stderr_tail(self) -> Sequence[str]:
        """The last lines that the process wrote to standard error, oldest first."""
        ...


class Engine(Protocol):
    """Makes agent clients."""

    async def connect(self, spec: ClientSpec, origin: SessionOrigin) -> AgentClient:
        """Start an agent and wait until it can take a prompt; cancelling ends it again.

        Raises:
            SessionGone: the session to resume is not there.
            WorkspaceUntrusted: what the agent would load from the workspace is not approved.
            EngineUnavailable: the agent could not be started.
        """
        ...

    async def forget_session(self, session_id: str) -> None:
        """Delete what is kept of a session. No error where nothing is."""
        ...

    async def end_orphans(self) -> int:
        """End agent processes that an earlier, crashed run of this server left; tell how many."""
        ...

    async def ping(self) -> str | None:
        """None when agents can be started, else a sentence that says why not."""
        ...
