"""A user's webhooks: add, list, switch, test and delete them, give them a new secret, and look at
their deliveries.
"""

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from gateway.conversations.webhooks import Webhook, WebhookDelivery
from gateway.http.context import Context
from gateway.http.json_response import JsonResponse, fields_of
from gateway.http.openapi import takes
from gateway.http.parameters import DEFAULT_LIMIT, Limit
from gateway.http.schemas import NewSecretBody, WebhookBody, WebhookSwitchBody
from gateway.webhooks.desk import MAX_WEBHOOKS
from memory.clock import rfc3339

router = APIRouter()

_WEBHOOK = ("id", "url", "events", "state", "created_at")
_DELIVERY = (
    *("id", "type", "conversation_id", "turn_id", "approval_id", "created_at", "status"),
    *("attempts", "last_error", "delivered_at"),
)
_SENT = ("delivered", "status", "error", "duration_ms")


@router.get("/webhooks")
async def list_webhooks(context: Context) -> Response:
    """List the user's webhooks, oldest first, without their secrets."""
    webhooks = context.state.services.webhooks
    known = await webhooks.listed(context.user_id)
    listed = [_webhook_fields(webhook) for webhook in known]
    return JsonResponse({"webhooks": listed, "enabled": webhooks.is_on, "most": MAX_WEBHOOKS})


@router.post("/webhooks", status_code=HTTPStatus.CREATED, openapi_extra=takes(WebhookBody))
async def add_webhook(context: Context) -> Response:
    """Add a webhook; `secret` is in this answer alone."""
    body = await context.body(WebhookBody)
    webhook, secret = await context.state.services.webhooks.add(
        context.user_id, body.url, body.events
    )
    fields = _webhook_fields(webhook) | {"secret": secret}
    return JsonResponse(fields, status_code=HTTPStatus.CREATED)


@router.patch("/webhooks/{webhook_id}", openapi_extra=takes(WebhookSwitchBody))
async def switch_webhook(context: Context, webhook_id: str) -> Response:
    """Switch a webhook on or off; deliveries that wait are given up when it is switched off."""
    body = await context.body(WebhookSwitchBody)
    webhooks = context.state.services.webhooks
    webhook = await webhooks.switch(context.user_id, webhook_id, on=body.state == "on")
    return JsonResponse(_webhook_fields(webhook))


@router.post("/webhooks/{webhook_id}/secret", openapi_extra=takes(NewSecretBody, required=False))
async def rotate_webhook_secret(context: Context, webhook_id: str) -> Response:
    """Make a new secret; it is in this answer alone. The one before it signs, too, for a while."""
    body = await context.optional_body(NewSecretBody) or NewSecretBody()
    webhook, secret, until = await context.state.services.webhooks.rotate(
        context.user_id, webhook_id, overlap_s=body.overlap_s
    )
    told = {"secret": secret, "earlier_secret_until": rfc3339(until)}
    return JsonResponse(_webhook_fields(webhook) | told)


@router.delete("/webhooks/{webhook_id}", status_code=HTTPStatus.NO_CONTENT)
async def delete_webhook(context: Context, webhook_id: str) -> Response:
    """Delete a webhook with its deliveries."""
    await context.state.services.webhooks.delete(context.user_id, webhook_id)
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.post("/webhooks/{webhook_id}/test")
async def test_webhook(context: Context, webhook_id: str) -> Response:
    """Send a test message now, and return what came of it."""
    result = await context.state.services.webhooks.test(context.user_id, webhook_id)
    return JsonResponse(fields_of(result, _SENT))


@router.get("/webhooks/{webhook_id}/deliveries")
async def list_webhook_deliveries(
    context: Context, webhook_id: str, limit: Limit = DEFAULT_LIMIT
) -> Response:
    """List a webhook's deliveries, newest first."""
    found = await context.state.services.webhooks.deliveries(
        context.user_id, webhook_id, limit=limit
    )
    return JsonResponse({"deliveries": [_delivery_fields(delivery) for delivery in found]})


@router.post("/webhooks/{webhook_id}/deliveries/{message_id}/retry")
async def retry_webhook_delivery(context: Context, webhook_id: str, message_id: str) -> Response:
    """Deliver now what was given up, or waits."""
    delivery = await context.state.services.webhooks.retry(context.user_id, webhook_id, message_id)
    return JsonResponse(_delivery_fields(delivery))


def _webhook_fields(webhook: Webhook) -> dict[str, Any]:
    return fields_of(webhook, _WEBHOOK)


def _delivery_fields(delivery: WebhookDelivery) -> dict[str, Any]:
    waits = delivery.status == "pending"
    next_at = fields_of(delivery, ["due_at"])["due_at"] if waits else None
    return fields_of(delivery, _DELIVERY) | {"next_attempt_at": next_at}
