"""OpenAI's responses: a response is a turn, and goes on behind another in the same conversation.

A response behind one that is not the last of its conversation begins a fork. Closing the stream of
a response interrupts its turn after a grace, unless it runs in the background or somebody reads it
again. Reading a response never stops it; `cancel` does.
"""

from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Annotated, Final

from fastapi import APIRouter, Query
from starlette.responses import Response

from gateway.chat import Accepted, ChatRequest
from gateway.chat.threads import ClientMessage, Place
from gateway.conversations.model import Turn, starts_afresh
from gateway.doors.asked import Conversation
from gateway.doors.openai.acceptance import (
    accept_once,
    check_model,
    place_headers,
    read_message,
    store_message,
    wait_for_result,
)
from gateway.doors.openai.messages import read_messages, said_in
from gateway.doors.openai.response_bodies import (
    CompactBody,
    ResponseBody,
    read_history,
    read_input,
)
from gateway.doors.openai.response_events import ResponseStream, ResponseWriter
from gateway.doors.openai.response_objects import (
    asked_item,
    listed,
    response_id,
    response_usage,
    turn_id_of,
)
from gateway.doors.pieces import pieces_of
from gateway.errors import Busy, Conflict, NotFound, UnprocessableEntity
from gateway.http.context import Context, RequestContext
from gateway.http.json_response import JsonResponse
from gateway.http.openapi import EVENTS, takes
from gateway.http.parameters import Switch
from gateway.http.sse import EventStream

router = APIRouter(prefix="/openai/v1")

_COMPACT = "/compact"
_KEPT: Final = {
    "X-Candor-Notice": "Candor keeps every turn, also with store=false; delete the conversation to"
    " remove it."
}


@router.post("/responses", openapi_extra=takes(ResponseBody), responses=EVENTS)
async def create_response(context: Context) -> Response:
    """Answer an input: whole, as a stream, or in the background."""
    body = await context.body(ResponseBody)
    check_model(context, body.model)
    if body.conversation_id and body.behind:
        raise UnprocessableEntity("Give `conversation` or `previous_response_id`, not both.")
    asked, message = await read_message(context, lambda: read_messages(read_input(body)))
    take = partial(_accept, context, body, asked, message)
    accepted = await accept_once(context, take, awaits_end=not body.background)
    told = place_headers(accepted) | (_KEPT if body.store is False else {})
    if body.stream:
        turn = await context.chat.reader.turn(context.user_id, accepted.turn_id)
        return await _stream(context, turn, headers=told, is_in_background=bool(body.background))
    if not body.background:
        await wait_for_result(context, accepted)
    turn = await context.chat.reader.turn(context.user_id, accepted.turn_id)
    writer = await written(context, turn, is_in_background=bool(body.background))
    return JsonResponse(writer.response(), headers=told)


@router.get("/responses/{response_id}", responses=EVENTS)
async def get_response(
    context: Context,
    response_id: str,
    starting_after: Annotated[int, Query(ge=-1)] = -1,
    *,
    stream: Switch = False,
) -> Response:
    """Return a response as far as it is, or as a stream after an event."""
    turn = await _find(context, response_id)
    if stream:
        return await _stream(context, turn, after=starting_after)
    return JsonResponse((await written(context, turn)).response())


@router.get("/responses/{response_id}/input_items")
async def input_items(context: Context, response_id: str) -> Response:
    """List what a response answers: the person's message."""
    return JsonResponse(listed([asked_item(await _find(context, response_id))]))


@router.post("/responses/{response_id}/cancel")
async def cancel_response(context: Context, response_id: str) -> Response:
    """Stop a response, and return it when it has ended; one that had ended stays as it is."""
    turn = await _find(context, response_id)
    if turn.result is None:
        intake, place = context.chat.intake, (context.user_id, turn.conversation_id)
        try:
            await intake.interrupt(*place, turn_id=turn.id)
        except Conflict:  # it waits, or has ended meanwhile
            with suppress(NotFound):
                await intake.take_back(*place, turn.id)
        await context.chat.reader.result(context.user_id, turn.id)
    return JsonResponse((await written(context, await _find(context, response_id))).response())


@router.delete("/responses/{response_id}")
async def delete_response(context: Context, response_id: str) -> Response:
    """Delete a response with its conversation, if nothing else is in it."""
    turn = await _find(context, response_id)
    view = await context.chat.conversations.get(context.user_id, turn.conversation_id)
    if view.conversation.turns > 1:
        raise Conflict(
            "This response is part of a longer conversation; delete the conversation"
            f" {turn.conversation_id}.",
            code="part_of_conversation",
        )
    await context.chat.conversations.delete(context.user_id, turn.conversation_id)
    return JsonResponse({"id": response_id, "object": "response", "deleted": True})


@router.post("/responses/compact", openapi_extra=takes(CompactBody))
async def compact(context: Context) -> Response:
    """Summarise the conversation of a response for the agent; the answer's item stands for
    it in a later input.
    """
    body = await context.body(CompactBody)
    check_model(context, body.model)
    behind = await _compacted(context, body)
    accepted = await accept_once(context, partial(_accept_compact, context, body, behind))
    result = await wait_for_result(context, accepted)
    turn = await context.chat.reader.turn(context.user_id, accepted.turn_id)
    stands_for = response_id(turn.id)
    item = {"id": f"cmp_{turn.id}", "type": "compaction", "encrypted_content": stands_for}
    compacted = {
        "id": stands_for,
        "object": "response.compaction",
        "created_at": int(turn.created_at.timestamp()),
        "output": [item],
        "usage": response_usage(result),
    }
    return JsonResponse(compacted, headers=place_headers(accepted))


async def _compacted(context: RequestContext, body: CompactBody) -> Turn:
    """Return the turn up to which a conversation is to be compacted.

    Raise `NotFound` if Candor does not have it.
    """
    if body.behind is not None:
        return await _find(context, body.behind)
    history, message = await read_message(context, partial(_history_of, body))
    if not history.before:
        raise UnprocessableEntity(
            "Name a response of the conversation that is to be compacted as"
            " `previous_response_id`, or send its history as `input`."
        )
    found = await context.chat.threads.turn_before(context.user_id, message)
    if found is None:
        raise NotFound("Candor compacts conversations of its own, and has none with this history.")
    return found


def _history_of(body: CompactBody) -> Conversation:
    before = said_in(read_history(body))
    return Conversation(text="", pictures=(), before=before, instructions="")


async def _accept_compact(
    context: RequestContext, body: CompactBody, behind: Turn, key: str
) -> Accepted:
    request = ChatRequest(
        message=f"{_COMPACT} {body.instructions or ''}".strip(),
        conversation_id=await context.chat.threads.go_on(context.user_id, behind),
        when_busy="reject",
        idempotency_key=key,
    )
    try:
        return await context.accept(request)
    except Busy as exc:
        raise Conflict(exc.message, code=exc.specific_code) from exc


async def _accept(
    context: RequestContext,
    body: ResponseBody,
    asked: Conversation,
    message: ClientMessage,
    key: str,
) -> Accepted:
    """Store a message behind the response or in the conversation that the body names, else where
    its history belongs.
    """
    threads, knows_history = context.chat.threads, not message.before
    if body.behind is not None:
        behind = await _find(context, body.behind)
        there = await threads.go_on(context.user_id, behind)
        return await store_message(context, asked, Place(there, knows_history), key)
    if body.conversation_id is not None:
        if starts_afresh(message.text):  # elsewhere, and the client goes on in this one
            raise UnprocessableEntity("A conversation cannot be cleared; name another one instead.")
        view = await context.chat.conversations.get(context.user_id, body.conversation_id)
        place = Place(view.conversation.id, knows_history)
        return await store_message(context, asked, place, key)
    place = await threads.place(context.user_id, message)
    accepted = await store_message(context, asked, place, key)
    await threads.note(context.user_id, message, accepted)
    return accepted


async def _find(context: RequestContext, name: str) -> Turn:
    """Return the turn of a response. Raise `NotFound` if there is none."""
    try:
        return await context.chat.reader.turn(context.user_id, turn_id_of(name))
    except NotFound as exc:
        raise NotFound("There is no such response.") from exc


async def written(
    context: RequestContext, turn: Turn, *, is_in_background: bool = False
) -> ResponseWriter:
    """Return a turn's response as far as it is."""
    reader = context.chat.reader
    before = await reader.turn_before(turn)
    writer = ResponseWriter(turn, before, is_in_background=is_in_background)
    if turn.result is not None and not await reader.has_events(turn):
        deque(writer.write_pieces(pieces_of(turn.result, tells_failure=False)), maxlen=0)
        return writer
    async with reader.follow_turn(_accepted(turn)) as told:
        while events := await told.next(0):
            deque(writer.write(events), maxlen=0)
    return writer


async def _stream(
    context: RequestContext,
    turn: Turn,
    *,
    after: int = -1,
    headers: Mapping[str, str] | None = None,
    is_in_background: bool | None = None,
) -> Response:
    """Return a response's stream; a client that leaves that of a request which is not in the
    background interrupts the turn. None: the stream only reads.
    """
    reader, departures = context.chat.reader, context.chat.departures
    before = await reader.turn_before(turn)
    writer = ResponseWriter(turn, before, is_in_background=bool(is_in_background))
    stream = ResponseStream(writer, after=after)
    accepted = _accepted(turn)
    if turn.result is not None and not await reader.has_events(turn):
        lines = stream.lines(writer.write_pieces(pieces_of(turn.result, tells_failure=False)))
        return Response(b"".join(lines), media_type=EventStream.media_type)
    return context.event_stream(
        reader.follow_turn(accepted),
        turn.conversation_id,
        until_completed=True,
        pieces=stream,
        is_over=lambda: writer.has_ended,
        failure=stream.failure,
        while_open=departures.reading(turn.id),
        on_left=None
        if is_in_background is not False
        else partial(departures.left, context.user_id, accepted),
        headers=headers or {},
    )


def _accepted(turn: Turn) -> Accepted:
    return Accepted(conversation_id=turn.conversation_id, turn_id=turn.id)
