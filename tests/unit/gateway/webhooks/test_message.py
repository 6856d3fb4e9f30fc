"""The signature and the body of a webhook's message."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

from gateway.conversations.webhooks import (
    MAX_REPLY_CHARS,
    SECRET_CHARS,
    WebhookDelivery,
    WebhookMessage,
)
from gateway.ids import ApprovalId, ConversationId, TurnId
from gateway.webhooks.message import body_of, new_secret, signed_headers
from memory.clock import rfc3339
from policies.secrets import mask_secrets

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
DELIVERY = WebhookDelivery(
    seq=1,
    id="msg_1",
    webhook_id="whk_1",
    type="turn.completed",
    conversation_id=ConversationId("cnv_1"),
    turn_id=TurnId("trn_1"),
    approval_id=None,
    created_at=AT,
    status="pending",
    attempts=0,
    last_error=None,
    queued_at=AT,
    due_at=AT,
    delivered_at=None,
)
MESSAGE = WebhookMessage(
    url="https://hooks.example.org",
    secret="whsec_AAAA",
    outcome="answered",
    reply="Done.",
    name=None,
    summary=None,
)
MASK = partial(mask_secrets, known=("known-secret-4711",))


def test_the_known_example_of_the_scheme_has_its_signature() -> None:
    at = datetime.fromtimestamp(1614265330, UTC)
    secret, message_id = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek"
    assert signed_headers(secret, message_id, at, b'{"test": 2432232314}') == {
        "webhook-id": message_id,
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        "content-type": "application/json",
    }


def test_a_signature_holds_for_this_body_id_and_secret_alone() -> None:
    secret, body = new_secret(), '{"a":"é"}'.encode()
    assert len(secret) == SECRET_CHARS
    headers = signed_headers(secret, "msg_1", datetime.now(UTC), body)
    assert Verifier(secret).verify(body, headers) == {"a": "é"}
    for wrong, other, changed in [
        (secret, body + b" ", headers),
        (new_secret(), body, headers),
        (secret, body, {**headers, "webhook-id": "msg_2"}),
    ]:
        with pytest.raises(WebhookVerificationError):
            Verifier(wrong).verify(other, changed)


def test_two_secrets_sign_until_the_overlap_ends() -> None:
    old, new, now = new_secret(), new_secret(), datetime.now(UTC)
    for overlap, verifies in [(timedelta(seconds=1), [new, old]), (timedelta(), [new])]:
        headers = signed_headers(f"{new} {old} {rfc3339(now + overlap)}", "msg_1", now, b"{}")
        assert len(headers["webhook-signature"].split(" ")) == len(verifies)
        for secret in verifies:
            assert Verifier(secret).verify(b"{}", headers) == {}


def test_a_turn_is_sent_by_its_ids_outcome_and_reply() -> None:
    assert json.loads(body_of(DELIVERY, MESSAGE, MASK)) == {
        "type": "turn.completed",
        "timestamp": "2026-11-20T12:00:00.000Z",
        "data": {
            "conversation_id": "cnv_1",
            "turn_id": "trn_1",
            "outcome": "answered",
            "reply": "Done.",
            "reply_is_whole": True,
        },
    }


def test_a_long_reply_is_cut_and_the_body_stays_small() -> None:
    long = replace(MESSAGE, reply="好" * (MAX_REPLY_CHARS + 1))
    body = body_of(DELIVERY, long, MASK)
    data = json.loads(body)["data"]
    assert (len(data["reply"]), data["reply_is_whole"]) == (MAX_REPLY_CHARS, False)
    assert len(body) < 20_000


def test_a_reply_is_sent_without_secrets() -> None:
    body = body_of(DELIVERY, replace(MESSAGE, reply="It is known-secret-4711."), MASK)
    assert json.loads(body)["data"]["reply"] == MASK("It is known-secret-4711.")
    assert b"4711" not in body


def test_an_approval_is_sent_without_secrets_and_not_at_length() -> None:
    asked = replace(DELIVERY, type="approval.requested", approval_id=ApprovalId("apr_1"))
    summary = f"curl -H known-secret-4711 {'x' * 1000}"
    sent = json.loads(body_of(asked, replace(MESSAGE, name="Bash", summary=summary), MASK))
    assert sent["data"] == {
        "conversation_id": "cnv_1",
        "turn_id": "trn_1",
        "approval_id": "apr_1",
        "name": "Bash",
        "summary": MASK(summary)[:500],
    }
    assert "4711" not in sent["data"]["summary"]


def test_a_new_conversation_is_sent_by_its_id_alone() -> None:
    new = replace(DELIVERY, type="conversation.created", turn_id=None)
    assert json.loads(body_of(new, MESSAGE, MASK))["data"] == {"conversation_id": "cnv_1"}
