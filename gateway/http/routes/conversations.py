"""Conversations: listed, shown, changed, left, forked, deleted, stopped."""

from http import HTTPStatus

from fastapi import APIRouter
from starlette.responses import Response

from gateway.conversations.store import UnknownCursor
from gateway.http.context import Context
from gateway.http.json_response import JsonResponse
from gateway.http.openapi import takes
from gateway.http.parameters import (
    DEFAULT_LIMIT,
    Limit,
    Parameter,
    read_place,
    read_switch,
    unknown_place,
)
from gateway.http.schemas import ConversationBody, ForkBody, NewConversationBody
from gateway.http.views import Span, conversation_fields, conversation_with_queue

router = APIRouter()


@router.get("/conversations")
async def list_conversations(
    context: Context, limit: Limit = DEFAULT_LIMIT, cursor: Parameter = "", q: Parameter = ""
) -> Response:
    """List the user's conversations, newest first."""
    try:
        views, next_cursor = await context.chat.conversations.page(
            context.user_id, limit=limit, cursor=cursor or None, query=q.strip() or None
        )
    except UnknownCursor as exc:
        raise unknown_place("cursor") from exc
    conversations = [conversation_fields(view) for view in views]
    return JsonResponse({"conversations": conversations, "next_cursor": next_cursor})


@router.post(
    "/new-conversation",
    status_code=HTTPStatus.CREATED,
    openapi_extra=takes(NewConversationBody, required=False),
)
async def new_conversation(context: Context) -> Response:
    """Start a conversation; the one being left becomes stale at once."""
    body = await context.optional_body(NewConversationBody) or NewConversationBody()
    conversation_id = await context.chat.conversations.create(
        context.user_id, leaving=body.conversation_id, title=body.title or ""
    )
    return JsonResponse({"conversation_id": conversation_id}, status_code=HTTPStatus.CREATED)


@router.get("/conversations/{conversation_id}")
async def show_conversation(context: Context, conversation_id: str) -> Response:
    """Show one conversation with its queue."""
    return JsonResponse(
        conversation_with_queue(
            await context.chat.conversations.get(context.user_id, conversation_id)
        )
    )


@router.patch("/conversations/{conversation_id}", openapi_extra=takes(ConversationBody))
async def change_conversation(context: Context, conversation_id: str) -> Response:
    """Set what the body names."""
    body = await context.body(ConversationBody)
    view = await context.chat.conversations.change(context.user_id, conversation_id, body.change())
    return JsonResponse(conversation_with_queue(view))


@router.delete("/conversations/{conversation_id}", status_code=HTTPStatus.NO_CONTENT)
async def delete_conversation(context: Context, conversation_id: str) -> Response:
    """End its process and delete its messages and events."""
    await context.chat.conversations.delete(context.user_id, conversation_id)
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.get("/conversations/{conversation_id}/messages")
async def list_messages(
    context: Context, conversation_id: str, limit: Limit = DEFAULT_LIMIT, before: Parameter = ""
) -> Response:
    """List the last `limit` messages, what was asked and what came of it, oldest first."""
    span = Span(limit, read_place("before", before))
    turns = await context.chat.conversations.messages(
        context.user_id, conversation_id, limit=span.max_turns, before_seq=span.before_seq
    )
    messages, next_before = span.cut(turns)
    place = None if next_before is None else str(next_before)
    return JsonResponse({"messages": messages, "next_before": place})


@router.post(
    "/conversations/{conversation_id}/interrupt",
    status_code=HTTPStatus.ACCEPTED,
    responses={200: {}},
)
async def interrupt(context: Context, conversation_id: str, wait: Parameter = "") -> Response:
    """Tell the running turn to stop; with `wait=1` answer when it really has, with its result."""
    wants_result = read_switch("wait", wait)
    turn_id = await context.chat.intake.interrupt(context.user_id, conversation_id)
    if wants_result:
        return JsonResponse(await context.chat.reader.result(context.user_id, turn_id))
    return JsonResponse({"state": "stopping"}, status_code=HTTPStatus.ACCEPTED)


@router.post(
    "/conversations/{conversation_id}/fork",
    status_code=HTTPStatus.CREATED,
    openapi_extra=takes(ForkBody),
)
async def fork(context: Context, conversation_id: str) -> Response:
    """Make a conversation that remembers this one up to a turn."""
    body = await context.body(ForkBody)
    fork_id = await context.chat.conversations.fork(context.user_id, conversation_id, body.turn_id)
    return JsonResponse({"conversation_id": fork_id}, status_code=HTTPStatus.CREATED)


@router.delete(
    "/conversations/{conversation_id}/queue/{turn_id}", status_code=HTTPStatus.NO_CONTENT
)
async def take_back(context: Context, conversation_id: str, turn_id: str) -> Response:
    """Take a queued message back."""
    await context.chat.intake.take_back(context.user_id, conversation_id, turn_id)
    return Response(status_code=HTTPStatus.NO_CONTENT)
