"""Memory over HTTP: search, context, items, export, episodes, the chronicle, the outbox, health.

The owner is the request's user; labels of the request only narrow the owner's memory. The id of
another owner's item is not found, like an id that never existed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import AfterValidator, BeforeValidator
from starlette.responses import Response

from gateway.errors import Conflict, NotFound
from gateway.http.context import Context, RequestContext
from gateway.http.json_response import JsonLines, JsonResponse, fields_of
from gateway.http.memory_bodies import (
    EpisodeBody,
    FactBody,
    FactChangeBody,
    ImportBody,
    ProfileBody,
    QueryBody,
    ScopeBody,
)
from gateway.http.memory_views import (
    INTENT,
    PROFILE,
    context_fields,
    delivery_fields,
    fact_fields,
    found_fields,
    item_fields,
    page_fields,
    written_fields,
)
from gateway.http.openapi import takes
from gateway.http.parameters import (
    DEFAULT_LIMIT,
    Limit,
    Parameter,
    bad_field,
    read_cursor,
    read_id,
    unknown_cursor,
)
from gateway.http.schemas import MAX_NAME_CHARS, label, name_or_nothing
from gateway.turns.case_fields import whole_fields
from memory.cases.caller import label_of
from memory.cases.case import CaseCaller
from memory.cases.results import Refusal
from memory.facts.gate import FactConflict, FactRefused
from memory.intents.observe import observed_fields
from memory.intents.registry import UnknownIntent, form_of, required_intent_keys
from memory.items.item import KINDS, ItemKind
from memory.items.scope import Scope, SearchScope
from memory.items.store import UnknownCursor
from memory.items.timespan import TimeSpan
from memory.outbox.delivery import DeliveryStatus
from memory.service.transfer import NotTransferable

router = APIRouter()

_MAX_QUERY_CHARS = 10_000
_FEW = 10
_RESTORED = ("stored", "merged", "there", "refused", "left_out", "never_saved")

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
    since: Parameter = "",
    until: Parameter = "",
) -> Response:
    """Find notes, episodes and cases, best first."""
    wanted = _kinds(kinds)
    span = _span(since, until)
    scope = labels.scope(context.user_id)
    if wanted == ("case",):  # a case without an app or environment is valid in all of them
        scope = SearchScope(
            owner_id=scope.owner_id, or_without=("app_code", "environment"), **scope.labels
        )
    found = await context.memory.search.search(q, scope=scope, kinds=wanted, limit=limit, span=span)
    return JsonResponse(found_fields(found))


@router.post("/memory/context", openapi_extra=takes(QueryBody))
async def build_context(context: Context) -> Response:
    """Return what would be injected into a prompt; nothing counts as shown."""
    body = await context.body(QueryBody)
    query = body.query(context.user_id)
    if body.conversation_id is not None:
        query = await context.chat.conversations.query_in(
            context.user_id, body.conversation_id, query
        )
    pack = await context.memory.reader.recall(query)
    return JsonResponse(context_fields(pack))


@router.get("/memory/items")
async def list_items(
    context: Context,
    kind: Parameter = "",
    q: Parameter = "",
    limit: Limit = DEFAULT_LIMIT,
    cursor: Parameter = "",
) -> Response:
    """List what the user has, latest first; with `q`, what contains all of its words."""
    try:
        page = await context.memory.pages.page(
            Scope(owner_id=context.user_id),
            kinds=_kinds(kind, "kind"),
            words=q,
            limit=limit,
            cursor=cursor or None,
        )
    except UnknownCursor:
        raise unknown_cursor("cursor") from None
    return JsonResponse(page_fields(page))


@router.get("/memory/export", response_class=JsonLines)
async def export_memory(context: Context) -> Response:
    """Return everything that the user has, and the notes of the workspace, as JSON lines."""
    lines = context.memory.export(Scope(owner_id=context.user_id).readable_owners)
    return JsonLines(f"{line}\n" async for line in lines)


@router.post("/memory/import", openapi_extra=takes(ImportBody))
async def import_memory(context: Context) -> Response:
    """Restore exported lines for the caller, whoever exported them; twice changes nothing more."""
    body = await context.body(ImportBody)
    try:
        counts = await context.memory.restore(body.lines, context.user_id)
    except NotTransferable as exc:
        raise bad_field("lines", str(exc)) from exc
    return JsonResponse({name: counts[name] for name in _RESTORED})


@router.get("/memory/items/{item_id}")
async def show_item(context: Context, item_id: str) -> Response:
    """Show a whole item with its provenance and what backends made of it."""
    scope = Scope(owner_id=context.user_id)
    item = await context.memory.items.get(item_id, scope)
    if item is None:
        return await _hidden_case(context, item_id)
    memory = context.memory
    episode = await memory.episodes.get(item_id, scope) if item.kind == "episode" else None
    fact = await memory.facts.store.get(item_id, scope) if item.kind == "fact" else None
    replaces = [] if fact is None else await memory.facts.store.replaced_by(item_id)
    links = await memory.outbox.links_of(item_id)
    return JsonResponse(item_fields(item, links, episode=episode, fact=fact, replaces=replaces))


@router.patch("/memory/items/{item_id}", openapi_extra=takes(FactChangeBody))
async def change_fact(context: Context, item_id: str) -> Response:
    """Change a fact; other items cannot be changed."""
    body = await context.body(FactChangeBody)
    scope = Scope(owner_id=context.user_id)
    facts = context.memory.facts
    with _refusing_facts():
        fact = await facts.edit(item_id, scope, text=body.text, lasting=body.lasting)
    if fact is not None:
        return JsonResponse(fact_fields(fact, await facts.store.replaced_by(item_id)))
    if await context.memory.items.get(item_id, scope) is None:
        raise _no_item()
    raise Conflict("Only facts can be changed; this item is of another kind.")


@contextmanager
def _refusing_facts() -> Iterator[None]:
    """Answer a text that may not become a fact as a mistake in the field `text`."""
    try:
        yield
    except FactConflict as exc:
        raise Conflict(str(exc)) from exc
    except FactRefused as exc:
        raise bad_field("text", str(exc)) from exc


@router.post("/memory/facts", status_code=HTTPStatus.CREATED, openapi_extra=takes(FactBody))
async def write_fact(context: Context) -> Response:
    """Keep a statement as a fact; the same statement again returns the fact that is there."""
    body = await context.body(FactBody)
    scope = Scope(owner_id=context.user_id, project_id=body.project_id)
    facts = context.memory.facts
    with _refusing_facts():
        fact = await facts.write(
            body.text,
            scope,
            lasting=body.lasting,
            earlier=body.earlier,
            replaces=body.replaces,
        )
    replaces = await facts.store.replaced_by(fact.id)
    return JsonResponse(fact_fields(fact, replaces), status_code=HTTPStatus.CREATED)


@router.get("/memory/profile")
async def show_profile(context: Context) -> Response:
    """Return the caller's profile, which is always in the model's context."""
    profile = await context.memory.facts.store.profile(context.user_id)
    return JsonResponse(fields_of(profile, PROFILE))


@router.put("/memory/profile", openapi_extra=takes(ProfileBody))
async def replace_profile(context: Context) -> Response:
    """Replace the caller's profile."""
    body = await context.body(ProfileBody)
    with _refusing_facts():
        profile = await context.memory.facts.put_profile(context.user_id, body.text)
    return JsonResponse(fields_of(profile, PROFILE))


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
    await context.record("memory.deleted", item_id)
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.post("/memory/episodes", status_code=HTTPStatus.CREATED, openapi_extra=takes(EpisodeBody))
async def write_episode(context: Context) -> Response:
    """Write an episode: it is stored, merged into a similar one, or refused with the reason."""
    body = await context.body(EpisodeBody)
    written = await context.memory.writer.write(body.draft(context.user_id))
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
    _check_key(key)
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
            "intents": [fields_of(record, INTENT) for record in page.records],
            "next_cursor": page.next_cursor,
        }
    )


@router.get("/memory/intents/fields")
async def list_fields(context: Context, key: Parameter) -> Response:
    """List the fields of the caller's newest payloads of a key: names, types and how many; never
    values.
    """
    _check_key(key)
    found = await observed_fields(context.memory.chronicle, context.user_id, key)
    fields = [{"name": name, "type": kind, "seen": seen} for name, kind, seen in found]
    return JsonResponse({"key": key, "fields": fields})


@router.get("/memory/intents/{intent_id}")
async def show_intent(context: Context, intent_id: str) -> Response:
    """Show one record of the chronicle, such as one that an episode refers to."""
    record = await context.memory.chronicle.intent(intent_id, context.user_id)
    if record is None:
        raise NotFound("There is no such intent.")
    return JsonResponse(fields_of(record, INTENT))


def _check_key(key: str) -> None:
    """Refuse a filter that no registered key can match."""
    keys = required_intent_keys()
    if not key or (key.endswith(".") and any(known.startswith(key) for known in keys)):
        return
    try:
        form_of(f"{key}ok" if key.startswith("tool.") and key.endswith(".") else key)
    except UnknownIntent as exc:
        raise bad_field("key", str(exc)) from exc


async def _refuse_unknown(context: RequestContext, conversation_id: str) -> None:
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
    if delivery.status == "delivered":
        raise Conflict("It was delivered already.", code="already_delivered")
    return JsonResponse(delivery_fields(delivery))


@router.get("/memory/health")
async def show_health(context: Context) -> Response:
    """Return the state of each backend."""
    return JsonResponse(await context.memory_health())


def _kinds(text: str, name: str = "kinds") -> tuple[ItemKind, ...]:
    wanted = {kind.strip() for kind in text.split(",")} - {""}
    if not wanted <= set(KINDS):
        raise bad_field(name, f"`{name}` must be some of {', '.join(KINDS)}, with commas.")
    return tuple(kind for kind in KINDS if kind in wanted) or KINDS


def _span(since: str, until: str) -> TimeSpan:
    try:
        return TimeSpan.of(since or None, until or None)
    except ValueError as exc:
        raise bad_field("since" if "`since`" in str(exc) else "until", str(exc)) from exc


def _no_item() -> NotFound:
    return NotFound("There is no such item in memory.")
