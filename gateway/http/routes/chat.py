"""A message in, an answer out: whole, or as a stream."""

from http import HTTPStatus

from fastapi import APIRouter
from starlette.responses import Response

from gateway.http.context import Context
from gateway.http.json_response import JsonResponse
from gateway.http.openapi import EVENTS, takes
from gateway.http.schemas import ChatBody
from gateway.http.sse import EventStream

router = APIRouter()


@router.post("/chat", openapi_extra=takes(ChatBody))
async def chat(context: Context) -> Response:
    """Answer with the turn result; a client that goes away leaves the turn running."""
    body = await context.body(ChatBody)
    accepted = await context.chat.intake.accept(context.user_id, body.request())
    return JsonResponse(await context.chat.reader.result(context.user_id, accepted.turn_id))


@router.post(
    "/chat/stream",
    status_code=HTTPStatus.OK,
    responses=EVENTS,
    openapi_extra=takes(ChatBody),
    response_class=EventStream,
)
async def chat_stream(context: Context) -> Response:
    """Answer with the turn's events as they are stored; the last is `turn.completed`."""
    body = await context.body(ChatBody)
    accepted = await context.chat.intake.accept(context.user_id, body.request())
    subscription = context.chat.reader.follow_turn(accepted)
    return EventStream(
        context.stream_plan(subscription, accepted.conversation_id, until_completed=True)
    )
