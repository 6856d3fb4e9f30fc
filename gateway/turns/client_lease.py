"""The agent client of one turn: taken from the pool, replaced if it died, returned once."""

from collections.abc import Iterator
from functools import partial

import anyio

from gateway.conversations.model import Conversation
from gateway.engine.held_client import Lease
from gateway.engine.own_tools import OwnServer, OwnToolCaller
from gateway.engine.protocol import (
    AgentClient,
    ClientSpec,
    EngineError,
    EngineUnavailable,
    SessionOrigin,
    WorkspaceUntrusted,
)
from gateway.ids import ConversationId
from gateway.turns.case_tools import CASE_SERVER, CaseCalls, caller_in
from gateway.turns.context import TurnContext, TurnParts
from gateway.turns.further_tools import FurtherTools
from gateway.turns.memory_tools import (
    MEMORY_SERVER,
    READING_MEMORY_SERVER,
    ConversationMessages,
    MemoryCalls,
    OwnCalls,
    SwitchedCalls,
)
from gateway.turns.reply import Cause
from gateway.turns.sentences import describe_concerns
from gateway.turns.turn_memory import TurnMemory
from gateway.turns.workspaces import OpenWorkspace, OpenWorkspaces
from gateway.turns.worktrees import Worktrees


def own_servers(
    memory: TurnMemory, further: FurtherTools, conversation: Conversation | None = None
) -> Iterator[OwnServer]:
    """Yield the servers of the gateway's own tools that a conversation has, a new
    one by default.
    """
    if memory.lookup is not None and (conversation is None or conversation.memory_enabled):
        yield MEMORY_SERVER if memory.fact_tools is not None else READING_MEMORY_SERVER
    if memory.cases is not None and conversation is not None and conversation.uses_cases:
        yield CASE_SERVER
    yield from further.servers()


def own_calls(context: TurnContext) -> OwnCalls:
    """Return what answers the gateway's own tools in a turn."""
    parts, turn, conversation = context.parts, context.turn, context.conversation
    memory = parts.memory
    callers: dict[str, OwnToolCaller] = {**parts.further_tools.callers()}
    if memory.lookup is not None and conversation.memory_enabled:
        calls = MemoryCalls(
            memory=memory.lookup,
            facts=memory.fact_tools,
            conversation=conversation,
            turn=turn,
            tools=memory.tools,
            messages=ConversationMessages(parts.turns, turn),
            guard=context.chronicle.guard,
        )
        callers[MEMORY_SERVER.name] = SwitchedCalls(calls, context.has_memory_on)
    if memory.cases is not None and conversation.uses_cases:
        cases = CaseCalls(memory.cases, partial(caller_in, conversation, memory.tools))
        callers[CASE_SERVER.name] = SwitchedCalls(
            cases, context.has_cases_on, "The memory of cases"
        )
    return OwnCalls(callers)


def client_of(
    parts: TurnParts, conversation: Conversation, workspace: OpenWorkspace
) -> tuple[ConversationId, ClientSpec, SessionOrigin]:
    """Return what the pool is asked with for the client of a conversation."""
    spec = ClientSpec(
        model=conversation.model or parts.default_model,
        servers=tuple(own_servers(parts.memory, parts.further_tools, conversation)),
        instructions=workspace.skills.revision,
        user_id=workspace.user_id,
        work_tree=workspace.work_tree,
    )
    origin = SessionOrigin(resume=conversation.session_id, fork_at=conversation.fork_at)
    return conversation.id, spec, origin


class ClientLease:
    """One turn's lease. If `take` is cancelled, `give_back` still returns the client."""

    def __init__(self, context: TurnContext) -> None:
        self._context = context
        self._lease: Lease | None = None

    @property
    def client(self) -> AgentClient | None:
        """The client, or None."""
        return self._lease.client if self._lease else None

    async def take(self, conversation: Conversation, *, after_death: bool = False) -> Cause | None:
        """Take the conversation's client and report what it lost; return why if there is none."""
        parts, began_s = self._context.parts, anyio.current_time()
        await self._context.workspace.skills.refresh()
        try:
            because = self._context.workspace.missing_because
            if because is not None:
                told = "The workspace of the conversation cannot be opened."
                raise EngineUnavailable(told, detail=because)
            self._lease = await parts.pool.acquire(
                *client_of(parts, conversation, self._context.workspace)
            )
        except EngineError as exc:
            self._context.trace.step("client", began_s, origin="none")
            cause: Cause = "unavailable"
            if isinstance(exc, WorkspaceUntrusted):
                cause = "untrusted" if exc.is_approvable else "unjudged"
                self._context.untrusted = describe_concerns(exc.concerns, self._context.language)
            self._context.journal.write(
                "error", where="engine", message=str(exc), detail=exc.detail
            )
            return cause
        parts.metrics.clients_connected_total.labels(origin=self._lease.origin).inc()
        self._context.trace.step(
            "client",
            began_s,
            origin=self._lease.origin,
            session_lost=self._lease.session_lost,
            client_died=self._lease.client_died or after_death,
        )
        if self._lease.session_lost:
            parts.metrics.sessions_lost_total.inc()
            self._context.notice("session_lost")
        elif self._lease.client_died or after_death:
            self._context.notice("client_restarted")
        return None

    @property
    def is_session_lost(self) -> bool:
        """True if the client has begun without the session that it was to resume."""
        return self._lease is not None and self._lease.session_lost

    async def renew(self, conversation: Conversation) -> Cause | None:
        """Take a client with another session than the one that the conversation had; return why if
        there is none.
        """
        with anyio.CancelScope(shield=True):
            await self._context.parts.pool.discard(conversation.id)
        self._lease = None
        return await self.take(conversation)

    async def replace(self, conversation: Conversation) -> Cause | None:
        """Take another client for one that died; return why if there is none."""
        with anyio.CancelScope(shield=True):
            await self._context.parts.pool.discard(conversation.id)
        self._lease = None
        return await self.take(conversation, after_death=True)

    async def give_back(self, *, is_idle: bool) -> None:
        """Return the client to the pool, or kill it unless `is_idle`: it may still be working."""
        if self._lease is None:
            return
        self._lease = None
        pool, conversation_id = self._context.parts.pool, self._context.turn.conversation_id
        if is_idle:
            pool.release(conversation_id)
        else:
            with anyio.CancelScope(shield=True):
                await pool.discard(conversation_id)


def usual_spec(
    model: str | None,
    memory: TurnMemory,
    further: FurtherTools,
    workspaces: OpenWorkspaces,
    worktrees: Worktrees,
) -> ClientSpec | None:
    """Return the options of an agent for a new conversation, which the user who was here last may
    begin; None if nobody was, or the conversation gets a folder that is not there yet.
    """
    workspace = workspaces.last
    if workspace is None or worktrees.is_on:
        return None
    return ClientSpec(
        model=model,
        servers=tuple(own_servers(memory, further)),
        instructions=workspace.skills.revision,
        user_id=workspace.user_id,
    )
