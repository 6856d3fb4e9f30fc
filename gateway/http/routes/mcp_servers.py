"""The MCP servers, their tools and states."""

from fastapi import APIRouter
from starlette.responses import Response

from gateway.http.context import Context, State
from gateway.http.json_response import JsonResponse

router = APIRouter()


@router.get("/mcp-servers")
async def mcp_servers(_context: Context, state: State) -> Response:
    """Return each server of `CANDOR_MCP_FILE` with its state, and its tools with theirs."""
    return JsonResponse({"servers": state.services.mcp_servers.describe()})
