"""The skills, sub-agents and commands of the workspace."""

import anyio
from fastapi import APIRouter
from starlette.responses import Response

from gateway.http.context import Context, State
from gateway.http.json_response import JsonResponse
from gateway.skills import instruction_fields

router = APIRouter()


@router.get("/skills")
async def skills(context: Context, state: State) -> Response:
    """Return each skill, sub-agent and command, and why agents are not given it if they are not."""
    workspace = await state.services.workspaces.open(context.user_id)
    found = await anyio.to_thread.run_sync(workspace.skills.list_blocking)
    items = [instruction_fields(item) for item in found.items]
    return JsonResponse({"skills": items, "truncated": found.truncated})
