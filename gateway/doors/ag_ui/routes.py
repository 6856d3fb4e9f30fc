"""AG-UI: a thread is a conversation, a run is a turn, or a part of one around an approval.

A run ends with an interrupt where a person is asked; its turn waits. The run that resumes goes on
behind the question. Closing the connection is all that these clients do to stop: it interrupts the
turn unless somebody reads it within a grace.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import anyio.to_thread
from fastapi import APIRouter
from pydantic import ValidationError
from starlette.responses import Response

from gateway.chat import Accepted, ChatRequest
from gateway.chat.threads import ClientMessage
from gateway.doors.ag_ui.bodies import Resume, RunBody, read_thread
from gateway.doors.ag_ui.events import Run
from gateway.doors.asked import Conversation, compose
from gateway.doors.pieces import pieces_of
from gateway.errors import Conflict, UnprocessableEntity
from gateway.http.context import Context, RequestContext
from gateway.http.openapi import EVENTS, takes
from gateway.http.sse import EventStream
from gateway.ids import ConversationId, TurnId
from gateway.jsonsafe import json_text

router = APIRouter()

_THREAD: Final = "ag-ui:"


@router.post("/ag-ui", openapi_extra=takes(RunBody), responses=EVENTS)
async def run(context: Context) -> Response:
    """Run a thread's last message, or go on behind interrupts that are over."""
    body = await context.body(RunBody)
    if body.resume:
        accepted, answered = await _resume(context, body.resume)
    else:
        accepted, answered = await _start(context, body), ()
    return await _stream(context, accepted, Run(body.thread_id, body.run_id, answered=answered))


async def _start(context: RequestContext, body: RunBody) -> Accepted:
    """Return the turn of a run; the same run again has the same turn."""
    # streams would wait for long histories
    asked = await anyio.to_thread.run_sync(read_thread, body.messages)
    message = ClientMessage(
        text=asked.text, before=asked.before, thread=f"{_THREAD}{body.thread_id}"
    )
    request = json_text([_THREAD, body.thread_id, body.run_id]).encode()
    take = partial(_accept, context, asked, message)
    return await context.arrive(request, take, attempt=1, is_wanted=lambda _: True)


async def _accept(
    context: RequestContext, asked: Conversation, message: ClientMessage, key: str
) -> Accepted:
    """Store a message where its thread belongs, and remember that."""
    threads, user_id = context.chat.threads, context.user_id
    departures = context.chat.departures
    named = await threads.named(user_id, message)
    if named is not None:  # a thread whose run waits for a person must not start it twice
        view = await context.chat.conversations.get(user_id, named)
        if view.state != "idle" and departures.when_busy(named) == "reject":
            raise Conflict(await _why_busy(context, named), code="conversation_busy")
    place = await threads.place(user_id, message)
    text = compose(
        asked, (), is_new=place.conversation_id is None, knows_history=place.knows_history
    )
    request = ChatRequest(
        message=text,
        conversation_id=place.conversation_id,
        when_busy=departures.when_busy(place.conversation_id),
        idempotency_key=key,
    )
    accepted = await context.accept(request)
    await threads.note(user_id, message, accepted)
    return accepted


async def _why_busy(context: RequestContext, conversation_id: ConversationId) -> str:
    """Return why a thread cannot take a new message while its turn works or waits."""
    listed = await context.chat.approvals.listed(context.user_id, conversation_id)
    if any(question["state"] == "pending" for question in listed):
        return "A question of this thread waits for an answer. The next run must send `resume`."
    return "A run of this thread is not over."


async def _resume(
    context: RequestContext, over: Sequence[Resume]
) -> tuple[Accepted, Sequence[str]]:
    """Answer the approvals of interrupts; return the turn that goes on, and those it holds.

    Raises:
        NotFound: there is no such interrupt.
        UnprocessableEntity: an answer says neither yes nor no.
        Conflict: one that is resolved was answered already, or cannot be any more.
    """
    approvals, user_id = context.chat.approvals, context.user_id
    try:
        replies = [answered.answer().reply() for answered in over]
    except ValidationError:
        raise UnprocessableEntity(
            "The `payload` of a resolved interrupt is an object with `approved`: true or false."
        ) from None
    asked = [await approvals.turn_of(user_id, answered.interrupt_id) for answered in over]
    goes_on: TurnId = asked[-1]
    for answer, reply in zip(over, replies, strict=True):
        with suppress(*([Conflict] if answer.status == "cancelled" else [])):
            goes_on = await approvals.answer(user_id, answer.interrupt_id, reply) or goes_on
    turn = await context.chat.reader.turn(user_id, goes_on)
    answered = [
        answer.interrupt_id for answer, by in zip(over, asked, strict=True) if by == goes_on
    ]
    return Accepted(conversation_id=turn.conversation_id, turn_id=turn.id), answered


async def _stream(context: RequestContext, accepted: Accepted, writer: Run) -> Response:
    reader, departures = context.chat.reader, context.chat.departures
    turn = await reader.turn(context.user_id, accepted.turn_id)
    if turn.result is not None and not await reader.has_events(turn):
        return Response(
            writer.whole(pieces_of(turn.result, tells_failure=False)),
            media_type=EventStream.media_type,
        )
    return context.event_stream(
        reader.follow_turn(accepted),
        accepted.conversation_id,
        until_completed=True,
        pieces=writer,
        is_over=lambda: writer.is_over,
        failure=writer.failure,
        while_open=departures.reading(accepted.turn_id),
        on_left=partial(departures.left, context.user_id, accepted),
        headers={"X-Candor-Conversation": accepted.conversation_id},
    )
