"""Approvals: the open ones, and the answer to one."""

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
    return JsonResponse({"approvals": [approval.fields() for approval in approvals]})


@router.post("/approvals/{approval_id}", openapi_extra=takes(ApprovalBody))
async def answer_approval(context: Context, approval_id: str) -> Response:
    """Record a person's decision."""
    body = await context.body(ApprovalBody)
    approval = context.chat.approvals.answer(
        context.user_id,
        approval_id,
        body.decision,
        message=body.message,
        remember=body.remember,
    )
    return JsonResponse({"approval_id": approval.id, "decision": body.decision})
