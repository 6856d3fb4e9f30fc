"""The audit log, for administrators."""

from fastapi import APIRouter
from starlette.responses import Response

from gateway.http.context import Context
from gateway.http.json_response import JsonResponse
from gateway.http.parameters import DEFAULT_LIMIT, Limit, Parameter, read_cursor

router = APIRouter()


@router.get("/audit")
async def list_audit_entries(
    context: Context, limit: Limit = DEFAULT_LIMIT, before: Parameter = "", actor: Parameter = ""
) -> Response:
    """List who did what, the latest first; of one actor alone with `actor`."""
    context.require_admin()
    audit, cursor = context.state.services.accounts.audit, read_cursor("before", before)
    entries = await audit.page(limit=limit + 1, before=cursor, actor=actor or None)
    shown, is_more = entries[:limit], len(entries) > limit
    next_before = str(shown[-1].seq) if is_more else None
    fields = [entry.fields() for entry in shown]
    return JsonResponse({"entries": fields, "next_before": next_before})
