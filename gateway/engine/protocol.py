"""The interface between the gateway and the engine that runs agents.

It is implemented by the Claude Agent SDK with its agent process, and in tests by a scripted engine;
one suite runs on both. No caller of this interface knows the SDK.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from gateway.engine.events import EngineEvent
from gateway.engine.own_tools import OwnServer, OwnToolCaller
from gateway.relay.reports import ModelCall
from gateway.transcripts import SessionOwner
from policies.calls import ToolCall
from policies.configuration import Concern
from policies.verdict import Allow, Deny, Verdict


class EngineError(Exception):
    """The engine could not do what was asked; `detail` is for the journal alone."""

    def __init__(self, message: str, *, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


class EngineUnavailable(EngineError):
    """No agent process could be started."""


class WorkspaceUntrusted(EngineUnavailable):
    """The workspace has active configuration that nobody approved; no agent was started."""

    def __init__(self, concerns: Sequence[Concern]) -> None:
        told = "; ".join(f"{concern.path}: {concern.what}" for concern in concerns)
        super().__init__("The workspace's configuration is not approved.", detail=told)
        self.concerns = tuple(concerns)

    @property
    def is_approvable(self) -> bool:
        """False if no approval changes anything, because none of the files can be judged."""
        return any(concern.is_approvable for concern in self.concerns)


class SessionGone(EngineError):
    """The session to resume no longer exists."""


class ClientDead(EngineError):
    """The client cannot take a prompt any more; nothing was sent to it."""


class ToolGatekeeper(Protocol):
    """Decides on the tool calls of one run."""

    async def judge(self, call: ToolCall) -> Verdict:
        """Return the policy's verdict without waiting; called first for every call.

        An exception counts as a denial.
        """

    async def decide(self, call: ToolCall) -> Allow | Deny:
        """Decide on a call that `judge` did not deny; may wait for a person, and
        for other calls.
        """

    def returned(self, index: int) -> None:
        """Take note that a call has ended, or at least runs no more. Idempotent."""


Context = Callable[[], Awaitable[str | None]]
"""Returns the context shown to the model with a prompt; may be empty. Never raises.

None: the prompt must not reach the model.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The input of one run."""

    text: str
    """The person's message, unchanged."""
    pictures: Sequence[Mapping[str, Any]] = ()
    """Content blocks for the model, before the text."""
    gatekeeper: ToolGatekeeper
    context: Context | None = None
    """Shown with the text, never inside it. Called when the agent has taken the text, so that a
    search in progress still counts; the model waits for it."""
    call_own: OwnToolCaller | None = None
    """Answers the gateway's own tools; None: the run has none."""
    calls_before: int = 0
    """The number of tool calls in the turn so far; the run continues the numbering."""
    is_blocked: bool = False
    """The model does not see it: the agent only gets ready for a prompt."""
    is_command: bool = False
    """The text is a command to the agent program itself, which the gateway wrote."""
    plan_first: bool = False
    """The agent shows the person a plan with `ExitPlanMode` before it changes anything."""
    has_tools: bool = True
    """The model is offered tools. Where it cannot be kept from calling them, the gatekeeper denies
    the calls.
    """
    owner: SessionOwner | None = None
    """For whom the session is stored, where it is stored beside its files."""
    on_model_call: Callable[[ModelCall], None] | None = None
    """Called when a call of the model's service has ended, if the relay reports that; must not
    raise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSpec:
    """A client's options. Clients with equal fingerprints are interchangeable."""

    model: str | None = None
    servers: tuple[OwnServer, ...] = ()
    """The gateway's own tools that the agent has."""
    instructions: str = ""
    """Names the skills, sub-agents and commands of the workspace that it is given."""
    user_id: str | None = None
    """The user in whose own workspace the agent works; None: there is one for all."""
    work_tree: Path | None = None
    """The folder that it works in, instead of the workspace that holds it."""

    @property
    def fingerprint(self) -> str:
        """Everything that is fixed once the client is connected."""
        servers = "".join(f" server={server.name}@{server.revision}" for server in self.servers)
        tree = "" if self.work_tree is None else f" tree={self.work_tree}"
        user = "" if self.user_id is None else f" user={self.user_id}"
        model = f"model={self.model or ''}{servers}"
        return f"{model} instructions={self.instructions}{user}{tree}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOrigin:
    """The session that a client continues; empty for a new one."""

    resume: str | None = None
    fork_at: str | None = None
    """With `resume`: fork into a new session after this message; the old one stays."""
    warm_up: bool = False
    """The client is not needed yet: it may be run once, so that its first turn is quick."""


class AgentRun(Protocol):
    """A prompt that the agent works on."""

    @property
    def silent_since(self) -> float:
        """Clock time since which the model's service has sent nothing of an answer; infinite if it
        is not asked.

        Without the relay, the time of the agent process's last message; infinite while it compacts
        the session or a sub-agent works, because it sends nothing meanwhile.
        """

    def events(self) -> AsyncIterator[EngineEvent]:
        """Yield the run's events in order; the last is `RunFinished` or `ClientLost`.

        For one reader. Unread events are kept; the agent never waits for the reader.
        """

    async def interrupt(self) -> None:
        """Ask the agent to stop; if it does, the events end with `RunFinished`.

        Returns when the request was sent; never raises. Idempotent.
        """


class AgentClient(Protocol):
    """A live agent with a session. One run at a time."""

    @property
    def client_id(self) -> str:
        """A unique name."""

    @property
    def session_id(self) -> str | None:
        """The session that a later client can resume; None before the first run has begun."""

    def is_alive(self) -> bool:
        """Return whether the process runs and can take a run; cheap."""

    async def start_run(self, prompt: Prompt) -> AgentRun:
        """Send a prompt.

        Raises:
            ClientDead: the process has ended, or is at work on a run that was given up; nothing
                was sent.
        """

    async def close(self) -> None:
        """End the process and its children, in order within a bound. Idempotent.

        Returns when they are gone; cancellation does not shorten it.
        """

    async def kill(self) -> None:
        """End the process and its children at once. Idempotent. The run gets `ClientLost`."""

    def memory_bytes_blocking(self) -> int:
        """Return the proportional memory of the process and its children; 0 if it
        cannot be read.
        """

    def stderr_tail(self) -> Sequence[str]:
        """Return the last lines of the process's standard error, oldest first."""


class Engine(Protocol):
    """Creates agent clients."""

    async def connect(self, spec: ClientSpec, origin: SessionOrigin) -> AgentClient:
        """Start an agent and wait until it can take a prompt; cancellation ends it.

        Raises:
            SessionGone: the session to resume does not exist.
            WorkspaceUntrusted: configuration that the agent would load from the workspace is not
            approved. EngineUnavailable: the agent could not be started.
        """

    async def forget_session(self, session_id: str) -> None:
        """Delete a session's files, if there are any."""

    async def end_orphans(self) -> int:
        """End the agent processes of an earlier, crashed run of this server;
        return their number.
        """

    async def ping(self) -> str | None:
        """Return None if agents can be started, else a sentence that says why not."""
