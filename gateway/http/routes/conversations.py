"""Conversations: list, show, change, leave, fork, interrupt, delete."""

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
    Switch,
    read_cursor,
    unknown_cursor,
)
from gateway.http.schemas import ConversationBody, ForkBody, NewConversationBody
from gateway.http.views import MessagePage, conversation_fields, conversation_with_queue

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
        raise unknown_cursor("cursor") from exc
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
    """Change the fields that the body names."""
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
    """List the last `limit` messages, user messages and turn results, oldest first."""
    page = MessagePage(limit, read_cursor("before", before))
    turns = await context.chat.conversations.messages(
        context.user_id, conversation_id, limit=page.max_turns, before_seq=page.before_seq
    )
    messages, next_before = page.cut(turns)
    return JsonResponse({"messages": messages, "next_before": next_before})


@router.post(
    "/conversations/{conversation_id}/interrupt",
    status_code=HTTPStatus.ACCEPTED,
    responses={200: {}},
)
async def interrupt(context: Context, conversation_id: str, *, wait: Switch = False) -> Response:
    """Stop the running turn; with `wait=1` answer with its result once it has stopped."""
    turn_id = await context.chat.intake.interrupt(context.user_id, conversation_id)
    if wait:
        return JsonResponse(await context.chat.reader.result(context.user_id, turn_id))
    return JsonResponse({"state": "stopping"}, status_code=HTTPStatus.ACCEPTED)


@router.post(
    "/conversations/{conversation_id}/fork",
    status_code=HTTPStatus.CREATED,
    openapi_extra=takes(ForkBody),
)
async def fork(context: Context, conversation_id: str) -> Response:
    """Create a conversation that remembers this one up to a turn."""
    body = await context.body(ForkBody)
    fork_id = await context.chat.conversations.fork(context.user_id, conversation_id, body.turn_id)
    return JsonResponse({"conversation_id": fork_id}, status_code=HTTPStatus.CREATED)


@router.delete(
    "/conversations/{conversation_id}/queue/{turn_id}", status_code=HTTPStatus.NO_CONTENT
)
async def take_back(context: Context, conversation_id: str, turn_id: str) -> Response:
    """Withdraw a queued message."""
    await context.chat.intake.take_back(context.user_id, conversation_id, turn_id)
    return Response(status_code=HTTPStatus.NO_CONTENT)
