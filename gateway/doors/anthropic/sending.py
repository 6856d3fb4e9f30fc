"""What a client sends to a session: messages, interrupts, answers to calls that wait.

All of a request is checked before the first of it is applied, in order. A message of a repeated
request is that of its first arrival, with the interrupt before it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from gateway.chat import Accepted, ChatRequest
from gateway.conversations.model import ClientObject, starts_afresh
from gateway.doors.anthropic.bodies import (
    MAX_CHARS,
    OtherEvent,
    ToolConfirmation,
    UserInterrupt,
    UserMessage,
)
from gateway.doors.anthropic.events import confirmation, interrupt_id, user_message
from gateway.doors.anthropic.objects import INSTRUCTIONS, check_open
from gateway.doors.anthropic.sessions import find_session
from gateway.errors import Conflict, UnprocessableEntity
from gateway.http.context import RequestContext
from gateway.http.schemas import ApprovalBody
from gateway.ids import TurnId, new_request_id
from gateway.jsonsafe import json_text
from memory.clock import rfc3339, utc_now

Event = UserMessage | UserInterrupt | ToolConfirmation | OtherEvent


async def check(context: RequestContext, session: ClientObject, events: Sequence[Event]) -> None:
    """Check all events. Raise `UnprocessableEntity` if one of them cannot be taken."""
    check_open(session)
    asked: set[str] = set()
    if any(isinstance(event, ToolConfirmation) for event in events):
        listed = await context.chat.approvals.listed(context.user_id, session.id)
        asked = {approval["approval_id"] for approval in listed}
    for event in events:
        match event:
            case UserMessage():
                check_message(event, session.data["agent"])
            case ToolConfirmation():
                if event.deny_message and event.result != "deny":
                    raise UnprocessableEntity("`deny_message` is for `deny` alone.")
                if event.tool_use_id not in asked and not context.attempt:
                    raise UnprocessableEntity(
                        "No such call waits for an answer; it may have been answered already."
                    )
            case UserInterrupt():
                pass
            case OtherEvent():
                raise UnprocessableEntity(
                    f"Events of the type {event.type[:60]!r} are not taken here."
                )


def check_message(event: UserMessage, agent: Mapping[str, Any]) -> None:
    """Raise `UnprocessableEntity` if a message cannot be taken."""
    text = event.text()
    if len(text) + len(agent.get("system") or "") > MAX_CHARS:
        raise UnprocessableEntity(f"The message is longer than {MAX_CHARS} characters.")
    if starts_afresh(text):
        raise UnprocessableEntity("A session cannot be cleared; create another one instead.")


async def begin(
    context: RequestContext,
    events: Sequence[Event],
    agent: Mapping[str, Any],
    create: Callable[[], Awaitable[ClientObject]],
) -> str:
    """Create a session with its first messages, once for a repeated request; return its id.

    Raise `UnprocessableEntity`, before anything is created, if there is something else than
    messages.
    """
    messages = [event for event in events if isinstance(event, UserMessage)]
    if len(messages) < len(events):
        raise UnprocessableEntity("The first events of a session are messages.")
    for message in messages:
        check_message(message, agent)

    async def take(key: str) -> Accepted:
        return await _accept(context, await create(), messages[0], key)

    accepted = await _arrive(context, 0, take)
    session = await find_session(context, accepted.conversation_id)
    for place, message in enumerate(messages[1:], 1):
        await _arrive(context, place, partial(_accept, context, session, message))
    return session.id


async def apply(
    context: RequestContext, session: ClientObject, events: Sequence[Event]
) -> list[dict[str, Any]]:
    """Apply checked events; return them as they stand in the session."""
    told: list[dict[str, Any]] = []
    stops = False
    for place, event in enumerate(events):
        match event:
            case UserInterrupt():
                is_before = isinstance((*events, None)[place + 1], UserMessage)
                if is_before:  # it belongs to the message, which may be a repeated one
                    stops = True
                else:
                    told.append(await _interrupt(context, session.id))
            case UserMessage():
                told += await _say(context, session, event, place, stops=stops)
                stops = False
            case ToolConfirmation():
                told.append(await _answer(context, event))
            case OtherEvent():
                raise AssertionError("check the events first")
    return told


async def _say(
    context: RequestContext, session: ClientObject, event: UserMessage, place: int, *, stops: bool
) -> list[dict[str, Any]]:
    interrupts: list[dict[str, Any]] = []

    async def take(key: str) -> Accepted:
        accepted = await _accept(context, session, event, key, stops=stops)
        if stops:
            interrupts.append(_interrupted(accepted.interrupted))
        return accepted

    accepted = await _arrive(context, place, take)
    turn = await context.chat.reader.turn(context.user_id, accepted.turn_id)
    return [*interrupts, user_message(turn, is_waiting=turn.state == "queued")]


async def _arrive(
    context: RequestContext, place: int, take: Callable[[str], Awaitable[Accepted]]
) -> Accepted:
    """Take the message at a place of the request, once for a repeated request."""
    request = json_text([context.request.url.path, place]).encode() + context.body_digest
    return await context.arrive(request, take)


async def _accept(
    context: RequestContext,
    session: ClientObject,
    event: UserMessage,
    key: str,
    *,
    stops: bool = False,
) -> Accepted:
    """Store a message; the first one of a session takes the agent's instructions along.

    With `stops` it interrupts what runs as soon as it is stored, so that the session is not idle
    in between.
    """
    text = event.text()
    view = await context.chat.conversations.get(context.user_id, session.id)
    system = session.data["agent"].get("system")
    if system and view.conversation.turns == 0:
        text += INSTRUCTIONS + system
    request = ChatRequest(
        message=text,
        conversation_id=session.id,
        when_busy="interrupt" if stops else "enqueue",
        idempotency_key=key,
    )
    return await context.accept(request)


async def _interrupt(context: RequestContext, session_id: str) -> dict[str, Any]:
    """Stop what runs; nothing happens if nothing does."""
    stopped = None
    with suppress(Conflict):
        stopped = await context.chat.intake.interrupt(context.user_id, session_id)
    return _interrupted(stopped)


def _interrupted(turn_id: TurnId | None) -> dict[str, Any]:
    id_ = new_request_id() if turn_id is None else interrupt_id(turn_id)
    return {"id": id_, "type": "user.interrupt", "processed_at": rfc3339(utc_now())}


async def _answer(context: RequestContext, event: ToolConfirmation) -> dict[str, Any]:
    reply = ApprovalBody(decision=event.result, message=event.deny_message or "").reply()
    answer = partial(context.chat.approvals.answer, context.user_id, event.tool_use_id, reply)
    if context.attempt:  # the first arrival of this request may have answered
        with suppress(Conflict):
            await answer()
    else:
        await answer()
    told = confirmation(event.tool_use_id, event.result, event.deny_message or "")
    return {**told, "processed_at": rfc3339(utc_now())}
