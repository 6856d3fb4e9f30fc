"""Approvals: those that wait, the answer to one, and the rules that answers left behind."""

from http import HTTPStatus

from fastapi import APIRouter
from starlette.responses import PlainTextResponse, Response

from gateway.http.context import Context
from gateway.http.json_response import JsonResponse
from gateway.http.openapi import takes
from gateway.http.parameters import Parameter
from gateway.http.schemas import ApprovalBody

router = APIRouter()


@router.get("/approvals")
async def list_approvals(context: Context, conversation_id: Parameter = "") -> Response:
    """List the user's approvals that can be answered, and those that were lost lately."""
    return JsonResponse(
        {
            "approvals": await context.chat.approvals.listed(context.user_id, conversation_id),
            "asks": context.state.services.settings.approvals == "on",
        }
    )


@router.post("/approvals/{approval_id}", openapi_extra=takes(ApprovalBody))
async def answer_approval(context: Context, approval_id: str) -> Response:
    """Record a person's decision; `turn_id` is the turn in which it counts."""
    body = await context.body(ApprovalBody)
    turn_id = await context.chat.approvals.answer(context.user_id, approval_id, body.reply())
    return JsonResponse({"approval_id": approval_id, "decision": body.decision, "turn_id": turn_id})


@router.post("/approvals/{approval_id}/extend")
async def extend_approval(context: Context, approval_id: str) -> Response:
    """Restart the time limit of a pending approval."""
    expires_at = await context.chat.approvals.extend(context.user_id, approval_id)
    return JsonResponse({"approval_id": approval_id, "expires_at": expires_at})


@router.get(
    "/approvals/{approval_id}/input",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}},
)
async def download_input(context: Context, approval_id: str) -> Response:
    """Return the whole input of a call that waits, as a download."""
    text = await context.chat.approvals.input(context.user_id, approval_id)
    headers = {"Content-Disposition": 'attachment; filename="approval-input.txt"'}
    return PlainTextResponse(text, headers=headers)


@router.get("/conversations/{conversation_id}/permissions")
async def list_permissions(context: Context, conversation_id: str) -> Response:
    """List the rules under which calls of a conversation pass unasked, oldest first."""
    rules = await context.chat.approvals.rules(context.user_id, conversation_id)
    return JsonResponse({"permissions": [rule.fields() for rule in rules]})


@router.delete(
    "/conversations/{conversation_id}/permissions/{approval_id}", status_code=HTTPStatus.NO_CONTENT
)
async def withdraw_permission(context: Context, conversation_id: str, approval_id: str) -> Response:
    """Ask again about what a rule covers."""
    await context.chat.approvals.withdraw_rule(context.user_id, conversation_id, approval_id)
    return Response(status_code=HTTPStatus.NO_CONTENT)
