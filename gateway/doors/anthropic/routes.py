"""Claude Managed Agents, for clients of that service: agents, environments, sessions and events.

A session is a conversation. Closing a stream stops nothing: these clients have an event for that.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import ge, gt, le, lt
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from gateway.conversations.model import ClientObject, ClientObjectKind, ConversationChange
from gateway.conversations.store import UnknownCursor
from gateway.doors.anthropic.bodies import (
    AgentBody,
    AgentChange,
    EnvironmentBody,
    EventsBody,
    SessionBody,
    SessionChange,
    refuse,
    refuse_packages,
)
from gateway.doors.anthropic.errors import AnthropicError
from gateway.doors.anthropic.events import SessionWriter
from gateway.doors.anthropic.history import page_of
from gateway.doors.anthropic.objects import agent_view, check_open, environment_view, find
from gateway.doors.anthropic.sending import apply, begin, check
from gateway.doors.anthropic.sessions import (
    Turns,
    create,
    find_session,
    session_errors,
    show,
    show_open,
    wanted,
)
from gateway.doors.anthropic.stream import SessionStream, failure
from gateway.errors import UnprocessableEntity
from gateway.http.context import Context, RequestContext
from gateway.http.json_response import JsonResponse
from gateway.http.openapi import EVENTS, errors_of, takes
from gateway.http.parameters import Limit, Parameter, bad_field, unknown_cursor
from memory.clock import from_rfc3339, utc_now
from memory.items.ids import opaque_id

router = APIRouter(prefix="/anthropic/v1", responses=errors_of(AnthropicError))

_PAGE: Final = 20
_EVENTS_PAGE: Final = 100
_REPEATED_WITHIN: Final = timedelta(minutes=10)
_TICK: Final = timedelta(milliseconds=1)
"""The finest difference of times in the database."""
_PREVIEWED: Final = frozenset({"agent.message", "agent.thinking"})


@router.post("/agents", openapi_extra=takes(AgentBody))
async def create_agent(context: Context) -> Response:
    """Store an agent: a name, a model and instructions."""
    body = await context.body(AgentBody)
    agent = await _made(context, "agent", {**body.fields(), "version": 1})
    return JsonResponse(agent_view(agent))


@router.get("/agents")
async def list_agents(context: Context, limit: Limit = _PAGE, page: Parameter = "") -> Response:
    """List the user's agents, newest first."""
    agents, next_page = await _listed(context, "agent", limit, page)
    return JsonResponse({"data": [agent_view(agent) for agent in agents], "next_page": next_page})


@router.get("/agents/{agent_id}")
async def show_agent(context: Context, agent_id: str) -> Response:
    """Return an agent."""
    return JsonResponse(agent_view(await find(context.chat, context.user_id, "agent", agent_id)))


@router.post("/agents/{agent_id}", openapi_extra=takes(AgentChange))
async def change_agent(context: Context, agent_id: str) -> Response:
    """Change an agent for the sessions to come."""
    body = await context.body(AgentChange)
    find_it = partial(find, context.chat, context.user_id, "agent", agent_id)
    agent = await _changed(context, find_it, partial(_changed_agent, context, body))
    return JsonResponse(agent_view(agent))


def _changed_agent(context: RequestContext, body: AgentChange, agent: ClientObject) -> ClientObject:
    check_open(agent)
    version, data = agent.data["version"], {**agent.data, **body.fields()}
    is_done = data == agent.data and body.version in {None, version - 1}
    if context.attempt and is_done:  # by the first arrival of this request
        return agent
    if body.version not in {None, version}:
        raise UnprocessableEntity(f"The agent was changed meanwhile; its version is {version}.")
    return replace(agent, data={**data, "version": version + 1})


@router.post("/agents/{agent_id}/archive")
async def archive_agent(context: Context, agent_id: str) -> Response:
    """Take an agent out of use; its sessions go on."""
    find_it = partial(find, context.chat, context.user_id, "agent", agent_id)
    return JsonResponse(agent_view(await _changed(context, find_it, _archived)))


@router.post("/environments", openapi_extra=takes(EnvironmentBody))
async def create_environment(context: Context) -> Response:
    """Store an environment: a name for the one place where this server's agents work."""
    body = await context.body(EnvironmentBody)
    refuse_packages(body.config)
    environment = await _made(context, "environment", body.model_dump(exclude={"config"}))
    return JsonResponse(environment_view(environment))


@router.get("/environments")
async def list_environments(
    context: Context, limit: Limit = _PAGE, page: Parameter = ""
) -> Response:
    """List the user's environments, newest first."""
    found, next_page = await _listed(context, "environment", limit, page)
    views = [environment_view(environment) for environment in found]
    return JsonResponse({"data": views, "next_page": next_page})


@router.get("/environments/{environment_id}")
async def show_environment(context: Context, environment_id: str) -> Response:
    """Return an environment."""
    found = await find(context.chat, context.user_id, "environment", environment_id)
    return JsonResponse(environment_view(found))


@router.post("/environments/{environment_id}/archive")
async def archive_environment(context: Context, environment_id: str) -> Response:
    """Take an environment out of use."""
    find_it = partial(find, context.chat, context.user_id, "environment", environment_id)
    return JsonResponse(environment_view(await _changed(context, find_it, _archived)))


@router.post("/sessions", openapi_extra=takes(SessionBody))
async def create_session(context: Context) -> Response:
    """Start a conversation with an agent, perhaps with first messages."""
    body = await context.body(SessionBody)
    refuse(body, resources="Resources", vault_ids="Vaults", budget="Budgets")
    session = await wanted(context, body)
    make = partial(create, context, session)
    if body.initial_events:
        id_ = await begin(context, body.initial_events, session.agent, make)
        return JsonResponse(await show(context, await find_session(context, id_)))
    return JsonResponse(await show(context, await make()))


@router.get("/sessions")
async def list_sessions(context: Context, limit: Limit = _PAGE, page: Parameter = "") -> Response:
    """List the user's conversations, by last activity; archived ones are left out."""
    try:
        views, next_page = await context.chat.conversations.page(
            context.user_id, limit=limit, cursor=page or None, query=None
        )
    except UnknownCursor as exc:
        raise unknown_cursor("page") from exc
    shown = await show_open(context, views)
    return JsonResponse({"data": shown, "next_page": next_page, "prev_page": None})


@router.get("/sessions/{conversation_id}")
async def show_session(context: Context, conversation_id: str) -> Response:
    """Return a session."""
    return JsonResponse(await show(context, await find_session(context, conversation_id)))


@router.post("/sessions/{conversation_id}", openapi_extra=takes(SessionChange))
async def change_session(context: Context, conversation_id: str) -> Response:
    """Change a session's title and metadata."""
    body = await context.body(SessionChange)
    session = await find_session(context, conversation_id)
    refuse(body, agent="Another agent", vault_ids="Vaults", budget="Budgets")
    check_open(session)
    if body.title:
        change = ConversationChange(title=body.title)
        await context.chat.conversations.change(context.user_id, conversation_id, change)
    if body.metadata is not None:
        find_it = partial(find_session, context, conversation_id)
        session = await _changed(context, find_it, partial(_with_metadata, body.metadata))
    return JsonResponse(await show(context, session))


def _with_metadata(metadata: Mapping[str, str], session: ClientObject) -> ClientObject:
    check_open(session)
    return replace(session, data={**session.data, "metadata": metadata})


@router.post("/sessions/{conversation_id}/archive")
async def archive_session(context: Context, conversation_id: str) -> Response:
    """Make a session read only."""
    find_it = partial(find_session, context, conversation_id)
    return JsonResponse(await show(context, await _changed(context, find_it, _archived)))


@router.delete("/sessions/{conversation_id}")
async def delete_session(context: Context, conversation_id: str) -> Response:
    """Delete a session with its conversation."""
    with session_errors():
        await context.chat.conversations.delete(context.user_id, conversation_id)
    return JsonResponse({"id": conversation_id, "type": "session_deleted"})


@router.post("/sessions/{conversation_id}/events", openapi_extra=takes(EventsBody))
async def send_events(context: Context, conversation_id: str) -> Response:
    """Take messages, interrupts and answers to calls that wait."""
    body = await context.body(EventsBody)
    session = await find_session(context, conversation_id)
    await check(context, session, body.events)
    return JsonResponse({"data": await apply(context, session, body.events)})


@router.get("/sessions/{conversation_id}/events")
async def list_events(
    context: Context,
    conversation_id: str,
    limit: Annotated[int, Query(ge=1, le=1000)] = _EVENTS_PAGE,
    page: Parameter = "",
    order: Literal["asc", "desc"] = "asc",
    types: Annotated[Sequence[str], Query(alias="types[]", max_length=100)] = (),
) -> Response:
    """List a session's events."""
    session = await find_session(context, conversation_id)
    bounds, since = _bounds(context)
    shown, next_page = await page_of(
        context,
        session,
        after=page,
        limit=limit,
        is_descending=order == "desc",
        since=since,
        fits=lambda event: (not types or event["type"] in types) and _is_between(event, bounds),
    )
    return JsonResponse({"data": shown, "next_page": next_page})


@router.get("/sessions/{conversation_id}/events/stream", responses=EVENTS)
async def stream_events(
    context: Context,
    conversation_id: str,
    event_deltas: Annotated[Sequence[str], Query(alias="event_deltas[]", max_length=10)] = (),
) -> Response:
    """Stream a session's events from now on, or after the one in `Last-Event-ID`."""
    after = context.request.headers.get("last-event-id", "")
    with session_errors():
        subscription, known = await context.chat.reader.follow_turns(
            context.user_id, conversation_id, after
        )
    turns = Turns(context)
    writer = SessionWriter(turns.known)
    return context.event_stream(
        subscription,
        conversation_id,
        until_completed=False,
        prepare=turns.prepare,
        pieces=SessionStream(writer, known, _PREVIEWED & set(event_deltas)),
        failure=lambda error, request_id: failure(conversation_id, utc_now(), error, request_id),
    )


_BOUNDS: Final[Mapping[str, Callable[[datetime, datetime], bool]]] = {
    "created_at[gt]": gt,
    "created_at[gte]": ge,
    "created_at[lt]": lt,
    "created_at[lte]": le,
}


def _bounds(context: RequestContext) -> tuple[list[Callable[[datetime], bool]], datetime | None]:
    """Return what the parameters ask of an event's time, and the earliest time that may fit."""
    bounds: list[Callable[[datetime], bool]] = []
    since: datetime | None = None
    for name, compare in _BOUNDS.items():
        text = context.request.query_params.get(name)
        if not text:
            continue
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise bad_field(name, f"`{name}` is not a time in ISO 8601.") from None
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        bounds.append(partial(_compared, compare, moment))
        if compare in {gt, ge}:
            since = moment if since is None else max(since, moment)
    return bounds, since


def _compared(
    compare: Callable[[datetime, datetime], bool], moment: datetime, other: datetime
) -> bool:
    return compare(other, moment)


def _is_between(event: Mapping[str, Any], bounds: Sequence[Callable[[datetime], bool]]) -> bool:
    at = event["processed_at"]
    return not bounds or (at is not None and all(fits(from_rfc3339(at)) for fits in bounds))


async def _made(
    context: RequestContext, kind: ClientObjectKind, data: Mapping[str, Any]
) -> ClientObject:
    """Store a new object, or return the one that a repeated request made before: a recent one with
    the same data that is as it was made.
    """
    now, objects = utc_now(), context.chat.client_objects
    latest = await objects.listed(context.user_id, kind, limit=_PAGE) if context.attempt else ()
    for known in latest:
        is_new = known.updated_at == known.created_at and now - known.created_at < _REPEATED_WITHIN
        if is_new and known.data == data:
            return known
    made = ClientObject(
        id=opaque_id({"agent": "agent", "environment": "env"}[kind]),
        user_id=context.user_id,
        kind=kind,
        data=data,
        created_at=now,
        updated_at=now,
    )
    await objects.put(made)
    return made


async def _changed(
    context: RequestContext,
    find_it: Callable[[], Awaitable[ClientObject]],
    change: Callable[[ClientObject], ClientObject],
) -> ClientObject:
    """Change an object and return it; `change` returns the same one if nothing is to be changed,
    and is asked again if another request has changed it meanwhile.
    """
    while True:
        known = await find_it()
        thing = change(known)
        if thing is known:
            return known
        thing = replace(thing, updated_at=max(utc_now(), known.updated_at + _TICK))
        if await context.chat.client_objects.change(known, thing):
            return thing


def _archived(thing: ClientObject) -> ClientObject:
    return thing if thing.archived_at is not None else replace(thing, archived_at=utc_now())


async def _listed(
    context: RequestContext, kind: ClientObjectKind, limit: int, page: str
) -> tuple[Sequence[ClientObject], str | None]:
    """Return a page of the objects that are not archived, and the next page's cursor."""
    found = await context.chat.client_objects.listed(
        context.user_id, kind, limit=limit + 1, after=page
    )
    shown = found[:limit]
    next_page = shown[-1].id if len(found) > limit else None
    return [client for client in shown if client.archived_at is None], next_page
