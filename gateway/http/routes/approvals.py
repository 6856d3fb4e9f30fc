"""What waits for a person's word, and the word."""

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
    questions = context.chat.approvals.pending(context.user_id, conversation_id or None)
    return JsonResponse({"approvals": [one.fields() for one in questions]})


@router.post("/approvals/{approval_id}", openapi_extra=takes(ApprovalBody))
async def answer_approval(context: Context, approval_id: str) -> Response:
    """Take a person's answer."""
    body = await context.body(ApprovalBody)
    question = context.chat.approvals.answer(
        context.user_id,
        approval_id,
        body.decision,
        message=body.message,
        remember=body.remember,
    )
    return JsonResponse({"approval_id": question.id, "decision": body.decision})
