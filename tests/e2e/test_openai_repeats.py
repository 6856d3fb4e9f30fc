"""Requests to OpenAI's door that come again: what is the same turn, and what is another one."""

from typing import Any

import anyio
import httpx
import pytest

from tests.support.live_server import LiveServer, bash, script

pytestmark = pytest.mark.e2e

COMPLETIONS = "/openai/v1/chat/completions"


def named(steps: str, name: str, **headers: str) -> dict[str, Any]:
    """Return a request as clients send it that tell nothing of their attempts."""
    body = {"model": "candor", "messages": [{"role": "user", "content": steps}]}
    return {"json": body, "headers": {"X-Candor-Conversation": name, **headers}}


async def test_a_failed_turn_does_not_run_again_for_a_client_that_repeats_any_502(
    server: LiveServer,
) -> None:
    steps = script(bash("mkdir failed_once"), {"status": 400, "times": 50})
    async with server.client() as candor:
        answers = [await candor.http.post(COMPLETIONS, **named(steps, "failing")) for _ in range(3)]
        first = await candor.get("/conversations")
        stream = named(steps, "failing")
        stream["json"]["stream"] = True
        _ = await candor.http.post(COMPLETIONS, **stream)
        second = await candor.get("/conversations")
    assert first["conversations"][0]["turns"] == 1
    assert second["conversations"][0]["turns"] == 2, "another request is another turn"
    assert [answer.status_code for answer in answers] == [502] * 3
    assert {answer.json()["error"]["code"] for answer in answers} == {"api_error"}
    assert "was repeated" not in answers[0].text
    assert "was repeated" in answers[1].text


async def test_a_turn_that_failed_before_any_call_runs_again_when_it_is_asked_for_again(
    server: LiveServer,
) -> None:
    asked = named(script({"status": 400, "times": 50}), "failing at once")
    async with server.client() as candor:
        for _ in range(2):
            assert (await candor.http.post(COMPLETIONS, **asked)).status_code == 502
        found = await candor.get("/conversations")
    assert found["conversations"][0]["turns"] == 2


@pytest.mark.parametrize("is_over", [False, True])
async def test_a_request_whose_client_left_is_repeated_without_a_count(
    server: LiveServer, *, is_over: bool
) -> None:
    steps = script({"text": f"At last {is_over}.", "delay_ms": 2500})
    asked = named(steps, f"left {is_over}")
    async with server.client() as candor:
        with pytest.raises(httpx.ReadTimeout):
            await candor.http.post(COMPLETIONS, **asked, timeout=1.0)
        found = (await candor.get("/conversations"))["conversations"][0]
        path = f"/conversations/{found['id']}"
        if is_over:
            await candor.wait_until(path, lambda shown: shown["state"] == "idle")
        answer = await candor.http.post(COMPLETIONS, **asked)
        assert answer.json()["choices"][0]["message"]["content"] == f"At last {is_over}."
        assert (await candor.get(path))["turns"] == 1
        again = await candor.http.post(COMPLETIONS, **asked)
        assert again.headers["x-candor-turn"] != answer.headers["x-candor-turn"]


async def test_an_idempotency_key_is_one_turn_and_another_one_another(server: LiveServer) -> None:
    steps = script({"text": "Keyed."})
    async with server.client() as candor:
        turns = [
            (await candor.http.post(COMPLETIONS, **named(steps, "keyed", **headers))).headers[
                "x-candor-turn"
            ]
            for key in ("a", "a", "b", "")
            for headers in [{"Idempotency-Key": key}]
        ]
    assert turns[0] == turns[1]
    assert len(set(turns)) == 3


async def test_equal_requests_at_the_same_time_are_turns_of_their_own(server: LiveServer) -> None:
    steps = script({"text": "Sampled.", "delay_ms": 1500})
    body = {"model": "candor", "messages": [{"role": "user", "content": steps}]}
    turns: list[str] = []
    async with server.client() as candor:

        async def ask() -> None:
            answer = await candor.http.post(COMPLETIONS, json=body)
            turns.append(answer.headers["x-candor-turn"])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            tasks.start_soon(ask)
    assert len(set(turns)) == 2


async def test_a_message_is_taken_again_when_its_conversation_was_deleted(
    server: LiveServer,
) -> None:
    body = {
        "model": "candor",
        "messages": [{"role": "user", "content": script({"text": "Deleted."})}],
    }
    async with server.client() as candor:
        first = await candor.http.post(COMPLETIONS, json=body)
        await candor.http.delete(f"/conversations/{first.headers['x-candor-conversation']}")
        assert (await candor.http.post(COMPLETIONS, json=body)).status_code == 200
