"""Sessions: conversations with an agent and an environment.

Any conversation of the user is a session; one that was begun elsewhere has Candor's own agent.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from gateway.chat import ConversationView
from gateway.chat.approvals import Approvals
from gateway.conversations.model import (
    COMPLETED,
    ClientObject,
    Conversation,
    ConversationChange,
    Turn,
    TurnEvent,
)
from gateway.doors.anthropic.bodies import AgentReference, SessionBody
from gateway.doors.anthropic.objects import MODEL, NO_AGENT, check_open, find, session_view
from gateway.errors import NotFound, UnprocessableEntity
from gateway.http.context import RequestContext
from gateway.ids import TurnId
from memory.clock import utc_now

_WITH_TURN = frozenset({"turn.started", COMPLETED})
"""Types of events after which a turn is read from the store."""
_OVERRIDES = ("model", "system", "tools", "mcp_servers", "skills")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A session that is to be created."""

    agent: Mapping[str, Any]
    environment_id: str
    title: str
    metadata: Mapping[str, str]


async def wanted(context: RequestContext, body: SessionBody) -> Wanted:
    """Return what a body asks for. Raise `NotFound` if its agent or environment is not known,
    `UnprocessableEntity` if it cannot be used like that.
    """
    chat, user_id = context.chat, context.user_id
    reference = body.agent
    if isinstance(reference, str):
        reference = AgentReference(id=reference)
    given = [name for name in _OVERRIDES if getattr(reference, name) is not None]
    if given:
        raise UnprocessableEntity(
            f"An agent cannot be changed for one session: leave {', '.join(given)} out."
        )
    agent = await find(chat, user_id, "agent", reference.id)
    environment = await find(chat, user_id, "environment", body.environment_id)
    check_open(agent)
    check_open(environment)
    if reference.version not in {None, agent.data["version"]}:
        raise UnprocessableEntity("Only the newest version of an agent can be used.")
    return Wanted({"id": agent.id, **agent.data}, environment.id, body.title or "", body.metadata)


async def create(context: RequestContext, wanted: Wanted) -> ClientObject:
    """Start a conversation with an agent's model."""
    chat, user_id = context.chat, context.user_id
    id_ = await chat.conversations.create(user_id, title=wanted.title)
    if wanted.agent["model"] != MODEL:
        change = ConversationChange(model=wanted.agent["model"])
        await chat.conversations.change(user_id, id_, change)
    now = utc_now()
    session = ClientObject(
        id=id_,
        user_id=user_id,
        kind="session",
        data={
            "agent": wanted.agent,
            "environment_id": wanted.environment_id,
            "metadata": wanted.metadata,
        },
        created_at=now,
        updated_at=now,
        conversation_id=id_,
    )
    await chat.client_objects.put(session)
    return session


@contextmanager
def session_errors() -> Iterator[None]:
    """Raise `NotFound` about a session where it was raised about a conversation."""
    try:
        yield
    except NotFound as exc:
        if exc.specific_code != NotFound.code:
            raise
        raise NotFound("There is no such session.") from exc


async def find_session(context: RequestContext, session_id: str) -> ClientObject:
    """Return a session. Raise `NotFound` if the user has no such conversation."""
    with session_errors():
        view = await context.chat.conversations.get(context.user_id, session_id)
    return await session_of(context, view.conversation)


async def session_of(context: RequestContext, conversation: Conversation) -> ClientObject:
    """Return what a conversation is as a session."""
    known = await context.chat.client_objects.get(context.user_id, "session", conversation.id)
    return known or ClientObject(
        id=conversation.id,
        user_id=context.user_id,
        kind="session",
        data={"agent": NO_AGENT},
        created_at=conversation.created_at,
        updated_at=conversation.last_activity_at,
        conversation_id=conversation.id,
    )


async def show(context: RequestContext, session: ClientObject) -> dict[str, Any]:
    """Return a session as its client sees it; one that waits for a person alone is idle."""
    view = await context.chat.conversations.get(context.user_id, session.id)
    return await _show(context, session, view)


async def show_open(
    context: RequestContext, views: Sequence[ConversationView]
) -> list[dict[str, Any]]:
    """Return those of some conversations that are not archived, whichever servers hold them."""
    sessions = [(await session_of(context, view.conversation), view) for view in views]
    is_open = [(session, view) for session, view in sessions if session.archived_at is None]
    return [await _show(context, session, view) for session, view in is_open]


async def _show(
    context: RequestContext, session: ClientObject, view: ConversationView
) -> dict[str, Any]:
    is_idle = view.state == "idle" or await _waits(context.chat.approvals, session)
    spent = await context.chat.conversations.spending(context.user_id, session.id)
    shown: dict[str, Any] = session_view(
        session, title=view.conversation.title, is_idle=is_idle, spent=spent
    )
    return shown


async def _waits(approvals: Approvals, session: ClientObject) -> bool:
    """Return whether a session waits for a person."""
    listed = await approvals.listed(session.user_id)
    return any(
        approval["state"] == "pending" and approval["conversation_id"] == session.id
        for approval in listed
    )


class Turns:
    """The turns of a session that its events need, loaded as they come."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self.known: dict[TurnId, Turn] = {}

    async def prepare(self, events: Sequence[TurnEvent]) -> None:
        """Load the turns that start or end in some events."""
        for event in events:
            if event.type in _WITH_TURN and not self._is_whole(event.turn_id):
                reader = self._context.chat.reader
                turn = await reader.turn(self._context.user_id, event.turn_id)
                self.known[turn.id] = turn

    def _is_whole(self, turn_id: TurnId) -> bool:
        known = self.known.get(turn_id)
        return known is not None and known.finished_at is not None
