"""Liveness, readiness part by part, metrics, and the description of the API."""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import anyio
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from gateway.http.context import UNAVAILABLE, Context, State
from gateway.http.json_response import JsonResponse
from gateway.model_access import Ping
from gateway.version import VERSION

router = APIRouter()
_log = logging.getLogger(__name__)

_Answer = str | Mapping[str, str] | None


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz")
async def healthz() -> Response:
    """Answer while the process is alive; no part is asked."""
    return JsonResponse({"ok": True})


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz")
async def readyz(state: State) -> Response:
    """Return the state of each part: 200 if turns can run and their logs be kept, else 503."""
    services = state.services
    answers: dict[str, _Answer] = dict.fromkeys(services.pings)

    async def ask(name: str, ping: Ping) -> None:
        answers[name] = await _ask(name, ping, state.limits.ping_deadline_s)

    async with anyio.create_task_group() as tasks:
        for name, ping in services.pings.items():
            tasks.start_soon(ask, name, ping)
    failed = any(isinstance(answer, str) for answer in answers.values())
    ready = not services.chat.intake.is_closed and not failed
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
        status_code=HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE,
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


async def _ask(name: str, ping: Ping, deadline_s: float) -> _Answer:
    try:
        with anyio.fail_after(deadline_s):
            return await ping()
    except TimeoutError:
        return "It did not answer in time."
    except Exception:  # noqa: BLE001  a broken part must not hide the others
        _log.exception("ping_failed", extra={"part": name})
        return "It could not be asked; the server's log says why."


def _part(answer: _Answer) -> dict[str, Any]:
    if isinstance(answer, str):
        return {"ok": False, "message": answer}
    fields = answer or {}
    return {"ok": fields.get("state") != UNAVAILABLE, **fields}
