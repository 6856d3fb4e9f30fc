"""What chat completions and responses share: models, the place of a message, and taking it once."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import anyio.to_thread

from gateway.chat import Accepted, ChatRequest
from gateway.chat.threads import ClientMessage, Place
from gateway.conversations.model import Turn
from gateway.doors.asked import Conversation, compose
from gateway.doors.openai.chunks import failure_of, said_alone
from gateway.doors.openai.files import file_fields
from gateway.doors.openai.tasks import TASK_MODEL
from gateway.doors.pieces import has_failed
from gateway.errors import Busy, Conflict, NotFound, UnprocessableEntity
from gateway.files.uploads import FOLDER
from gateway.http.context import RequestContext
from gateway.jsonsafe import json_text

MODEL: Final = "candor"
_KEY: Final = "idempotency-key"
_OWN_NAME: Final = "x-candor-conversation"
_FOREIGN_NAMES: Final = ("x-openwebui-chat-id", "x-conversation-id")
"""Headers in which front ends name the conversation; these send the whole history each time."""
_MAX_NAME_CHARS: Final = 200


def model_names(context: RequestContext) -> list[str]:
    """List what `model` may name."""
    model = context.state.services.model
    return [MODEL, TASK_MODEL, *([model] if model else [])]


def check_model(context: RequestContext, name: str) -> None:
    """Raise `NotFound` if there is no such model."""
    if name not in model_names(context):
        raise NotFound(
            f"There is no such model; this server has {', '.join(model_names(context))}.",
            code="model_not_found",
        )


def client_message(asked: Conversation, headers: Mapping[str, str]) -> ClientMessage:
    """Return a message with what headers say of its place.

    Raise `UnprocessableEntity` if they name the conversation too long.
    """
    own = headers.get(_OWN_NAME, "").strip()
    foreign = [
        f"{name}:{headers[name].strip()}"
        for name in _FOREIGN_NAMES
        if headers.get(name, "").strip()
    ]
    thread = own or next(iter(foreign), "")
    if len(thread) > _MAX_NAME_CHARS:
        raise UnprocessableEntity(
            f"The name of the conversation is longer than {_MAX_NAME_CHARS} characters."
        )
    before = [
        replace(said, text=said_alone(said.text)) if said.role == "assistant" else said
        for said in asked.before
        if said.role != "tool"  # no part of a conversation here
    ]
    return ClientMessage(text=asked.text, before=before, thread=thread, sends_whole=not own)


async def read_message(
    context: RequestContext, read: Callable[[], Conversation]
) -> tuple[Conversation, ClientMessage]:
    """Return what `read` makes of a body, and its place. In a thread: pictures and long histories
    take a while, for which streams would wait. Raises as `read` and `client_message` do.
    """

    def work() -> tuple[Conversation, ClientMessage]:
        asked = read()
        return asked, client_message(asked, context.request.headers)

    return await anyio.to_thread.run_sync(work)


async def accept_once(
    context: RequestContext,
    take: Callable[[str], Awaitable[Accepted]],
    *,
    awaits_end: bool = True,
) -> Accepted:
    """Return the turn that `take` starts, or that of an earlier arrival of a repeated request.

    With an `Idempotency-Key` that alone tells a repetition. Without one, a request is also one if
    the same request got no answer before: its client left, or its turn failed. `awaits_end` False:
    the answer comes before the turn's end, so that the client has it.
    """
    headers = context.request.headers
    key = headers.get(_KEY, "")
    named = {name: headers.get(name, "") for name in (_OWN_NAME, *_FOREIGN_NAMES)}
    parts = [context.request.url.path, named, *([key] if key else [])]
    request = json_text(parts).encode() + context.body_digest
    if key:
        return await context.arrive(request, take, attempt=1, is_wanted=lambda _: True)
    if not awaits_end:
        return await context.arrive(request, take)
    return await context.arrive(request, take, is_wanted=partial(_is_wanted, context))


def _is_wanted(context: RequestContext, turn: Turn) -> bool:
    """Return whether the same request again asks for this turn: its answer did not arrive, or was
    a failure after it had called tools. Clients repeat failures whatever their status; one before
    any call may be tried again.
    """
    departures = context.chat.departures
    if not departures.is_recent(turn):
        return False
    result = turn.result
    return departures.is_unread(turn) or (
        result is not None and has_failed(result) and bool(result["tools"])
    )


async def wait_for_result(context: RequestContext, accepted: Accepted) -> dict[str, Any]:
    """Return a turn's result. Raise the error of a turn that failed."""
    result = await context.result(accepted)
    failed = failure_of(result, is_repeated=not context.arrived)
    if failed is not None:
        raise failed
    return result


async def store_message(
    context: RequestContext, asked: Conversation, place: Place, key: str
) -> Accepted:
    """Store a message in its place; a conversation at work refuses it unless its client left."""
    when_busy = context.chat.departures.when_busy(place.conversation_id)
    composed = partial(
        compose,
        asked,
        is_new=place.conversation_id is None,
        knows_history=place.knows_history,
    )
    try:
        if asked.pictures:  # a message that is refused must not leave them in the workspace
            composed(())
            await context.check(place.conversation_id or "", when_busy, key)
        named = await _paths_of(context, asked.files) if asked.files else ()
        stored = await context.store(asked.pictures) if asked.pictures else ()
        request = ChatRequest(
            message=composed([*(file.path for file in stored), *named]),
            conversation_id=place.conversation_id,
            when_busy=when_busy,
            idempotency_key=key,
        )
        return await context.accept(request)
    except Busy as exc:  # these clients would repeat what may be repeated
        raise Conflict(exc.message, code=exc.specific_code) from exc


async def _paths_of(context: RequestContext, ids: Sequence[str]) -> list[str]:
    """Return where files are. Raise `UnprocessableEntity` if there is no such file."""
    files = await context.files()
    try:
        return [f"{FOLDER}/{(await file_fields(files, id_))['filename']}" for id_ in ids]
    except NotFound:
        raise UnprocessableEntity(
            "There is no file with the `file_id` of the message; send it to /openai/v1/files first."
        ) from None


def place_headers(accepted: Accepted) -> dict[str, str]:
    """Return the headers that say where a message went."""
    return {"X-Candor-Conversation": accepted.conversation_id, "X-Candor-Turn": accepted.turn_id}
