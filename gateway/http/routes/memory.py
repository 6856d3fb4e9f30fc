"""Memory over HTTP: search, context, items, episodes, the chronicle, the outbox, health.

The owner is the request's user; labels of the request only narrow the owner's memory. The id of another
owner's item is not found, like an id that never existed.
"""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import AfterValidator, BeforeValidator
from starlette.responses import Response

from gateway.errors import NotFound
from gateway.http.context import Context, RequestContext
from gateway.http.json_response import JsonResponse
from gateway.http.memory_bodies import EpisodeBody, QueryBody, ScopeBody
from gateway.http.memory_views import (
    context_fields,
    delivery_fields,
    found_fields,
    intent_fields,
    item_fields,
    written_fields,
)
from gateway.http.openapi import takes
from gateway.http.parameters import DEFAULT_LIMIT, Limit, Parameter, read_cursor, read_id
from gateway.http.schemas import MAX_NAME_CHARS, label, name_or_nothing
from gateway.http.validation_errors import bad_field
from gateway.turns.case_fields import whole_fields
from memory.cases.caller import label_of
from memory.cases.case import CaseCaller
from memory.cases.results import Refusal
from memory.items import KINDS, ItemKind
from memory.outbox.delivery import DeliveryStatus
from memory.scope import Scope, SearchScope

router = APIRouter()

_MAX_QUERY_CHARS = 10_000
_FEW = 10

_Text = Annotated[str, Query(min_length=1, max_length=_MAX_QUERY_CHARS)]
_Status = Annotated[DeliveryStatus | None, BeforeValidator(lambda text: text or None), Query()]
_Label = Annotated[str, Query(max_length=MAX_NAME_CHARS), AfterValidator(label)]
_Name = Annotated[str, Query(max_length=MAX_NAME_CHARS), AfterValidator(name_or_nothing)]


def _labels(
    user_id: _Name = "",
    agent_id: _Name = "",
    project_id: _Name = "",
    workflow_id: _Name = "",
    app_code: _Label = "",
    environment: _Label = "",
) -> ScopeBody:
    """Return the labels of a query string; an empty one counts as not given."""
    return ScopeBody(
        user_id=user_id or None,
        agent_id=agent_id or None,
        project_id=project_id or None,
        workflow_id=workflow_id or None,
        app_code=label_of(app_code),
        environment=label_of(environment),
    )


@router.get("/memory/search")
async def search_memory(
    context: Context,
    labels: Annotated[ScopeBody, Depends(_labels)],
    q: _Text,
    kinds: Parameter = "",
    limit: Limit = _FEW,
) -> Response:
    """Find notes, episodes and cases, best first."""
    wanted = _kinds(kinds)
    scope = labels.scope(context.user_id)
    if wanted == ("case",):  # a case without an app or environment is valid in all of them
        scope = SearchScope(
            owner_id=scope.owner_id, or_without=("app_code", "environment"), **scope.labels
        )
    found = await context.memory.search.search(q, scope=scope, kinds=wanted, limit=limit)
    return JsonResponse(found_fields(found))


@router.post("/memory/context", openapi_extra=takes(QueryBody))
async def build_context(context: Context) -> Response:
    """Return what would be injected into a prompt; nothing counts as shown."""
    body = await context.body(QueryBody)
    tools: tuple[str, ...] = ()
    if body.conversation_id is not None:
        tools = await context.chat.conversations.recent_tools(context.user_id, body.conversation_id)
    pack = await context.memory.reader.recall(body.query(context.user_id, tools))
    return JsonResponse(context_fields(pack))


@router.get("/memory/items/{item_id}")
async def show_item(context: Context, item_id: str) -> Response:
    """Show a whole item with its provenance and what backends made of it."""
    scope = Scope(owner_id=context.user_id)
    item = await context.memory.items.get(item_id, scope)
    if item is None:
        return await _hidden_case(context, item_id)
    episode = await context.memory.episodes.get(item_id, scope) if item.kind == "episode" else None
    links = await context.memory.outbox.links_of(item_id)
    return JsonResponse(item_fields(item, episode, links))


async def _hidden_case(context: Context, item_id: str) -> Response:
    """Show a case that search hides; its id stays valid."""
    caller = CaseCaller(scope=Scope(owner_id=context.user_id), by="person")
    answer = await context.memory.cases.render(caller, [item_id])
    if isinstance(answer, Refusal):
        raise _no_item()
    return JsonResponse({"id": item_id, "kind": "case", **whole_fields(answer.cases[0])})


@router.delete("/memory/items/{item_id}", status_code=HTTPStatus.NO_CONTENT)
async def forget_item(context: Context, item_id: str) -> Response:
    """Delete an item everywhere; the chronicle keeps only that an item was deleted."""
    if not await context.memory.forget(item_id, Scope(owner_id=context.user_id)):
        raise _no_item()
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.post("/memory/episodes", status_code=HTTPStatus.CREATED, openapi_extra=takes(EpisodeBody))
async def write_episode(context: Context) -> Response:
    """Write an episode: it is stored, merged into a similar one, or refused with the reason."""
    body = await context.body(EpisodeBody)
    written = await context.memory.write(body.draft(context.user_id))
    return JsonResponse(written_fields(written), status_code=HTTPStatus.CREATED)


@router.get("/memory/intents")
async def list_intents(
    context: Context,
    key: Parameter = "",
    conversation_id: Parameter = "",
    limit: Limit = DEFAULT_LIMIT,
    cursor: Parameter = "",
) -> Response:
    """List the chronicle, newest first."""
    read_cursor("cursor", cursor)
    page = await context.memory.chronicle.page(
        context.user_id,
        key=key or None,
        conversation_id=conversation_id or None,
        limit=limit,
        cursor=cursor or None,
    )
    if conversation_id and not page.records:
        await _refuse_unknown(context, conversation_id)
    return JsonResponse(
        {
            "intents": [intent_fields(record) for record in page.records],
            "next_cursor": page.next_cursor,
        }
    )


async def _refuse_unknown(context: RequestContext, conversation_id: str) -> None:
    """Refuse a conversation that neither exists nor has records."""
    page = await context.memory.chronicle.page(
        context.user_id, conversation_id=conversation_id, limit=1
    )
    if not page.records:
        await context.chat.conversations.get(context.user_id, conversation_id)


@router.get("/memory/outbox")
async def list_deliveries(
    context: Context, status: _Status = None, limit: Limit = DEFAULT_LIMIT, cursor: Parameter = ""
) -> Response:
    """List the deliveries of what the caller reads, newest first."""
    page = await context.memory.outbox.page(
        context.user_id, status, limit=limit + 1, before_id=read_cursor("cursor", cursor)
    )
    more = len(page) > limit
    deliveries = [delivery_fields(delivery) for delivery in page[:limit]]
    return JsonResponse(
        {"deliveries": deliveries, "next_cursor": deliveries[-1]["id"] if more else None}
    )


@router.post("/memory/outbox/{delivery_id}/retry")
async def retry_delivery(context: Context, delivery_id: str) -> Response:
    """Make a dead or waiting delivery due now."""
    known_id = read_id(delivery_id)
    delivery = None
    if known_id is not None:
        delivery = await context.memory.retry(known_id, context.user_id)
    if delivery is None:
        raise NotFound("There is no such delivery.")
    return JsonResponse(delivery_fields(delivery))


@router.get("/memory/health")
async def show_health(context: Context) -> Response:
    """Return the state of each backend."""
    return JsonResponse(await context.memory_health())


def _kinds(text: str) -> tuple[ItemKind, ...]:
    wanted = {kind.strip() for kind in text.split(",")} - {""}
    if not wanted <= set(KINDS):
        raise bad_field("kinds", f"`kinds` must be some of {', '.join(KINDS)}, with commas.")
    return tuple(kind for kind in KINDS if kind in wanted) or KINDS


def _no_item() -> NotFound:
    return NotFound("There is no such item in memory.")
