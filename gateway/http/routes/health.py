"""Liveness, readiness part by part, metrics, and the description of the API."""

from http import HTTPStatus
from typing import Any

import anyio
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from gateway.http.context import UNAVAILABLE, Context, State
from gateway.http.json_response import JsonResponse
from gateway.http.readiness import Answer, ask_parts, can_run
from gateway.version import VERSION

router = APIRouter()


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz")
async def healthz() -> Response:
    """Answer while the process is alive; no part is asked."""
    return JsonResponse({"ok": True})


@router.head("/healthz/ready", include_in_schema=False)
@router.get("/healthz/ready")
async def healthz_ready(state: State) -> Response:
    """Return 200 if turns can run and their logs be kept, else 503, to anybody: for probes."""
    ready = await state.readiness.is_ready(state.services, state.limits.ping_deadline_s)
    return JsonResponse({"ready": ready}, status_code=_status(is_ready=ready))


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz")
async def readyz(state: State) -> Response:
    """Return the state of each part: 200 if turns can run and their logs be kept, else 503."""
    services = state.services
    answers = await ask_parts(services, state.limits.ping_deadline_s)
    ready = can_run(services, answers)
    return JsonResponse(
        {
            "ready": ready,
            "demo": services.demo,
            "checks_answers": services.settings.check == "model",
            "runs_schedules": services.settings.schedules == "on",
            "model": services.model,
            "version": VERSION,
            "parts": {name: _part(answer) for name, answer in answers.items()},
        },
        status_code=_status(is_ready=ready),
    )


@router.head("/metrics", include_in_schema=False, response_class=PlainTextResponse)
@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(state: State) -> Response:
    """Return all metrics in Prometheus' text format."""
    text, media_type = state.services.metrics.render()
    return Response(text, headers={"Content-Type": media_type})


@router.get("/operations")
async def operations(context: Context) -> Response:
    """Return what the server is doing now; of other users' conversations only how
    many there are.
    """
    return JsonResponse(await context.chat.operations.snapshot(context.user_id))


@router.get("/openapi.json")
async def openapi(request: Request) -> Response:
    """Describe the API as OpenAPI 3.1."""
    description = await anyio.to_thread.run_sync(request.app.openapi)  # slow the first time
    return JsonResponse(description)


def _status(*, is_ready: bool) -> HTTPStatus:
    return HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE


def _part(answer: Answer) -> dict[str, Any]:
    if isinstance(answer, str):
        return {"ok": False, "message": answer}
    fields = answer or {}
    return {"ok": fields.get("state") != UNAVAILABLE, **fields}
