"""Case memory over HTTP: the same four tools that an agent has, for a person.

App, environment and conversation stand beside the case here. With a conversation and neither of the
others it is the conversation's own app and environment that count.
"""

from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from types import MappingProxyType
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from gateway.errors import GatewayError, NotFound, UnprocessableEntity
from gateway.http.context import Context, RequestContext
from gateway.http.json_response import JsonResponse
from gateway.http.memory_bodies import CaseBody, FeedbackBody
from gateway.http.openapi import takes
from gateway.http.parameters import Parameter
from gateway.http.schemas import MAX_NAME_CHARS
from gateway.http.validation_errors import bad_field
from gateway.turns.case_fields import feedback_fields, search_fields, upsert_fields, whole_fields
from memory.cases.case import CaseCaller
from memory.cases.results import DEFAULT_TOP_K, Code, Refusal, WholeCase
from memory.errors import StoreUnavailable
from memory.scope import Scope

router = APIRouter()

_MAX_QUERY_CHARS = 10_000
_MAX_TOLD_REPORT_CHARS = 500
"""Of each text of a report, where a vote is answered."""
_FIELDS: Mapping[Code, str] = {
    "INVALID_QUERY": "query",
    "INVALID_TOP_K": "top_k",
    "INVALID_SCOPE": "app_code",
    "INVALID_CASE": "case",
    "MISSING_CASE": "case",
    "INVALID_FEEDBACK": "signal",
}

_Text = Annotated[str, Query(max_length=_MAX_QUERY_CHARS)]
_Label = Annotated[str, Query(max_length=MAX_NAME_CHARS)]
_Count = Annotated[int | None, Query()]


@router.post("/memory/cases", openapi_extra=takes(CaseBody), status_code=HTTPStatus.CREATED)
async def record_case(context: Context) -> Response:
    """Record a case, or change one: 201 for a new one, 200 where it was changed, merged, or the same."""
    body = await context.body(CaseBody)
    body.refuse_what_is_no_text()
    caller = await _caller(context, body.conversation_id, body.app_code, body.environment)
    answer = await context.memory.cases.upsert(caller, body.case)
    if isinstance(answer, Refusal):
        raise _fault(answer)
    whole = await _whole(context, caller, answer.case.case_id)
    created = answer.status == "created"
    return JsonResponse(
        {**whole_fields(whole), **upsert_fields(answer)},
        status_code=HTTPStatus.CREATED if created else HTTPStatus.OK,
    )


@router.get("/memory/cases/search")
async def search_cases(
    context: Context,
    q: _Text = "",
    query: _Text = "",
    top_k: _Count = None,
    limit: _Count = None,
    app_code: _Label = "",
    environment: _Label = "",
    conversation_id: Parameter = "",
) -> Response:
    """Find cases, best first. `query` and `limit` are other names of `q` and `top_k`."""
    caller = await _caller(context, conversation_id, app_code, environment)
    count = top_k if top_k is not None else limit
    answer = await context.memory.cases.search(
        caller, q or query, DEFAULT_TOP_K if count is None else count
    )
    if isinstance(answer, Refusal):
        said = {"query": "query" if query and not q else "q"}
        if top_k is None and limit is not None:
            said["top_k"] = "limit"
        raise _fault(answer, said)
    return JsonResponse(search_fields(answer))


@router.get("/memory/cases/{case_id}")
async def show_case(context: Context, case_id: str, conversation_id: Parameter = "") -> Response:
    """Give a case whole, as JSON and as Markdown, whatever its lifecycle."""
    caller = await _caller(context, conversation_id)
    return JsonResponse(whole_fields(await _whole(context, caller, case_id)))


@router.post("/memory/cases/{case_id}/feedback", openapi_extra=takes(FeedbackBody))
async def judge_case(context: Context, case_id: str) -> Response:
    """Take a vote on a case, and give the case as it stands then."""
    body = await context.body(FeedbackBody)
    caller = await _caller(context, body.conversation_id, body.app_code, body.environment)
    answer = await context.memory.cases.feedback(
        caller, case_id, helpful=body.helpful, signal=body.signal
    )
    if isinstance(answer, Refusal):
        raise _fault(answer)
    whole = await _whole(context, caller, case_id)
    told = whole_fields(whole, report_chars=_MAX_TOLD_REPORT_CHARS)
    return JsonResponse({**told, **feedback_fields(answer)})


async def _caller(
    context: RequestContext,
    conversation_id: str | None,
    app_code: str | None = None,
    environment: str | None = None,
) -> CaseCaller:
    """Say on whose behalf it is; a conversation must be the caller's own.

    Raises:
        NotFound: it is not.
    """
    labels: dict[str, str | None] = {"app_code": app_code, "environment": environment}
    tools: tuple[str, ...] = ()
    root_id: str | None = None
    if conversation_id:
        known = (
            await context.chat.conversations.get(context.user_id, conversation_id)
        ).conversation
        labels = {name: given or getattr(known, name) for name, given in labels.items()}
        tools = await context.chat.conversations.recent_tools(context.user_id, conversation_id)
        root_id = known.root_id
    return CaseCaller(
        scope=Scope(owner_id=context.user_id, **labels),
        conversation_id=conversation_id or None,
        root_id=root_id,
        by="person",
        active_tools=tools,
        only_environment=bool(environment),
    )


async def _whole(context: RequestContext, caller: CaseCaller, case_id: str) -> WholeCase:
    everywhere = replace(
        caller, scope=Scope(owner_id=caller.scope.owner_id), active_tools=(), only_environment=False
    )
    answer = await context.memory.cases.render(everywhere, [case_id])
    if isinstance(answer, Refusal):
        raise _fault(answer)
    return answer.cases[0]


def _fault(refusal: Refusal, said: Mapping[str, str] = MappingProxyType({})) -> Exception:
    """Make a refusal the error of the contract; its code of the four tools stands in `details`.

    `said`: the names by which the caller gave what a tool has another name for.
    """
    if refusal.code in {"CASE_NOT_FOUND", "MISSING_CASE_ID"}:
        return NotFound("There is no such case.", details={"code": refusal.code})
    details: dict[str, Any] = {**refusal.details, "code": refusal.code}
    if refusal.code in {"STORE_UNAVAILABLE", "TOOL_TIMEOUT"}:
        return StoreUnavailable(refusal.message)
    name, message = _field(refusal), refusal.message
    for ours, theirs in said.items():
        message = message.replace(f"`{ours}`", f"`{theirs}`")
    fault: GatewayError = bad_field(said.get(name, name), message)
    return UnprocessableEntity(message, details={**fault.details, **details})


def _field(refusal: Refusal) -> str:
    """Name what of the request is to blame."""
    if refusal.code == "INVALID_CASE" and refusal.about:
        return f"case.{refusal.about}"
    return refusal.about or _FIELDS.get(refusal.code, "case")
