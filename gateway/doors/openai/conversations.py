"""OpenAI's conversations: those of Candor, with their messages and calls as items."""

from collections.abc import AsyncIterator
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from gateway.conversations.model import Conversation
from gateway.doors.openai.response_bodies import NewConversation
from gateway.doors.openai.response_objects import asked_item, listed
from gateway.doors.openai.responses import written
from gateway.errors import NotFound, UnprocessableEntity
from gateway.http.context import Context, RequestContext
from gateway.http.json_response import JsonResponse
from gateway.http.openapi import takes
from gateway.http.parameters import Parameter

router = APIRouter(prefix="/openai/v1/conversations")

Limit = Annotated[int, Query(ge=1, le=100)]
Order = Annotated[Literal["asc", "desc"], Query()]
_DEFAULT_LIMIT: Final = 20
_TURNS_AT_ONCE: Final = 10
_NO_TURN: Final = 2**53


@router.post("", openapi_extra=takes(NewConversation))
async def create_conversation(context: Context) -> Response:
    """Start a conversation without items."""
    body = await context.body(NewConversation)
    if body.items:
        raise UnprocessableEntity(
            "A conversation begins without items; send earlier messages with the first input."
        )
    created = await context.chat.conversations.create(context.user_id)
    return JsonResponse(await _fields(context, created))


@router.get("/{conversation_id}")
async def get_conversation(context: Context, conversation_id: str) -> Response:
    """Return a conversation."""
    return JsonResponse(await _fields(context, conversation_id))


@router.delete("/{conversation_id}")
async def delete_conversation(context: Context, conversation_id: str) -> Response:
    """Delete a conversation with all its responses."""
    await context.chat.conversations.delete(context.user_id, conversation_id)
    return JsonResponse({"id": conversation_id, "object": "conversation.deleted", "deleted": True})


@router.get("/{conversation_id}/items")
async def list_items(
    context: Context,
    conversation_id: str,
    limit: Limit = _DEFAULT_LIMIT,
    order: Order = "desc",
    after: Parameter = "",
) -> Response:
    """List what was said and done in a conversation, the latest first unless `order` is `asc`."""
    found = await context.chat.conversations.get(context.user_id, conversation_id)
    page: list[dict[str, Any]] = []
    is_behind = not after
    async for item in _items(context, found.conversation, order):
        if is_behind:
            page.append(item)
        elif item["id"] == after:
            is_behind = True
        if len(page) > limit:
            break
    if not is_behind:
        raise NotFound("There is no such item in this conversation.")
    return JsonResponse(listed(page[:limit], has_more=len(page) > limit))


@router.get("/{conversation_id}/items/{item_id}")
async def get_item(context: Context, conversation_id: str, item_id: str) -> Response:
    """Return one item of a conversation."""
    found = await context.chat.conversations.get(context.user_id, conversation_id)
    async for item in _items(context, found.conversation, "desc"):
        if item["id"] == item_id:
            return JsonResponse(item)
    raise NotFound("There is no such item in this conversation.")


async def _items(
    context: RequestContext, conversation: Conversation, order: str
) -> AsyncIterator[dict[str, Any]]:
    """Yield a conversation's items."""
    conversations, user_id = context.chat.conversations, context.user_id
    if order == "asc":
        async for turn in conversations.history(user_id, conversation.id):
            for item in [asked_item(turn), *(await written(context, turn)).response()["output"]]:
                yield item
        return
    before = _NO_TURN
    while turns := await conversations.messages(
        user_id, conversation.id, limit=_TURNS_AT_ONCE, before_seq=before
    ):
        for turn in reversed(turns):
            output = (await written(context, turn)).response()["output"]
            for item in [*reversed(output), asked_item(turn)]:
                yield item
        before = turns[0].seq


async def _fields(context: RequestContext, conversation_id: str) -> dict[str, Any]:
    found = await context.chat.conversations.get(context.user_id, conversation_id)
    return {
        "id": found.conversation.id,
        "object": "conversation",
        "created_at": int(found.conversation.created_at.timestamp()),
        "metadata": {},
    }
