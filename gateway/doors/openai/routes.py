"""OpenAI's chat completions, for clients and front ends that speak them.

Closing a stream is all that Stop does in these clients: it interrupts the turn unless the client
comes back within a grace. A request without a stream that is closed was impatient: its turn goes
on, and the repeated request gets its answer.
"""

from collections.abc import Mapping
from functools import partial
from time import time
from typing import Any, Final

from fastapi import APIRouter
from starlette.responses import Response

from gateway.chat import Accepted
from gateway.chat.threads import ClientMessage
from gateway.doors.asked import Conversation
from gateway.doors.openai.acceptance import (
    accept_once,
    check_model,
    model_names,
    place_headers,
    read_message,
    store_message,
    wait_for_result,
)
from gateway.doors.openai.bodies import CompletionBody
from gateway.doors.openai.chunks import (
    DONE,
    Chunks,
    completion,
    failure,
    line,
)
from gateway.doors.openai.messages import read_messages
from gateway.doors.openai.tasks import do_task, is_task
from gateway.http.context import Context, RequestContext
from gateway.http.json_response import JsonResponse
from gateway.http.openapi import EVENTS, takes
from gateway.http.sse import EventStream

router = APIRouter(prefix="/openai/v1")

_TASK: Final = "x-candor-task"


@router.get("/models")
async def models(context: Context) -> Response:
    """List what `model` may name."""
    return JsonResponse({"object": "list", "data": [_model(name) for name in model_names(context)]})


@router.get("/models/{name:path}")
async def model(context: Context, name: str) -> Response:
    """Return one of them."""
    check_model(context, name)
    return JsonResponse(_model(name))


@router.post("/chat/completions", openapi_extra=takes(CompletionBody), responses=EVENTS)
async def chat_completions(context: Context) -> Response:
    """Answer the last message of a history, whole or as a stream."""
    body = await context.body(CompletionBody)
    check_model(context, body.model)
    headers = context.request.headers
    if is_task(body.model, body.messages, headers.get(_TASK)):
        return await _task(context, body)
    asked, message = await read_message(context, partial(read_messages, body.messages))
    accepted = await accept_once(context, partial(_accept, context, asked, message))
    told = place_headers(accepted)
    if body.stream:
        return _stream(context, body, accepted, told)
    result = await wait_for_result(context, accepted)
    head = _head("chat.completion", accepted.turn_id, body.model)
    return JsonResponse(completion(head, result), headers=told)


async def _accept(
    context: RequestContext, asked: Conversation, message: ClientMessage, key: str
) -> Accepted:
    """Store a message where its history belongs, and remember that."""
    threads = context.chat.threads
    place = await threads.place(context.user_id, message)
    accepted = await store_message(context, asked, place, key)
    await threads.note(context.user_id, message, accepted)
    return accepted


def _stream(
    context: RequestContext, body: CompletionBody, accepted: Accepted, told: Mapping[str, str]
) -> EventStream:
    departures = context.chat.departures
    chunks = Chunks(
        _head("chat.completion.chunk", accepted.turn_id, body.model),
        with_usage=body.wants_usage,
        request_id=context.request.state.request_id,
        is_repeated=not context.arrived,
    )
    return context.event_stream(
        context.chat.reader.follow_turn(accepted),
        accepted.conversation_id,
        until_completed=True,
        pieces=chunks,
        is_over=lambda: chunks.has_ended,
        failure=failure,
        while_open=departures.reading(accepted.turn_id),
        on_left=partial(departures.left, context.user_id, accepted),
        headers=told,
    )


async def _task(context: RequestContext, body: CompletionBody) -> Response:
    await context.chat.intake.check_quota(context.user_id, None)
    answer = await do_task(context.state.services.ask_model, body.messages)
    request_id = context.request.state.request_id
    counts = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    if not body.stream:
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": answer, "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
        head = _head("chat.completion", request_id, body.model)
        return JsonResponse({**head, "choices": [choice], "usage": counts})
    head = _head("chat.completion.chunk", request_id, body.model)
    delta = {"role": "assistant", "content": answer}
    choices = [{"index": 0, "delta": delta, "finish_reason": None}]
    end = [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    told = [{**head, "choices": choices}, {**head, "choices": end}]
    if body.wants_usage:
        told.append({**head, "choices": [], "usage": counts})
    return Response(b"".join([*map(line, told), DONE]), media_type="text/event-stream")


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "candor"}


def _head(kind: str, id_: str, model: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{id_}", "object": kind, "created": int(time()), "model": model}
