"""A message in, an answer out: whole, or as a stream."""

from http import HTTPStatus

from fastapi import APIRouter
from starlette.responses import Response

from gateway.http.answers import JsonAnswer
from gateway.http.description import EVENTS, takes
from gateway.http.schemas import ChatBody
from gateway.http.services import Caller
from gateway.http.sse import EventStream

router = APIRouter()


@router.post("/chat", openapi_extra=takes(ChatBody))
async def chat(call: Caller) -> Response:
    """Answer with the turn result; a client that goes away leaves the turn running."""
    body = await call.body(ChatBody)
    accepted = await call.chat.accept(call.user_id, body.request())
    return JsonAnswer(await call.chat.result(call.user_id, accepted.turn_id))


@router.post(
    "/chat/stream",
    status_code=HTTPStatus.OK,
    responses=EVENTS,
    openapi_extra=takes(ChatBody),
    response_class=EventStream,
)
async def chat_stream(call: Caller) -> Response:
    """Answer with the turn's events as they are stored; the last is `turn.completed`."""
    body = await call.body(ChatBody)
    accepted = await call.chat.accept(call.user_id, body.request())
    subscription = call.chat.follow_turn(accepted)
    return EventStream(
        call.stream_plan(subscription, accepted.conversation_id, until_completed=True)
    )
