"""What waits for a person's word, and the word."""

from fastapi import APIRouter
from starlette.responses import Response

from gateway.http.answers import JsonAnswer
from gateway.http.description import takes
from gateway.http.parameters import Parameter
from gateway.http.schemas import ApprovalBody
from gateway.http.services import Caller

router = APIRouter()


@router.get("/approvals")
async def list_approvals(call: Caller, conversation_id: Parameter = "") -> Response:
    """List the user's open approvals, oldest first."""
    if conversation_id:
        await call.chat.get(call.user_id, conversation_id)
    questions = call.chat.approvals(call.user_id, conversation_id or None)
    return JsonAnswer({"approvals": [one.fields() for one in questions]})


@router.post("/approvals/{approval_id}", openapi_extra=takes(ApprovalBody))
async def answer_approval(call: Caller, approval_id: str) -> Response:
    """Take a person's answer."""
    body = await call.body(ApprovalBody)
    question = call.chat.answer_approval(
        call.user_id,
        approval_id,
        body.decision,
        message=body.message,
        remember=body.remember,
    )
    return JsonAnswer({"approval_id": question.id, "decision": body.decision})
