"""Memory over HTTP: search, context, items, episodes, the chronicle, the outbox, health.

Whose memory it is the server knows by itself; what a request names can only narrow it. Anybody
else's id is as unknown as one that never was.
"""

from http import HTTPStatus
from typing import Annotated, get_args

from fastapi import APIRouter, Depends, Query
from pydantic import AfterValidator
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
    whole_item_fields,
    written_fields,
)
from gateway.http.openapi import takes
from gateway.http.parameters import DEFAULT_LIMIT, Limit, Parameter, read_place
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
_STATUSES: tuple[DeliveryStatus, ...] = get_args(DeliveryStatus)

_Text = Annotated[str, Query(min_length=1, max_length=_MAX_QUERY_CHARS)]
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
    """Gather the labels of a query string; an empty one counts as not given."""
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
    if wanted == ("case",):  # one without an app or environment holds for every one
        scope = SearchScope(
            owner_id=scope.owner_id, or_without=("app_code", "environment"), **scope.labels
        )
    found = await context.memory.search.search(q, scope=scope, kinds=wanted, limit=limit)
    return JsonResponse(found_fields(found))


@router.post("/memory/context", openapi_extra=takes(QueryBody))
async def build_context(context: Context) -> Response:
    """Give what would be injected into a prompt; nothing counts as shown by this."""
    body = await context.body(QueryBody)
    tools: tuple[str, ...] = ()
    if body.conversation_id is not None:
        tools = await context.chat.conversations.recent_tools(context.user_id, body.conversation_id)
    pack = await context.memory.reader.recall(body.query(context.user_id, tools))
    return JsonResponse(context_fields(pack))


@router.get("/memory/items/{item_id}")
async def show_item(context: Context, item_id: str) -> Response:
    """Show one item whole, with where it comes from and what backends made of it."""
    scope = Scope(owner_id=context.user_id)
    item = await context.memory.items.get(item_id, scope)
    if item is None:
        return await _hidden_case(context, item_id)
    episode = await context.memory.episodes.get(item_id, scope) if item.kind == "episode" else None
    links = await context.memory.outbox.links_of(item_id)
    return JsonResponse(whole_item_fields(item, episode, links))


async def _hidden_case(context: Context, item_id: str) -> Response:
    """Show a case that search does not show; it can be forgotten by its id as well."""
    caller = CaseCaller(scope=Scope(owner_id=context.user_id), by="person")
    answer = await context.memory.cases.render(caller, [item_id])
    if isinstance(answer, Refusal):
        raise _no_item()
    return JsonResponse({"id": item_id, "kind": "case", **whole_fields(answer.cases[0])})


@router.delete("/memory/items/{item_id}", status_code=HTTPStatus.NO_CONTENT)
async def forget_item(context: Context, item_id: str) -> Response:
    """Forget an item everywhere; the chronicle keeps only that something was forgotten."""
    if not await context.memory.forget(item_id, Scope(owner_id=context.user_id)):
        raise _no_item()
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.post("/memory/episodes", status_code=HTTPStatus.CREATED, openapi_extra=takes(EpisodeBody))
async def write_episode(context: Context) -> Response:
    """Take an episode: stored, merged into one that is like it, or refused with the reason."""
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
    if cursor:
        read_place("cursor", cursor)
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
        {"intents": [intent_fields(one) for one in page.records], "next_cursor": page.next_cursor}
    )


async def _refuse_unknown(context: RequestContext, conversation_id: str) -> None:
    """Refuse a conversation that is not there and of which nothing is told any more."""
    told = await context.memory.chronicle.page(
        context.user_id, conversation_id=conversation_id, limit=1
    )
    if not told.records:
        await context.chat.conversations.get(context.user_id, conversation_id)


@router.get("/memory/outbox")
async def list_deliveries(
    context: Context, status: Parameter = "", limit: Limit = DEFAULT_LIMIT, cursor: Parameter = ""
) -> Response:
    """List the deliveries of what the caller reads, newest first."""
    page = await context.memory.outbox.page(
        context.user_id, _status(status), limit=limit + 1, before_id=read_place("cursor", cursor)
    )
    more = len(page) > limit
    deliveries = [delivery_fields(one) for one in page[:limit]]
    return JsonResponse(
        {"deliveries": deliveries, "next_cursor": deliveries[-1]["id"] if more else None}
    )


@router.post("/memory/outbox/{delivery_id}/retry")
async def retry_delivery(context: Context, delivery_id: str) -> Response:
    """Make a delivery that is dead or waits due now."""
    if not (delivery_id.isascii() and delivery_id.isdigit() and len(delivery_id) <= _MAX_DIGITS):
        raise _no_delivery()
    delivery = await context.memory.retry(int(delivery_id), context.user_id)
    if delivery is None:
        raise _no_delivery()
    return JsonResponse(delivery_fields(delivery))


@router.get("/memory/health")
async def show_health(context: Context) -> Response:
    """Tell how each backend is."""
    return JsonResponse(await context.memory_health())


_MAX_DIGITS = 15


def _kinds(text: str) -> tuple[ItemKind, ...]:
    wanted = [one.strip() for one in text.split(",") if one.strip()]
    if any(one not in KINDS for one in wanted):
        raise bad_field("kinds", f"`kinds` must be some of {', '.join(KINDS)}, with commas.")
    return tuple(one for one in KINDS if one in wanted) or KINDS


def _status(text: str) -> DeliveryStatus | None:
    if not text:
        return None
    for one in _STATUSES:
        if one == text:
            return one
    raise bad_field("status", f"`status` must be one of {', '.join(_STATUSES)}.")


def _no_item() -> NotFound:
    return NotFound("There is no such item in memory.")


def _no_delivery() -> NotFound:
    return NotFound("There is no such delivery.")
