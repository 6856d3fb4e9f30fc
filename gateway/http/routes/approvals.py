"""Approvals: the open ones, the answer to one, and the rules that answers left behind."""

from http import HTTPStatus

from fastapi import APIRouter
from starlette.responses import Response

from gateway.http.context import Context
from gateway.http.json_response import JsonResponse
from gateway.http.openapi import takes
from gateway.http.parameters import Parameter
from gateway.http.schemas import ApprovalBody

router = APIRouter()


@router.get("/approvals")
async def list_approvals(context: Context, conversation_id: Parameter = "") -> Response:
    """List the user's open approvals, oldest first."""
    if conversation_id:
        await context.chat.conversations.get(context.user_id, conversation_id)
    approvals = context.chat.approvals.pending(context.user_id, conversation_id or None)
    return JsonResponse(
        {
            "approvals": [approval.fields() for approval in approvals],
            "asks": context.state.services.settings.approvals == "on",
        }
    )


@router.post("/approvals/{approval_id}", openapi_extra=takes(ApprovalBody))
async def answer_approval(context: Context, approval_id: str) -> Response:
    """Record a person's decision."""
    body = await context.body(ApprovalBody)
    approval = context.chat.approvals.answer(context.user_id, approval_id, **body.model_dump())
    return JsonResponse({"approval_id": approval.id, "decision": body.decision})


@router.get("/conversations/{conversation_id}/permissions")
async def list_permissions(context: Context, conversation_id: str) -> Response:
    """List the rules under which calls of a conversation pass unasked, oldest first."""
    known = await context.chat.conversations.get(context.user_id, conversation_id)
    rules = context.chat.approvals.allowed(known.conversation.id)
    return JsonResponse({"permissions": [rule.fields() for rule in rules]})


@router.delete(
    "/conversations/{conversation_id}/permissions/{approval_id}", status_code=HTTPStatus.NO_CONTENT
)
async def withdraw_permission(context: Context, conversation_id: str, approval_id: str) -> Response:
    """Ask again about what a rule covers."""
    known = await context.chat.conversations.get(context.user_id, conversation_id)
    context.chat.approvals.withdraw(known.conversation.id, approval_id)
    return Response(status_code=HTTPStatus.NO_CONTENT)
