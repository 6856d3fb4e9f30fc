"""A conversation's events, live, and what was missed before them."""

from http import HTTPStatus

from fastapi import APIRouter
from starlette.responses import Response

from gateway.http.context import Context
from gateway.http.openapi import EVENTS
from gateway.http.parameters import Parameter
from gateway.http.sse import EventStream

router = APIRouter()


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
    return EventStream(context.stream_plan(subscription, conversation_id, until_completed=False))
