"""What a message that is refused leaves behind at the doors of other protocols: nothing."""

from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import httpx
from starlette.types import Receive, Scope, Send

from gateway.chat import ChatRequest
from gateway.chat.arrivals import ARRIVAL
from gateway.doors.asked import MAX_CHARS
from gateway.ids import LOCAL_USER as ME
from tests.service.http.client import Client, Json
from tests.service.http.stage import HOLD, assert_error, running, staged

PICTURE = {
    "type": "image_url",
    "image_url": {"url": f"data:image/png;base64,{b64encode(b'png').decode()}"},
}


def said(*texts: str) -> list[Json]:
    """A history of a client: the person's messages, each but the last with the reply."""
    told: list[Json] = []
    for text in texts:
        told += [
            {"role": "user", "content": text},
            {"role": "assistant", "content": f"You said: {text}"},
        ]
    return told[:-1]


def shown(text: str) -> list[Json]:
    return [{"role": "user", "content": [{"type": "text", "text": text}, PICTURE]}]


async def complete(client: Client, messages: list[Json], thread: str = "") -> Any:
    headers = {"X-Candor-Conversation": thread} if thread else {}
    body = {"model": "candor", "messages": messages}
    return await client.post("/openai/v1/chat/completions", json=body, headers=headers)


async def uploads_of(client: Client) -> list[Json]:
    answer = await client.get("/workspace", params={"path": "uploads"})
    return answer.json()["entries"] if answer.status_code == 200 else []


async def test_a_message_over_the_quota_makes_no_fork_no_session_and_no_file(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, max_user_daily_turns=2) as (_, client):
        assert (await complete(client, said("one"))).status_code == 200
        assert (await complete(client, said("one", "two"))).status_code == 200
        for edited in ("deux", "二"):
            answer = await complete(client, said("one", edited))
            assert_error(answer, 429, "quota_used")
            assert_error(await complete(client, shown(edited)), 429, "quota_used")
            run = {"threadId": edited, "runId": edited, "messages": said("one", edited)}
            assert_error(await client.post("/ag-ui", json=run), 429, "quota_used")
            body = {"input": said("one", edited)}
            answer = await client.post("/openai/v1/responses", json=body)
            assert_error(answer, 429, "quota_used")
        listed = (await client.read("/conversations"))["conversations"]
        assert [conversation["turns"] for conversation in listed] == [2]
        assert await uploads_of(client) == []


async def test_a_picture_for_a_conversation_at_work_is_not_stored(tmp_path: Path) -> None:
    await anyio.Path(tmp_path, "workspace").mkdir()
    async with staged(tmp_path) as stage:
        client = stage.client()
        thread = await client.new_conversation()
        await stage.chat.intake.accept(ME, ChatRequest(message=HOLD, conversation_id=thread))
        answer = await complete(client, shown("see"), thread)
        assert_error(answer, 409, "conversation_busy")
        assert await uploads_of(client) == []
        stage.release()


async def test_a_picture_beside_words_that_are_too_many_is_not_stored(tmp_path: Path) -> None:
    await anyio.Path(tmp_path, "workspace").mkdir()
    async with staged(tmp_path) as stage:
        client = stage.client()
        answer = await complete(client, shown("字" * (MAX_CHARS + 1)))
        assert_error(answer, 422, "invalid_request")
        assert await uploads_of(client) == []
        assert (await complete(client, shown("字"))).status_code == 200
        assert len(await uploads_of(client)) == 1


async def test_a_full_server_makes_no_fork(tmp_path: Path) -> None:
    async with staged(tmp_path, max_turns=1) as stage:
        client = stage.client()
        assert (await complete(client, said("one"))).status_code == 200
        assert (await complete(client, said("one", "two"))).status_code == 200
        await stage.chat.intake.accept(ME, ChatRequest(message=HOLD))
        assert_error(await complete(client, said("one", "deux")), 503, "overloaded")
        listed = (await client.read("/conversations"))["conversations"]
        assert sorted(conversation["turns"] for conversation in listed) == [1, 2]
        stage.release()


async def test_a_full_server_makes_no_fork_for_a_message_that_another_one_passes_on(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path, max_turns=1) as stage:

        async def forwarded(scope: Scope, receive: Receive, send: Send) -> None:
            state = {"forward_key": f"{ARRIVAL}1", "is_forwarded": True}
            await stage.app({**scope, "state": state}, receive, send)

        client = stage.client()
        assert (await complete(client, said("one"))).status_code == 200
        assert (await complete(client, said("one", "two"))).status_code == 200
        await stage.chat.intake.accept(ME, ChatRequest(message=HOLD))
        transport = httpx.ASGITransport(forwarded)
        async with Client(transport=transport, base_url=stage.base_url) as other:
            for edited in ("deux", "二"):
                assert_error(await complete(other, said("one", edited)), 503, "overloaded")
        listed = (await client.read("/conversations"))["conversations"]
        assert sorted(conversation["turns"] for conversation in listed) == [1, 2]
        stage.release()


async def test_a_small_question_is_neither_over_the_quota_nor_longer_than_a_message(
    tmp_path: Path,
) -> None:
    asked: list[str] = []

    async def answer(*, system: str, prompt: str, timeout_s: float) -> str:  # noqa: RUF029
        asked.append(prompt)
        return "标题"

    async with staged(tmp_path, max_user_daily_turns=1) as stage:
        state = stage.app.state.gateway
        services = replace(state.services, ask_model=answer)
        stage.app.state.gateway = replace(state, services=services)
        client = stage.client()

        async def ask(text: str) -> Any:
            body = {"model": "candor-task", "messages": said(text)}
            return await client.post("/openai/v1/chat/completions", json=body)

        assert_error(await ask("字" * (MAX_CHARS + 1)), 422, "invalid_request")
        titled = await ask("A title?")
        assert titled.json()["choices"][0]["message"]["content"] == "标题"
        assert (await complete(client, said("one"))).status_code == 200
        assert_error(await ask("A title?"), 429, "quota_used")
        assert_error(await complete(client, said("### Task:\ntags")), 429, "quota_used")
        assert asked == ["A title?"]
