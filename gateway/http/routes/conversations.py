"""Conversations: listed, shown, changed, left, forked, deleted, stopped."""

from http import HTTPStatus

from fastapi import APIRouter
from starlette.responses import Response

from gateway.conversations.store import UnknownCursor
from gateway.http.answers import JsonAnswer
from gateway.http.description import takes
from gateway.http.parameters import (
    DEFAULT_LIMIT,
    Limit,
    Parameter,
    read_place,
    read_switch,
    unknown_place,
)
from gateway.http.schemas import ConversationBody, ForkBody, NewConversationBody
from gateway.http.services import Caller
from gateway.http.views import Span, conversation_fields, conversation_with_queue

router = APIRouter()


@router.get("/conversations")
async def list_conversations(
    call: Caller, limit: Limit = DEFAULT_LIMIT, cursor: Parameter = "", q: Parameter = ""
) -> Response:
    """List the user's conversations, newest first."""
    try:
        views, next_cursor = await call.chat.page(
            call.user_id, limit=limit, cursor=cursor or None, query=q.strip() or None
        )
    except UnknownCursor as exc:
        raise unknown_place("cursor") from exc
    conversations = [conversation_fields(view) for view in views]
    return JsonAnswer({"conversations": conversations, "next_cursor": next_cursor})


@router.post(
    "/new-conversation",
    status_code=HTTPStatus.CREATED,
    openapi_extra=takes(NewConversationBody, required=False),
)
async def new_conversation(call: Caller) -> Response:
    """Start a conversation; the one being left becomes stale at once."""
    body = await call.optional_body(NewConversationBody) or NewConversationBody()
    conversation_id = await call.chat.new_conversation(
        call.user_id, leaving=body.conversation_id, title=body.title or ""
    )
    return JsonAnswer({"conversation_id": conversation_id}, status_code=HTTPStatus.CREATED)


@router.get("/conversations/{conversation_id}")
async def show_conversation(call: Caller, conversation_id: str) -> Response:
    """Show one conversation with its queue."""
    return JsonAnswer(conversation_with_queue(await call.chat.get(call.user_id, conversation_id)))


@router.patch("/conversations/{conversation_id}", openapi_extra=takes(ConversationBody))
async def change_conversation(call: Caller, conversation_id: str) -> Response:
    """Set what the body names."""
    body = await call.body(ConversationBody)
    view = await call.chat.change(call.user_id, conversation_id, body.change())
    return JsonAnswer(conversation_with_queue(view))


@router.delete("/conversations/{conversation_id}", status_code=HTTPStatus.NO_CONTENT)
async def delete_conversation(call: Caller, conversation_id: str) -> Response:
    """End its process and delete its messages and events."""
    await call.chat.delete(call.user_id, conversation_id)
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.get("/conversations/{conversation_id}/messages")
async def list_messages(
    call: Caller, conversation_id: str, limit: Limit = DEFAULT_LIMIT, before: Parameter = ""
) -> Response:
    """List the last `limit` messages, what was asked and what came of it, oldest first."""
    span = Span(limit, read_place("before", before))
    turns = await call.chat.messages(
        call.user_id, conversation_id, limit=span.max_turns, before_seq=span.before_seq
    )
    messages, next_before = span.cut(turns)
    place = None if next_before is None else str(next_before)
    return JsonAnswer({"messages": messages, "next_before": place})


@router.post(
    "/conversations/{conversation_id}/interrupt",
    status_code=HTTPStatus.ACCEPTED,
    responses={200: {}},
)
async def interrupt(call: Caller, conversation_id: str, wait: Parameter = "") -> Response:
    """Tell the running turn to stop; with `wait=1` answer when it really has, with its result."""
    wants_result = read_switch("wait", wait)
    turn_id = await call.chat.interrupt(call.user_id, conversation_id)
    if wants_result:
        return JsonAnswer(await call.chat.result(call.user_id, turn_id))
    return JsonAnswer({"state": "stopping"}, status_code=HTTPStatus.ACCEPTED)


@router.post(
    "/conversations/{conversation_id}/fork",
    status_code=HTTPStatus.CREATED,
    openapi_extra=takes(ForkBody),
)
async def fork(call: Caller, conversation_id: str) -> Response:
    """Make a conversation that remembers this one up to a turn."""
    body = await call.body(ForkBody)
    fork_id = await call.chat.fork(call.user_id, conversation_id, body.turn_id)
    return JsonAnswer({"conversation_id": fork_id}, status_code=HTTPStatus.CREATED)


@router.delete(
    "/conversations/{conversation_id}/queue/{turn_id}", status_code=HTTPStatus.NO_CONTENT
)
async def take_back(call: Caller, conversation_id: str, turn_id: str) -> Response:
    """Take a queued message back."""
    await call.chat.take_back(call.user_id, conversation_id, turn_id)
    return Response(status_code=HTTPStatus.NO_CONTENT)
