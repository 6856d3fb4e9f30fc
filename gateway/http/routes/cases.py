"""Case memory over HTTP: the agent's four tools for a person.

App, environment and conversation are fields beside the case. A missing app or environment is that
of the conversation, if one is given.
"""

from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from types import MappingProxyType
from typing import Annotated, TypeVar

from fastapi import APIRouter, Query
from starlette.responses import Response

from gateway.errors import NotFound, UnprocessableEntity
from gateway.http.context import Context, RequestContext
from gateway.http.json_response import JsonResponse
from gateway.http.memory_bodies import CaseBody, FeedbackBody
from gateway.http.openapi import takes
from gateway.http.parameters import Parameter
from gateway.http.schemas import MAX_NAME_CHARS
from gateway.turns.case_fields import feedback_fields, search_fields, upsert_fields, whole_fields
from memory.cases.case import CaseCaller
from memory.cases.results import DEFAULT_TOP_K, Code, Refusal, WholeCase
from memory.errors import StoreUnavailable
from memory.items.scope import Scope

router = APIRouter()
T = TypeVar("T")

_MAX_QUERY_CHARS = 10_000
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
    """Create or change a case: 201 if it is new, 200 if one was changed or is equal."""
    body = await context.body(CaseBody)
    caller = await _caller(context, body.conversation_id, body.app_code, body.environment)
    answer = _accepted(await context.memory.cases.upsert(caller, body.case))
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
    """Find cases, best first. `query` and `limit` are synonyms of `q` and `top_k`."""
    caller = await _caller(context, conversation_id, app_code, environment)
    count = top_k if top_k is not None else limit
    answer = await context.memory.cases.search(
        caller, q or query, DEFAULT_TOP_K if count is None else count
    )
    names = {"query": "query" if query and not q else "q"}
    if top_k is None and limit is not None:
        names["top_k"] = "limit"
    return JsonResponse(search_fields(_accepted(answer, names)))


@router.get("/memory/cases/{case_id}")
async def show_case(context: Context, case_id: str, conversation_id: Parameter = "") -> Response:
    """Return a whole case as JSON and Markdown, in any lifecycle."""
    caller = await _caller(context, conversation_id)
    return JsonResponse(whole_fields(await _whole(context, caller, case_id)))


@router.post("/memory/cases/{case_id}/feedback", openapi_extra=takes(FeedbackBody))
async def judge_case(context: Context, case_id: str) -> Response:
    """Record feedback and return the case as it is afterwards."""
    body = await context.body(FeedbackBody)
    caller = await _caller(context, body.conversation_id, body.app_code, body.environment)
    answer = _accepted(
        await context.memory.cases.feedback(
            caller, case_id, helpful=body.helpful, signal=body.signal
        )
    )
    whole = await _whole(context, caller, case_id)
    return JsonResponse({**whole_fields(whole), **feedback_fields(answer)})


async def _caller(
    context: RequestContext,
    conversation_id: str | None,
    app_code: str | None = None,
    environment: str | None = None,
) -> CaseCaller:
    """Return who calls, with the scope of the call.

    Raise `NotFound` if the conversation is not the user's own.
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
    return _accepted(await context.memory.cases.render(everywhere, [case_id])).cases[0]


def _accepted(answer: T | Refusal, names: Mapping[str, str] = MappingProxyType({})) -> T:
    """Return an answer; raise a refusal as an error, whose `details` hold its code.

    `names` maps a tool's argument to the parameter that the client used for it.
    """
    if isinstance(answer, Refusal):
        raise _error(answer, names)
    return answer


def _error(refusal: Refusal, names: Mapping[str, str]) -> Exception:
    if refusal.code in {"CASE_NOT_FOUND", "MISSING_CASE_ID"}:
        return NotFound("There is no such case.", details={"code": refusal.code})
    if refusal.code in {"STORE_UNAVAILABLE", "TOOL_TIMEOUT"}:
        return StoreUnavailable(refusal.message)
    field = refusal.about or _FIELDS.get(refusal.code, "case")
    if refusal.code == "INVALID_CASE" and refusal.about:
        field = f"case.{refusal.about}"
    message = refusal.message
    for ours, theirs in names.items():
        message = message.replace(f"`{ours}`", f"`{theirs}`")
    details = {"field": names.get(field, field), **refusal.details, "code": refusal.code}
    return UnprocessableEntity(message, details=details)
