"""Alive; ready, part by part; metrics; the description of the API."""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import anyio
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from gateway.http.context import UNAVAILABLE, Ping, State
from gateway.http.json_response import JsonResponse
from gateway.version import VERSION

router = APIRouter()
_log = logging.getLogger(__name__)

_Answer = str | Mapping[str, str] | None


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz")
async def healthz() -> Response:
    """Say that the process answers; nothing else is looked at."""
    return JsonResponse({"ok": True})


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz")
async def readyz(state: State) -> Response:
    """Say whether turns can be run and their logs be kept, and which part is at fault if not: 200 or 503."""
    services = state.services
    answers = await _ask_all(services.pings, state.limits.ping_deadline_s)
    ready = not services.chat.intake.is_closed and not any(map(_is_fault, answers.values()))
    return JsonResponse(
        {
            "ready": ready,
            "demo": services.demo,
            "model": services.model,
            "version": VERSION,
            "parts": {name: _part(answer) for name, answer in answers.items()},
        },
        status_code=HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE,
    )


@router.head("/metrics", include_in_schema=False, response_class=PlainTextResponse)
@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(state: State) -> Response:
    """Give all metrics in Prometheus' text format."""
    text, media_type = state.services.metrics.render()
    return Response(text, headers={"Content-Type": media_type})


@router.get("/openapi.json")
async def openapi(request: Request) -> Response:
    """Describe the API as OpenAPI 3.1."""
    description = await anyio.to_thread.run_sync(request.app.openapi)  # slow the first time
    return JsonResponse(description)


async def _ask_all(pings: Mapping[str, Ping], deadline_s: float) -> dict[str, _Answer]:
    answers: dict[str, _Answer] = {}

    async def ask(name: str, ping: Ping) -> None:
        answers[name] = await _ask(name, ping, deadline_s)

    async with anyio.create_task_group() as tasks:
        for name, ping in pings.items():
            tasks.start_soon(ask, name, ping)
    return {name: answers[name] for name in pings}


async def _ask(name: str, ping: Ping, deadline_s: float) -> _Answer:
    try:
        with anyio.fail_after(deadline_s):
            return await ping()
    except TimeoutError:
        return "It did not answer in time."
    except Exception:  # noqa: BLE001  a part that breaks must not hide the others
        _log.exception("ping_failed", extra={"part": name})
        return "It could not be asked; the server's log says why."


def _is_fault(answer: _Answer) -> bool:
    """Whether no turn can be run, or no log of it kept, with this part as it is."""
    return isinstance(answer, str)


def _part(answer: _Answer) -> dict[str, Any]:
    if isinstance(answer, str):
        return {"ok": False, "message": answer}
    told = answer or {}
    return {"ok": told.get("state") != UNAVAILABLE, **told}
