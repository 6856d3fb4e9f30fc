"""Schedules: messages that are sent at times of the user's choice."""

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from gateway.chat.schedules import ScheduleView
from gateway.http.context import Context
from gateway.http.json_response import JsonResponse, fields_of
from gateway.http.openapi import takes
from gateway.http.schemas import RunScheduleBody, ScheduleBody, ScheduleChangeBody
from memory.clock import rfc3339

router = APIRouter()

_SCHEDULE = (
    *("id", "name", "cron", "time_zone", "message", "conversation_id", "project_id", "enabled"),
    *("created_at", "problem"),
)


@router.get("/schedules")
async def list_schedules(context: Context) -> Response:
    """List the user's schedules, oldest first."""
    views = await context.chat.schedules.listed(context.user_id)
    settings = context.state.services.settings
    return JsonResponse(
        {
            "schedules": list(map(_fields, views)),
            "runs": settings.schedules == "on",
            "max_schedules": settings.max_schedules,
        }
    )


@router.post("/schedules", status_code=HTTPStatus.CREATED, openapi_extra=takes(ScheduleBody))
async def add_schedule(context: Context) -> Response:
    """Add a schedule."""
    body = await context.body(ScheduleBody)
    view = await context.chat.schedules.create(context.user_id, body.model_dump())
    return JsonResponse(_fields(view), status_code=HTTPStatus.CREATED)


@router.get("/schedules/{schedule_id}")
async def show_schedule(context: Context, schedule_id: str) -> Response:
    """Show one schedule."""
    return JsonResponse(_fields(await context.chat.schedules.get(context.user_id, schedule_id)))


@router.patch("/schedules/{schedule_id}", openapi_extra=takes(ScheduleChangeBody))
async def change_schedule(context: Context, schedule_id: str) -> Response:
    """Change the fields that the body names."""
    body = await context.body(ScheduleChangeBody)
    fields = body.model_dump(exclude_unset=True)
    return JsonResponse(
        _fields(await context.chat.schedules.change(context.user_id, schedule_id, fields))
    )


@router.delete("/schedules/{schedule_id}", status_code=HTTPStatus.NO_CONTENT)
async def delete_schedule(context: Context, schedule_id: str) -> Response:
    """Delete a schedule; what it has started goes on."""
    await context.chat.schedules.delete(context.user_id, schedule_id)
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.post(
    "/schedules/{schedule_id}/run",
    status_code=HTTPStatus.ACCEPTED,
    openapi_extra=takes(RunScheduleBody, required=False),
)
async def run_schedule(context: Context, schedule_id: str) -> Response:
    """Send the message now."""
    body = await context.optional_body(RunScheduleBody) or RunScheduleBody()
    accepted = await context.chat.schedules.run(
        context.user_id,
        schedule_id,
        body.idempotency_key,
        forward_key=context.forward_key,
        is_in_doubt=context.is_in_doubt,
    )
    return JsonResponse(
        {"conversation_id": accepted.conversation_id, "turn_id": accepted.turn_id},
        status_code=HTTPStatus.ACCEPTED,
    )


def _fields(view: ScheduleView) -> dict[str, Any]:
    schedule = view.schedule
    return {
        **fields_of(schedule, _SCHEDULE),
        "next_runs": list(map(rfc3339, view.next_runs)),
        "last_run": _last_run(view),
    }


def _last_run(view: ScheduleView) -> dict[str, Any] | None:
    """Return the last run, if there was one; its `state` is null if its turn was deleted."""
    schedule, turn = view.schedule, view.last_turn
    if schedule.last_at is None:
        return None
    return {
        "due_at": None if schedule.last_due_at is None else rfc3339(schedule.last_due_at),
        "at": rfc3339(schedule.last_at),
        "missed": schedule.last_missed,
        "conversation_id": turn and turn.conversation_id,
        "turn_id": schedule.last_turn_id,
        "state": turn and turn.state,
        "outcome": turn and turn.result and turn.result.get("outcome"),
    }
