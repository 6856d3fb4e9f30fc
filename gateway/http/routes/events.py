"""A conversation's events, live, and what was missed before them."""

from http import HTTPStatus

from fastapi import APIRouter
from starlette.responses import Response

from gateway.http.description import EVENTS
from gateway.http.parameters import Parameter
from gateway.http.services import Caller
from gateway.http.sse import EventStream

router = APIRouter()


@router.get(
    "/conversations/{conversation_id}/events",
    status_code=HTTPStatus.OK,
    responses=EVENTS,
    response_class=EventStream,
)
async def events(call: Caller, conversation_id: str, after: Parameter = "") -> Response:
    """Follow a conversation; `Last-Event-ID` goes before `after`."""
    last_seen = call.request.headers.get("last-event-id") or after or None
    subscription = await call.chat.follow(call.user_id, conversation_id, last_seen)
    return EventStream(call.stream_plan(subscription, conversation_id, until_completed=False))
