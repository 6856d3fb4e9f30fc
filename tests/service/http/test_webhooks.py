"""Webhooks over HTTP: which messages are sent, and what a user does with webhooks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx
import pytest
from standardwebhooks import WebhookVerificationError
from starlette.responses import Response

from gateway.application import create_app
from gateway.rate_limit import RateLimit
from gateway.webhooks.desk import MAX_WEBHOOKS
from tests.service.http.client import Client, Json
from tests.service.http.stage import LIMIT_S, assert_error, staged
from tests.support.services import RunningServices, running_services, script
from tests.support.webhook_receivers import Message, Receiver, answering, receiving

EVENTS = ["approval.requested", "conversation.created", "turn.completed"]
ELSEWHERE = "https://hooks.example.org/candor"
ASKS = script({"tool": "Bash", "input": {"command": "rm a.txt"}}, {"text": "Done."})


@dataclass(frozen=True, slots=True)
class Here:
    """A server with webhooks, a receiver, and a client."""

    services: RunningServices
    receiver: Receiver
    client: Client

    async def add(self, *events: str, url: str = "") -> Json:
        body = {"url": url or self.receiver.url(), "events": events or EVENTS}
        answer = await self.client.post("/webhooks", json=body)
        assert answer.status_code == 201, answer.text
        webhook: Json = answer.json()
        return webhook

    async def ended(self, path: str) -> Json:
        """Wait until a webhook's only delivery waits no longer; return it."""
        with anyio.fail_after(LIMIT_S):
            while True:
                (one,) = (await self.client.read(f"{path}/deliveries"))["deliveries"]
                if one["status"] != "pending":
                    return dict(one)
                await anyio.sleep(0.01)


@asynccontextmanager
async def serving(directory: Path, **settings: Any) -> AsyncIterator[Here]:
    chosen = {"webhooks": "on", "webhook_hosts": ("127.0.0.1",), **settings}
    async with receiving() as receiver, running_services(directory, **chosen) as services:
        app = await anyio.to_thread.run_sync(partial(create_app, services))
        transport = httpx.ASGITransport(app)
        async with Client(
            base_url="http://127.0.0.1:8000", transport=transport, timeout=LIMIT_S
        ) as client:
            yield Here(services, receiver, client)


async def test_a_turn_and_its_conversation_are_delivered_at_once(tmp_path: Path) -> None:
    """The server looks by itself once a minute only, which no wait of a test is long enough for."""
    async with serving(tmp_path) as here:
        webhook = await here.add()
        result = await here.client.say("hi, known-secret-4711")
        created, completed = [
            message.read(webhook["secret"]) for message in await here.receiver.wait(2)
        ]
        assert (created["type"], completed["type"]) == ("conversation.created", "turn.completed")
        assert created["data"] == {"conversation_id": result["conversation_id"]}
        assert completed["timestamp"] == result["finished_at"]
        assert completed["data"] == {
            "conversation_id": result["conversation_id"],
            "turn_id": result["turn_id"],
            "outcome": "answered",
            "reply": result["reply"],
            "reply_is_whole": True,
        }
        assert "4711" not in completed["data"]["reply"]


async def test_a_new_secret_overlaps_with_the_one_before_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as here:
        webhook = await here.add("turn.completed")
        secrets = [webhook["secret"]]
        path = f"/webhooks/{webhook['id']}"
        for body in (None, {"overlap_s": 0}, {"overlap_s": 604_800}):
            answer = await here.client.post(f"{path}/secret", json=body)
            assert answer.status_code == 200, answer.text
            changed = answer.json()
            secrets.append(changed.pop("secret"))
            assert changed.pop("earlier_secret_until") > webhook["created_at"]
            assert changed == {name: webhook[name] for name in changed}
            assert (await here.client.post(f"{path}/test")).json()["delivered"]
        assert "secret" not in (await here.client.read("/webhooks"))["webhooks"][0]
        came = await here.receiver.wait(3)
        for wrong in (604_801, -1, "1"):
            answer = await here.client.post(f"{path}/secret", json={"overlap_s": wrong})
            assert_error(answer, 422, "invalid_request")
    assert len(set(secrets)) == 4
    assert [[_verifies(message, secret) for secret in secrets] for message in came] == [
        [True, True, False, False],
        [False, False, True, False],
        [False, False, True, True],
    ]


def _verifies(message: Message, secret: str) -> bool:
    try:
        return bool(message.read(secret))
    except WebhookVerificationError:
        return False


async def test_an_approval_is_delivered_while_its_run_waits(tmp_path: Path) -> None:
    async with serving(tmp_path, approvals="on") as here:
        webhook = await here.add("approval.requested")
        accepted = await here.services.send(ASKS)
        question = await here.services.question_of(accepted)
        (message,) = await here.receiver.wait(1)
        assert message.read(webhook["secret"])["data"] == {
            "conversation_id": accepted.conversation_id,
            "turn_id": accepted.turn_id,
            "approval_id": question["approval_id"],
            "name": "Bash",
            "summary": question["summary"],
        }
        await here.services.answer(question, "deny")
        await here.services.result_of(accepted)


async def test_a_conversation_without_a_message_and_a_fork_are_delivered(tmp_path: Path) -> None:
    async with serving(tmp_path) as here:
        turn = await here.client.say("hi")
        await here.add("conversation.created")
        new = await here.client.new_conversation()
        await here.receiver.wait(1)
        fork = await here.services.fork(turn["conversation_id"], turn["turn_id"])
        sent = [message.body for message in await here.receiver.wait(2)]
        assert [new.encode() in sent[0], fork.encode() in sent[1]] == [True, True]


async def test_a_message_that_is_taken_back_is_delivered_like_any_end(tmp_path: Path) -> None:
    async with serving(tmp_path) as here:
        webhook = await here.add("turn.completed")
        running = await here.services.begin()
        queued = await here.services.send("later", running.conversation_id)
        await here.client.delete(f"/conversations/{queued.conversation_id}/queue/{queued.turn_id}")
        (message,) = await here.receiver.wait(1)
        assert message.read(webhook["secret"])["data"]["turn_id"] == queued.turn_id
        await here.services.stop(running)
        assert len(await here.receiver.wait(2)) == 2


async def test_the_secret_is_in_the_answer_to_its_making_alone(tmp_path: Path) -> None:
    async with serving(tmp_path) as here:
        made = await here.add()
        secret = made.pop("secret")
        await here.client.say("hi")
        await here.receiver.wait(2)
        listed = await here.client.get("/webhooks")
        assert listed.json() == {"webhooks": [made], "enabled": True, "most": MAX_WEBHOOKS}
        assert made["state"] == "on"
        path = f"/webhooks/{made['id']}"
        answers = [
            listed,
            await here.client.get(f"{path}/deliveries"),
            await here.client.patch(path, json={"state": "off"}),
        ]
        assert not any(secret in answer.text for answer in answers)


async def test_a_test_message_is_sent_at_once_and_its_outcome_is_returned(tmp_path: Path) -> None:
    async with serving(tmp_path) as here:
        made = await here.add()
        path = f"/webhooks/{made['id']}"
        await here.client.patch(path, json={"state": "off"})
        good = (await here.client.post(f"{path}/test")).json()
        assert good.pop("duration_ms") >= 0
        assert good == {"delivered": True, "status": 204, "error": None}
        (message,) = here.receiver.came
        sent = message.read(made["secret"])
        assert (sent["type"], sent["data"]) == ("webhook.test", {"webhook_id": made["id"]})

        for status in (500, 302, 410):
            here.receiver.answer = answering(status)
            bad = (await here.client.post(f"{path}/test")).json()
            del bad["duration_ms"]
            error = f"It answered with the status {status}."
            assert bad == {"delivered": False, "status": status, "error": error}
        assert await here.client.read(f"{path}/deliveries") == {"deliveries": []}


async def test_test_messages_are_few(tmp_path: Path) -> None:
    async with serving(tmp_path) as here:
        path = f"/webhooks/{(await here.add())['id']}/test"
        answers = [await here.client.post(path) for _ in range(11)]
        assert [one.status_code for one in answers[:10]] == [200] * 10
        assert_error(answers[10], 429, "too_many_attempts")
        assert answers[10].headers["retry-after"]


async def test_a_test_message_that_is_one_too_many_may_be_sent_when_the_limit_lets_it_and_not_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as here:
        path = f"/webhooks/{(await here.add())['id']}/test"
        monkeypatch.setattr(RateLimit, "wait_s", lambda *_: 5.2)
        answer = await here.client.post(path)
    assert assert_error(answer, 429, "too_many_attempts")["retryable"]
    assert answer.headers["retry-after"] == "6"


async def test_deliveries_are_listed_and_a_dead_one_is_retried(tmp_path: Path) -> None:
    async with serving(tmp_path) as here:
        made = await here.add("turn.completed")
        path = f"/webhooks/{made['id']}"
        here.receiver.answer = answering(410)
        result = await here.client.say("hi")
        await here.receiver.wait(1)
        dead = await here.ended(path)
        assert (await here.client.read("/webhooks"))["webhooks"][0]["state"] == "gone"
        retry = f"{path}/deliveries/{dead['id']}/retry"
        assert_error(await here.client.post(retry), 409, "webhook_off")
        assert (await here.client.patch(path, json={"state": "on"})).json()["state"] == "on"

        here.receiver.answer = answering(200)
        again = (await here.client.post(retry)).json()
        assert (again["status"], again["attempts"]) == ("pending", 0)
        assert again["next_attempt_at"] is not None
        await here.receiver.wait(2)
        made_now = await here.ended(path)
        assert made_now.pop("delivered_at")
        assert made_now.pop("created_at") == result["finished_at"]
        assert made_now == {
            "id": here.receiver.came[0].id,
            "type": "turn.completed",
            "conversation_id": result["conversation_id"],
            "turn_id": result["turn_id"],
            "approval_id": None,
            "status": "delivered",
            "attempts": 1,
            "last_error": None,
            "next_attempt_at": None,
        }
        assert_error(await here.client.post(retry), 409, "already_delivered")
        missing = f"{path}/deliveries/msg_unknown/retry"
        assert_error(await here.client.post(missing), 404, "not_found")


async def test_a_deleted_webhook_is_gone(tmp_path: Path) -> None:
    async with serving(tmp_path) as here:
        path = f"/webhooks/{(await here.add())['id']}"
        assert (await here.client.delete(path)).status_code == 204
        assert_error(await here.client.get(f"{path}/deliveries"), 404, "not_found")
        await here.client.say("hi")
        assert here.receiver.came == []


@pytest.mark.parametrize(
    ("url", "events"),
    [
        ("http://hooks.example.org/", EVENTS),
        ("https://127.0.0.1/", EVENTS),
        ("https://10.0.0.1/", EVENTS),
        ("https://hooks.example.org/" + "a" * 2048, EVENTS),
        ("", EVENTS),
        (ELSEWHERE, []),
        (ELSEWHERE, ["turn.started"]),
        (ELSEWHERE, [*EVENTS, "turn.completed"]),
    ],
)
async def test_what_may_not_be_a_webhook_is_refused(
    tmp_path: Path, url: str, events: list[str]
) -> None:
    async with staged(tmp_path, webhooks="on") as stage:
        client = stage.client()
        answer = await client.post("/webhooks", json={"url": url, "events": events})
        assert_error(answer, 422, "invalid_request")
        assert (await client.read("/webhooks"))["webhooks"] == []


async def test_a_user_has_some_webhooks_and_no_more(tmp_path: Path) -> None:
    async with staged(tmp_path, webhooks="on", users=("ada", "bob")) as stage:
        body = {"url": ELSEWHERE, "events": EVENTS}
        ada, bob = stage.client("ada"), stage.client("bob")
        for _ in range(MAX_WEBHOOKS):
            assert (await ada.post("/webhooks", json=body)).status_code == 201
        assert_error(await ada.post("/webhooks", json=body), 409, "too_many_webhooks")
        assert (await bob.post("/webhooks", json=body)).status_code == 201


async def test_where_webhooks_are_off_they_can_only_be_looked_at_and_deleted(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as here:
        made = await here.add()
    async with serving(tmp_path, webhooks="off") as here:
        assert (await here.client.read("/webhooks"))["enabled"] is False
        await here.client.say("hi")
        path = f"/webhooks/{made['id']}"
        assert (await here.client.read(f"{path}/deliveries"))["deliveries"] == []
        body = {"url": ELSEWHERE, "events": EVENTS}
        for answer in [
            await here.client.post("/webhooks", json=body),
            await here.client.patch(path, json={"state": "on"}),
            await here.client.post(f"{path}/test"),
            await here.client.post(f"{path}/deliveries/msg_1/retry"),
        ]:
            error = assert_error(answer, 409, "webhooks_off")
            assert "CANDOR_WEBHOOKS=on" in error["message"]
        assert (await here.client.delete(path)).status_code == 204


async def test_a_receiver_that_never_answers_delays_no_turn(tmp_path: Path) -> None:
    async def silent(_: str) -> Response:
        await anyio.sleep_forever()
        raise AssertionError

    async with serving(tmp_path) as here:
        here.receiver.answer = silent
        await here.add()
        first = await here.client.say("hi")
        await here.receiver.wait(1)
        second = await here.client.say("and on", first["conversation_id"])
        assert second["outcome"] == "answered"
