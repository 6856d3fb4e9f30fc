"""What a webhook is sent: a JSON body and the headers that sign it, as Standard Webhooks says."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from gateway.conversations.webhooks import MAX_REPLY_CHARS, WebhookDelivery, WebhookMessage
from gateway.jsonsafe import json_text
from memory.clock import from_rfc3339, rfc3339
from memory.intents.masking import Mask

TEST_EVENT: Final = "webhook.test"
_PREFIX: Final = "whsec_"
_KEY_BYTES: Final = 32
_MAX_SUMMARY_CHARS: Final = 500


def new_secret() -> str:
    """Return a new random secret."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()


def signed_headers(secret: str, message_id: str, now: datetime, body: bytes) -> dict[str, str]:
    """Return the headers of a message that is sent now, signed with each secret that is in use;
    `secret` is what is kept: see `WebhookMessage`.
    """
    seconds = str(int(now.timestamp()))
    signed = b".".join((message_id.encode(), seconds.encode(), body))
    return {
        "webhook-id": message_id,
        "webhook-timestamp": seconds,
        "webhook-signature": " ".join(_signature(key, signed) for key in _in_use(secret, now)),
        "content-type": "application/json",
    }


def _in_use(secret: str, now: datetime) -> list[str]:
    current, *earlier = secret.split()
    if earlier and now < from_rfc3339(earlier[1]):
        return [current, earlier[0]]
    return [current]


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    return f"v1,{base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()}"


def body_of(delivery: WebhookDelivery, message: WebhookMessage, mask: Mask) -> bytes:
    """Return the body of a delivery, without secrets; at most some 20 kB."""
    ids = {
        "conversation_id": delivery.conversation_id,
        "turn_id": delivery.turn_id,
        "approval_id": delivery.approval_id,
    }
    data: dict[str, Any] = {name: id_ for name, id_ in ids.items() if id_ is not None}
    if delivery.type == "turn.completed":
        reply = message.reply or ""
        data |= {
            "outcome": message.outcome,
            "reply": mask(reply)[:MAX_REPLY_CHARS],
            "reply_is_whole": len(reply) <= MAX_REPLY_CHARS,
        }
    if delivery.type == "approval.requested":
        summary = mask(message.summary or "")[:_MAX_SUMMARY_CHARS]
        data |= {"name": message.name, "summary": summary}
    return event_body(delivery.type, delivery.created_at, data)


def event_body(kind: str, at: datetime, data: Mapping[str, Any]) -> bytes:
    """Return the body of an event."""
    return json_text({"type": kind, "timestamp": rfc3339(at), "data": data}).encode()
