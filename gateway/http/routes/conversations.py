"""Conversations: list, show, change, leave, fork, interrupt, delete."""

from http import HTTPStatus
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response, StreamingResponse

from gateway.conversations.store import UnknownCursor
from gateway.errors import NotFound
from gateway.http.context import Context
from gateway.http.export import FORMATS, export
from gateway.http.json_response import JsonResponse, fields_of
from gateway.http.openapi import takes
from gateway.http.parameters import (
    DEFAULT_LIMIT,
    Limit,
    Parameter,
    Switch,
    read_cursor,
    read_id,
    unknown_cursor,
)
from gateway.http.schemas import ConversationBody, ForkBody, NewConversationBody
from gateway.http.views import (
    MATCH,
    SPENDING,
    MessagePage,
    branch_fields,
    conversation_fields,
    conversation_with_queue,
)
from gateway.ids import TurnId

router = APIRouter()
Format = Annotated[Literal["markdown", "jsonl"], Query(alias="format")]


@router.get("/conversations")
async def list_conversations(
    context: Context,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Parameter = "",
    q: Parameter = "",
    *,
    pinned: Switch = False,
) -> Response:
    """List the user's conversations, newest first; with `pinned` all of those that are, and no
    other.
    """
    if pinned:
        views = await context.chat.conversations.pinned(context.user_id)
        return JsonResponse(
            {"conversations": list(map(conversation_fields, views)), "next_cursor": None}
        )
    try:
        views, next_cursor = await context.chat.conversations.page(
            context.user_id, limit=limit, cursor=cursor or None, query=q.strip() or None
        )
    except UnknownCursor as exc:
        raise unknown_cursor("cursor") from exc
    conversations = [conversation_fields(view) for view in views]
    return JsonResponse({"conversations": conversations, "next_cursor": next_cursor})


@router.get("/conversations/{conversation_id}/matches")
async def find_in_conversation(
    context: Context, conversation_id: str, q: Parameter = "", limit: Limit = DEFAULT_LIMIT
) -> Response:
    """Return where a conversation holds a text, the latest turn first."""
    found = await context.chat.conversations.find(
        context.user_id, conversation_id, q.strip(), limit
    )
    return JsonResponse({"matches": [fields_of(match, MATCH) for match in found]})


@router.post(
    "/new-conversation",
    status_code=HTTPStatus.CREATED,
    openapi_extra=takes(NewConversationBody, required=False),
)
async def new_conversation(context: Context) -> Response:
    """Start a conversation; the one being left becomes stale at once."""
    body = await context.optional_body(NewConversationBody) or NewConversationBody()
    conversation_id = await context.chat.conversations.create(
        context.user_id,
        leaving=body.conversation_id,
        title=body.title or "",
        project_id=body.project_id,
    )
    return JsonResponse({"conversation_id": conversation_id}, status_code=HTTPStatus.CREATED)


@router.get("/conversations/{conversation_id}")
async def show_conversation(context: Context, conversation_id: str) -> Response:
    """Show one conversation with its queue."""
    return JsonResponse(
        conversation_with_queue(
            await context.chat.conversations.get(context.user_id, conversation_id)
        )
    )


@router.patch("/conversations/{conversation_id}", openapi_extra=takes(ConversationBody))
async def change_conversation(context: Context, conversation_id: str) -> Response:
    """Change the fields that the body names."""
    body = await context.body(ConversationBody)
    view = await context.chat.conversations.change(context.user_id, conversation_id, body.change())
    return JsonResponse(conversation_with_queue(view))


@router.delete("/conversations/{conversation_id}", status_code=HTTPStatus.NO_CONTENT)
async def delete_conversation(context: Context, conversation_id: str) -> Response:
    """End its process and delete its messages and events."""
    await context.chat.conversations.delete(context.user_id, conversation_id)
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.get("/conversations/{conversation_id}/messages")
async def list_messages(
    context: Context, conversation_id: str, limit: Limit = DEFAULT_LIMIT, before: Parameter = ""
) -> Response:
    """List the last `limit` messages, user messages and turn results, oldest first."""
    page = MessagePage(limit, read_cursor("before", before))
    turns = await context.chat.conversations.messages(
        context.user_id, conversation_id, limit=page.max_turns, before_seq=page.before_seq
    )
    messages, next_before = page.cut(turns)
    return JsonResponse({"messages": messages, "next_before": next_before})


@router.get("/conversations/{conversation_id}/export", response_class=StreamingResponse)
async def export_conversation(
    context: Context, conversation_id: str, *, file_format: Format = "markdown"
) -> Response:
    """Return the whole conversation as a file."""
    conversations, form = context.chat.conversations, FORMATS[file_format]
    view = await conversations.get(context.user_id, conversation_id)
    turns = conversations.history(context.user_id, conversation_id)
    name = f"{view.conversation.id}.{form.suffix}"
    return StreamingResponse(
        export(view, turns, form),
        media_type=form.media_type,
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


@router.get("/quota")
async def show_quota(context: Context) -> Response:
    """Show what the user may use, and has used today."""
    return JsonResponse(await context.chat.conversations.show_quota(context.user_id))


@router.get("/conversations/{conversation_id}/usage")
async def show_usage(context: Context, conversation_id: str) -> Response:
    """Show what a conversation's own turns have used."""
    spending = await context.chat.conversations.spending(context.user_id, conversation_id)
    return JsonResponse(fields_of(spending, SPENDING))


@router.get("/conversations/{conversation_id}/branches")
async def list_branches(context: Context, conversation_id: str) -> Response:
    """List the other branches of a conversation's line, oldest first."""
    branches = await context.chat.conversations.branches(context.user_id, conversation_id)
    return JsonResponse({"branches": list(map(branch_fields, branches))})


@router.get("/conversations/{conversation_id}/turns/{turn_id}/tools/{index}")
async def show_tool_call(
    context: Context, conversation_id: str, turn_id: str, index: str, *, whole: Switch = False
) -> Response:
    """Return one tool call of a turn with its input and output, with `whole=1` unclipped."""
    number = read_id(index)
    if number is None:
        raise NotFound("There is no such call in this turn.")
    log_dir = context.state.services.settings.log_dir if whole else None
    return JsonResponse(
        await context.chat.reader.tool_call(
            context.user_id, conversation_id, turn_id, number, log_dir=log_dir
        )
    )


@router.get("/conversations/{conversation_id}/turns/{turn_id}/changes")
async def show_file_changes(context: Context, conversation_id: str, turn_id: str) -> Response:
    """Return the files of the workspace that a turn changed, with unified diffs."""
    return JsonResponse(
        await context.chat.reader.file_changes(context.user_id, conversation_id, turn_id)
    )


@router.post(
    "/conversations/{conversation_id}/interrupt",
    status_code=HTTPStatus.ACCEPTED,
    responses={200: {}},
)
async def interrupt(
    context: Context, conversation_id: str, turn_id: Parameter = "", *, wait: Switch = False
) -> Response:
    """Stop the running turn, with `turn_id` only if it is that one; with `wait=1` answer with its
    result once it has stopped.
    """
    only = TurnId(turn_id) if turn_id else None
    stopped = await context.chat.intake.interrupt(context.user_id, conversation_id, turn_id=only)
    if wait:
        return JsonResponse(await context.chat.reader.result(context.user_id, stopped))
    return JsonResponse({"state": "stopping"}, status_code=HTTPStatus.ACCEPTED)


@router.post(
    "/conversations/{conversation_id}/fork",
    status_code=HTTPStatus.CREATED,
    openapi_extra=takes(ForkBody),
)
async def fork(context: Context, conversation_id: str) -> Response:
    """Create a conversation that remembers this one up to a turn, or what came before it."""
    body = await context.body(ForkBody)
    fork_id = await context.chat.conversations.fork(
        context.user_id, conversation_id, body.turn_id, before=body.before
    )
    return JsonResponse({"conversation_id": fork_id}, status_code=HTTPStatus.CREATED)


@router.delete(
    "/conversations/{conversation_id}/queue/{turn_id}", status_code=HTTPStatus.NO_CONTENT
)
async def take_back(context: Context, conversation_id: str, turn_id: str) -> Response:
    """Withdraw a queued message."""
    await context.chat.intake.take_back(context.user_id, conversation_id, turn_id)
    return Response(status_code=HTTPStatus.NO_CONTENT)
