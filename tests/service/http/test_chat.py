"""`POST /chat`: one turn, the whole answer."""

from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import anyio
import httpx
import pytest

from gateway.conversations.sql.turns import TurnStore
from gateway.ids import ConversationId
from memory.errors import StoreUnavailable
from tests.service.http.stage import HOLD, LIMIT_S, assert_error, one_client, running, staged
from tests.support.services import HANG


async def test_a_message_starts_a_conversation_and_is_answered_with_a_turn_result(
    tmp_path: Path,
) -> None:
    async with one_client(tmp_path) as client:
        response = await client.post("/chat", json={"message": "你好"})
        assert response.status_code == 200
        result = response.json()
        assert result["reply"] == "You said: 你好"
        assert result["conversation_id"].startswith("cnv_")
        assert result["turn_id"].startswith("trn_")
        assert response.headers["cache-control"] == "no-store"


async def test_an_answer_that_cannot_be_stored_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not lost: to send the message again would ask for it twice."""

    async def stuck() -> None:
        await anyio.lowlevel.checkpoint()

    async with staged(tmp_path) as stage:
        client = stage.client()
        with monkeypatch.context() as patch, anyio.fail_after(LIMIT_S):
            patch.setattr(stage.log, "until_stuck", stuck)
            error = assert_error(
                await client.post("/chat", json={"message": HOLD}), 503, "storage_unavailable"
            )
        assert error["retryable"] is False
        stage.release()
        path = f"/conversations/{error['details']['conversation_id']}/messages"
        with anyio.fail_after(LIMIT_S):
            while (await client.read(path))["messages"][-1]["state"] != "completed":
                await anyio.lowlevel.checkpoint()


async def test_stored_messages_are_not_to_be_sent_again_when_the_database_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One runs and one waits when the server lets their conversation go."""
    away = AsyncMock(side_effect=StoreUnavailable("The database cannot be read."))
    answers: list[httpx.Response] = []
    async with running(tmp_path) as (services, client):
        where = await client.new_conversation()

        async def ask() -> None:
            body = {"message": HANG, "conversation_id": where}
            answers.append(await client.post("/chat", json=body))

        with anyio.fail_after(LIMIT_S), monkeypatch.context() as patch:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                tasks.start_soon(ask)
                while not (await client.read(f"/conversations/{where}"))["queue"]:
                    await anyio.lowlevel.checkpoint()
                patch.setattr(TurnStore, "get", away)
                services.lanes.lose(ConversationId(where))
        stored = {entry["turn_id"] for entry in await client.messages(where, 9)}
    errors = [assert_error(answer, 503, "storage_unavailable") for answer in answers]
    for answer, error in zip(answers, errors, strict=True):
        assert error["retryable"] is False
        assert answer.headers["x-should-retry"] == "false"
        assert "do not send it again" in error["message"]
        assert error["details"]["conversation_id"] == where
    assert {error["details"]["turn_id"] for error in errors} == stored


async def test_a_key_gives_its_first_result_again_and_nothing_anew_once_that_is_deleted(
    tmp_path: Path,
) -> None:
    async with one_client(tmp_path) as client:
        body = {"message": "once", "idempotency_key": "k"}
        twice = {**body, "message": "twice"}
        first = (await client.post("/chat", json=body)).json()
        assert (await client.post("/chat", json=body)).json() == first
        assert_error(await client.post("/chat", json=twice), 409, "idempotency_key_reused")
        await client.delete(f"/conversations/{first['conversation_id']}")
        for path in ("/chat", "/chat/stream"):
            assert_error(await client.post(path, json=body), 404, "not_found")
        assert_error(await client.post("/chat", json=twice), 409, "idempotency_key_reused")
        assert (await client.read("/conversations"))["conversations"] == []


async def test_a_busy_conversation_refuses_when_asked_to(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, anyio.create_task_group() as tasks:
        client = stage.client()
        conversation_id = await client.new_conversation()
        held = {"message": HOLD, "conversation_id": conversation_id}
        with anyio.fail_after(LIMIT_S):
            tasks.start_soon(lambda: client.post("/chat", json=held))
            while (await client.read(f"/conversations/{conversation_id}"))["state"] == "idle":
                await anyio.lowlevel.checkpoint()
            refused = await client.post("/chat", json={**held, "when_busy": "reject"})
            error = assert_error(refused, 409, "conversation_busy")
            assert error["retryable"] is True
            stage.release()


async def test_too_many_turns_at_once_are_refused_with_a_time_to_come_back(tmp_path: Path) -> None:
    async with one_client(tmp_path, max_turns=0) as client:
        response = await client.post("/chat", json={"message": "a"})
        error = assert_error(response, 503, "overloaded")
        assert int(response.headers["retry-after"]) > 0
        assert error["details"]["retry_after_s"] == int(response.headers["retry-after"])


async def test_a_server_that_goes_down_takes_nothing_new_and_is_not_ready(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await stage.chat.intake.shut_down(grace_s=1)
        response = await stage.client().post("/chat", json={"message": "a"})
        assert_error(response, 503, "shutting_down")
        assert int(response.headers["retry-after"]) > 0
        assert (await stage.client().get("/readyz")).status_code == 503
        assert (await stage.client().get("/healthz")).status_code == 200


async def test_a_client_that_leaves_does_not_stop_its_turn(tmp_path: Path) -> None:
    async with staged(tmp_path, on_port=True) as stage:
        client = stage.client()
        conversation_id = await client.new_conversation()
        async with anyio.create_task_group() as tasks:
            body = {"message": HOLD, "conversation_id": conversation_id}
            tasks.start_soon(lambda: stage.client().post("/chat", json=body))
            with anyio.fail_after(LIMIT_S):
                path = f"/conversations/{conversation_id}"
                while (await client.read(path))["state"] != "running":
                    await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        await anyio.sleep(0.2)  # the server sees that the client is gone
        stage.release()
        with anyio.fail_after(LIMIT_S):
            while (answer := (await client.messages(conversation_id))[1])["state"] != "completed":
                await anyio.lowlevel.checkpoint()
        assert answer["result"]["outcome"] == "answered"


UNFIT: list[tuple[dict[str, Any], str]] = [
    ({}, "message"),
    ({"message": 7}, "message"),
    ({"message": ""}, "message"),
    ({"message": " \n\t　"}, "message"),
    ({"message": "a\0b"}, "message"),
    ({"message": "x" * 200_001}, "message"),
    ({"message": "a", "conversation_id": 7}, "conversation_id"),
    ({"message": "a", "new_conversation": "yes"}, "new_conversation"),
    ({"message": "a", "when_busy": "now"}, "when_busy"),
    ({"message": "a", "idempotency_key": ""}, "idempotency_key"),
    ({"message": "a", "modell": "x"}, "modell"),
]


async def test_a_body_that_does_not_fit_names_the_field(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        for body, field in UNFIT:
            response = await client.post("/chat", json=body)
            error = assert_error(response, 422, "invalid_request")
            assert error["details"] == {"field": field}
            assert f"`{field}`" in error["message"]
            assert len(error["message"]) < 200
