"""The work tree of a conversation: its changes, merging it, throwing it away."""

from http import HTTPStatus

from fastapi import APIRouter
from starlette.responses import Response

from gateway.http.context import Context
from gateway.http.json_response import JsonResponse, fields_of

router = APIRouter()


@router.get("/conversations/{conversation_id}/worktree")
async def show_work_tree(context: Context, conversation_id: str) -> Response:
    """Return how a conversation's files differ from where it began; `state` `none`: it works in the
    workspace itself.
    """
    view = await context.chat.work_trees.view(context.user_id, conversation_id)
    if view is None:
        return JsonResponse({"state": "none"})
    changes = {"files": list(view.changes.files), "complete": view.changes.complete}
    return JsonResponse({"state": "own", **fields_of(view, ("branch", "target")), **changes})


@router.post("/conversations/{conversation_id}/worktree/merge")
async def merge_work_tree(context: Context, conversation_id: str) -> Response:
    """Merge a conversation's changes into the branch that the workspace is on."""
    merged = await context.chat.work_trees.merge(context.user_id, conversation_id)
    return JsonResponse(fields_of(merged, ("commit", "files")))


@router.delete("/conversations/{conversation_id}/worktree", status_code=HTTPStatus.NO_CONTENT)
async def discard_work_tree(context: Context, conversation_id: str) -> Response:
    """Throw a conversation's changes away, merged ones excepted."""
    await context.chat.work_trees.discard(context.user_id, conversation_id)
    return Response(status_code=HTTPStatus.NO_CONTENT)
