"""Turns: the result of one, its events, and the events of a conversation."""

from http import HTTPStatus

from fastapi import APIRouter
from starlette.responses import Response

from gateway.http.context import Context
from gateway.http.json_response import JsonResponse
from gateway.http.openapi import EVENTS, takes
from gateway.http.parameters import Parameter
from gateway.http.schemas import ChatBody
from gateway.http.sse import EventStream

router = APIRouter()


@router.post("/chat", openapi_extra=takes(ChatBody))
async def chat(context: Context) -> Response:
    """Return the turn result; a client that leaves does not end the turn."""
    body = await context.body(ChatBody)
    accepted = await context.accept(body.request())
    return JsonResponse(await context.chat.reader.result(context.user_id, accepted.turn_id))


@router.post(
    "/chat/stream",
    status_code=HTTPStatus.OK,
    responses=EVENTS,
    openapi_extra=takes(ChatBody),
    response_class=EventStream,
)
async def chat_stream(context: Context) -> Response:
    """Stream the turn's events as they are stored; the last is `turn.completed`."""
    body = await context.body(ChatBody)
    accepted = await context.accept(body.request())
    subscription = context.chat.reader.follow_turn(accepted)
    return context.event_stream(subscription, accepted.conversation_id, until_completed=True)


@router.get(
    "/conversations/{conversation_id}/events",
    status_code=HTTPStatus.OK,
    responses=EVENTS,
    response_class=EventStream,
)
async def events(context: Context, conversation_id: str, after: Parameter = "") -> Response:
    """Follow a conversation; `Last-Event-ID` goes before `after`."""
    last_seen = context.request.headers.get("last-event-id") or after or None
    subscription = await context.chat.reader.follow(context.user_id, conversation_id, last_seen)
    return context.event_stream(subscription, conversation_id, until_completed=False)
