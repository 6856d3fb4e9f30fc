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
from gateway.http.answers import JsonAnswer
from gateway.http.complaints import bad_field
from gateway.http.description import takes
from gateway.http.memory_bodies import EpisodeBody, QueryBody, ScopeBody
from gateway.http.memory_views import (
    context_fields,
    delivery_fields,
    found_fields,
    intent_fields,
    whole_item_fields,
    written_fields,
)
from gateway.http.parameters import DEFAULT_LIMIT, Limit, Parameter, read_place
from gateway.http.schemas import MAX_NAME_CHARS, label, name_or_nothing
from gateway.http.services import Call, Caller
from gateway.turns.casefields import whole_fields
from memory.cases.calling import label_of
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
    call: Caller,
    labels: Annotated[ScopeBody, Depends(_labels)],
    q: _Text,
    kinds: Parameter = "",
    limit: Limit = _FEW,
) -> Response:
    """Find notes, episodes and cases, best first."""
    wanted = _kinds(kinds)
    scope = labels.scope(call.user_id)
    if wanted == ("case",):  # one without an app or environment holds for every one
        scope = SearchScope(
            owner_id=scope.owner_id, or_without=("app_code", "environment"), **scope.labels
        )
    found = await call.memory.search.search(q, scope=scope, kinds=wanted, limit=limit)
    return JsonAnswer(found_fields(found))


@router.post("/memory/context", openapi_extra=takes(QueryBody))
async def build_context(call: Caller) -> Response:
    """Give what would be injected into a prompt; nothing counts as shown by this."""
    body = await call.body(QueryBody)
    tools: tuple[str, ...] = ()
    if body.conversation_id is not None:
        tools = await call.chat.recent_tools(call.user_id, body.conversation_id)
    pack = await call.memory.reader.recall(body.query(call.user_id, tools))
    return JsonAnswer(context_fields(pack))


@router.get("/memory/items/{item_id}")
async def show_item(call: Caller, item_id: str) -> Response:
    """Show one item whole, with where it comes from and what backends made of it."""
    scope = Scope(owner_id=call.user_id)
    item = await call.memory.items.get(item_id, scope)
    if item is None:
        return await _hidden_case(call, item_id)
    episode = await call.memory.episodes.get(item_id, scope) if item.kind == "episode" else None
    links = await call.memory.outbox.links_of(item_id)
    return JsonAnswer(whole_item_fields(item, episode, links))


async def _hidden_case(call: Caller, item_id: str) -> Response:
    """Show a case that search does not show; it can be forgotten by its id as well."""
    caller = CaseCaller(scope=Scope(owner_id=call.user_id), by="person")
    answer = await call.memory.cases.render(caller, [item_id])
    if isinstance(answer, Refusal):
        raise _no_item()
    return JsonAnswer({"id": item_id, "kind": "case", **whole_fields(answer.cases[0])})


@router.delete("/memory/items/{item_id}", status_code=HTTPStatus.NO_CONTENT)
async def forget_item(call: Caller, item_id: str) -> Response:
    """Forget an item everywhere; the chronicle keeps only that something was forgotten."""
    if not await call.memory.forget(item_id, Scope(owner_id=call.user_id)):
        raise _no_item()
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.post("/memory/episodes", status_code=HTTPStatus.CREATED, openapi_extra=takes(EpisodeBody))
async def write_episode(call: Caller) -> Response:
    """Take an episode: stored, merged into one that is like it, or refused with the reason."""
    body = await call.body(EpisodeBody)
    written = await call.memory.write(body.draft(call.user_id))
    return JsonAnswer(written_fields(written), status_code=HTTPStatus.CREATED)


@router.get("/memory/intents")
async def list_intents(
    call: Caller,
    key: Parameter = "",
    conversation_id: Parameter = "",
    limit: Limit = DEFAULT_LIMIT,
    cursor: Parameter = "",
) -> Response:
    """List the chronicle, newest first."""
    if cursor:
        read_place("cursor", cursor)
    page = await call.memory.chronicle.page(
        call.user_id,
        key=key or None,
        conversation_id=conversation_id or None,
        limit=limit,
        cursor=cursor or None,
    )
    if conversation_id and not page.records:
        await _refuse_unknown(call, conversation_id)
    return JsonAnswer(
        {"intents": [intent_fields(one) for one in page.records], "next_cursor": page.next_cursor}
    )


async def _refuse_unknown(call: Call, conversation_id: str) -> None:
    """Refuse a conversation that is not there and of which nothing is told any more."""
    told = await call.memory.chronicle.page(call.user_id, conversation_id=conversation_id, limit=1)
    if not told.records:
        await call.chat.get(call.user_id, conversation_id)


@router.get("/memory/outbox")
async def list_deliveries(
    call: Caller, status: Parameter = "", limit: Limit = DEFAULT_LIMIT, cursor: Parameter = ""
) -> Response:
    """List the deliveries of what the caller reads, newest first."""
    page = await call.memory.outbox.page(
        call.user_id, _status(status), limit=limit + 1, before_id=read_place("cursor", cursor)
    )
    more = len(page) > limit
    deliveries = [delivery_fields(one) for one in page[:limit]]
    return JsonAnswer(
        {"deliveries": deliveries, "next_cursor": deliveries[-1]["id"] if more else None}
    )


@router.post("/memory/outbox/{delivery_id}/retry")
async def retry_delivery(call: Caller, delivery_id: str) -> Response:
    """Make a delivery that is dead or waits due now."""
    if not (delivery_id.isascii() and delivery_id.isdigit() and len(delivery_id) <= _MAX_DIGITS):
        raise _no_delivery()
    delivery = await call.memory.retry(int(delivery_id), call.user_id)
    if delivery is None:
        raise _no_delivery()
    return JsonAnswer(delivery_fields(delivery))


@router.get("/memory/health")
async def show_health(call: Caller) -> Response:
    """Tell how each backend is."""
    return JsonAnswer(await call.memory_health())


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
