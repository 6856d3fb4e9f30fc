"""OpenAI's own client, unchanged, against the real server with the real agent process."""

import base64
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.support.live_server import (
    LiveServer,
    bash,
    let_go,
    running_server,
    script,
)
from tests.support.openai_client import CountingClient, server_with_side_model
from tests.support.pictures import png

pytestmark = pytest.mark.e2e

Messages = list[Any]


class Client(CountingClient):
    async def say(self, *messages: Any, **more: Any) -> Any:
        """Return the completion of a history that is given as texts, the person's first."""
        return await self.chat.completions.create(model="candor", messages=told(*messages), **more)

    @property
    def place(self) -> tuple[str, str]:
        """The conversation and the turn of the last answer."""
        headers = self.answers[-1].headers
        return headers["x-candor-conversation"], headers["x-candor-turn"]


def told(*texts: Any) -> Messages:
    roles = ("user", "assistant")
    return [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with server_with_side_model(tmp_path_factory.mktemp("openai")) as server:
        yield server


@pytest.fixture
async def client(server: LiveServer) -> AsyncIterator[Client]:
    async with Client(server) as client:
        yield client


async def messages_of(server: LiveServer, conversation: str) -> list[str]:
    """Return what the person said in a conversation."""
    async with server.client() as candor:
        found = await candor.get(f"/conversations/{conversation}/messages")
    return [message["text"] for message in found["messages"][::2]]


async def test_an_answer_is_the_same_whole_and_as_a_stream(client: Client) -> None:
    names = [model.id for model in (await client.models.list()).data]
    assert names == ["candor", "candor-task", "candor-demo"]
    assert (await client.models.retrieve("candor")).id == "candor"
    steps = script({"thinking": "Hm."}, {"text": "First.\n\nSecond 你好。"})
    whole = await client.say(steps, temperature=0.2, seed=7, tools=[TOOL], user="u")
    assert whole.choices[0].message.content == "First.\n\nSecond 你好。"
    assert whole.choices[0].finish_reason == "stop"
    assert "logprobs" in whole.choices[0].to_dict()
    assert "refusal" in whole.choices[0].message.to_dict()
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens > 0
    for options in ({}, {"include_usage": True}):
        stream = await client.say(steps, stream=True, stream_options=options)
        chunks = [chunk async for chunk in stream]
        assert text_of(chunks) == whole.choices[0].message.content
        thought = "".join(
            getattr(delta, "reasoning_content", None) or "" for delta in deltas(chunks)
        )
        assert thought == whole.choices[0].message.reasoning_content == "Hm."
        assert [choice.finish_reason for chunk in chunks for choice in chunk.choices][-1] == "stop"
        assert (chunks[-1].usage is not None) == bool(options)
    async with client.chat.completions.stream(model="candor", messages=told(steps)) as held:
        final = await held.get_final_completion()
    assert final.choices[0].message.content == whole.choices[0].message.content


TOOL: Any = {"type": "function", "function": {"name": "theirs", "parameters": {"type": "object"}}}


def deltas(chunks: Sequence[Any]) -> list[Any]:
    return [choice.delta for chunk in chunks for choice in chunk.choices]


def text_of(chunks: Sequence[Any]) -> str:
    return "".join(delta.content or "" for delta in deltas(chunks))


async def test_what_the_agent_did_is_folded_into_the_text_and_never_a_call_for_the_client(
    client: Client,
) -> None:
    steps = script(
        {"text": "Look:", "tool": "Bash", "input": {"command": "mkdir 'a<b'"}},
        bash("mkdir 'a<b'"),
        {"text": "Done."},
    )
    whole = await client.say(steps)
    stream = await client.say(steps, stream=True)
    chunks = [chunk async for chunk in stream]
    for answer in (whole.choices[0].message.content, text_of(chunks)):
        parts = answer.split("\n\n")
        assert [part[:8] for part in parts] == ["Look:", "<details", "<details", "Done."]
        assert 'name="Bash"' in parts[1]
        assert "a<b" not in answer
    assert "(ok)</summary>" in whole.choices[0].message.content
    assert whole.choices[0].message.tool_calls is None
    assert not any(delta.tool_calls for delta in deltas(chunks))


async def test_a_name_in_a_header_is_one_conversation(server: LiveServer, client: Client) -> None:
    own = {"X-Candor-Conversation": "my thread"}
    await client.say("one", extra_headers=own)
    first = client.place
    await client.say("two", extra_headers=own)
    assert client.place[0] == first[0]
    await client.say("three", extra_headers={"X-Candor-Conversation": first[0]})
    assert client.place[0] == first[0]
    assert await messages_of(server, first[0]) == ["one", "two", "three"]


async def test_an_edited_history_forks_and_the_old_turns_stay(
    server: LiveServer, client: Client
) -> None:
    name = {"X-OpenWebUI-Chat-Id": "chat-7"}
    await client.say("one", extra_headers=name)
    first = client.place[0]
    await client.say("one", "r1", "two", extra_headers=name)
    await client.say("one", "r1", "two", "r2", "three", extra_headers=name)
    assert client.place[0] == first
    await client.say("one", "r1", "two, edited", extra_headers=name)
    edited = client.place[0]
    await client.say("one", "r1", "two, edited", "r2", "more", extra_headers=name)
    assert client.place[0] == edited
    await client.say("one", "r1", "two", "r2", "three", extra_headers=name)  # made again
    again = client.place[0]
    await client.say("one, edited", extra_headers=name)
    fresh = client.place[0]
    assert len({first, edited, again, fresh}) == 4
    assert await messages_of(server, first) == ["one", "two", "three"]
    assert await messages_of(server, edited) == ["one", "two, edited", "more"]
    assert await messages_of(server, again) == ["one", "two", "three"]
    assert await messages_of(server, fresh) == ["one, edited"]


async def test_without_a_name_a_history_finds_its_conversation_by_its_replies(
    server: LiveServer, client: Client
) -> None:
    opening = script({"text": "Reply A."})
    a = (await client.say(opening)).choices[0].message.content
    first = client.place[0]
    await client.say(opening)
    assert client.place[0] != first, "two people may begin alike"
    await client.say(opening, a, "go on")
    assert len(await messages_of(server, client.place[0])) == 2
    stranger = [{"role": "system", "content": "Be brief."}, *told("unknown", "reply", "and now?")]
    await client.chat.completions.create(model="candor", messages=stranger)
    (message,) = await messages_of(server, client.place[0])
    assert message.startswith("and now?\n\n")
    for part in ("Be brief.", "[user] unknown", "[assistant] reply"):
        assert part in message


async def test_a_reply_that_was_edited_or_written_on_makes_the_history_unknown(
    server: LiveServer, client: Client
) -> None:
    opening = script({"text": "The answer is 41."})
    await client.say(opening)
    for reply in ("The answer is 41, no: 42.", "The answer is 41. No, 42."):
        await client.say(opening, reply, "go on")
        (message,) = await messages_of(server, client.place[0])
        assert f"[assistant] {reply}" in message


async def test_a_reply_of_which_a_stream_brought_the_beginning_finds_its_conversation(
    server: LiveServer, client: Client
) -> None:
    opening = script({"text": "The answer is 43."})
    await client.say(opening)
    await client.say(opening, "The answer", "go on")
    assert (await messages_of(server, client.place[0]))[1:] == ["go on"]


async def test_a_reply_with_text_that_the_model_gave_again_finds_its_conversation(
    server: LiveServer, client: Client
) -> None:
    """A stream cannot take back what it sent."""
    broken = {"drop": True, "after_chars": 90, "text": "This answer breaks off. " * 9}
    steps: Messages = [broken | {"delta_delay_ms": 250}, {"text": "This is the answer."}]
    opening = script({"text": "First.", **bash("ls")}, *steps)
    stream = await client.say(opening, stream=True)
    told = text_of([chunk async for chunk in stream])
    assert "This answer" in told
    await client.say(opening, told, "go on")
    assert (await messages_of(server, client.place[0]))[1:] == ["go on"]


async def test_results_of_the_clients_own_tools_are_quoted(
    server: LiveServer, client: Client
) -> None:
    call = {"name": "weather", "arguments": "{}"}
    calls = [{"id": "c1", "type": "function", "function": call}]
    history: Messages = [
        *told("Warm?"),
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "17 degrees"},
        *told("and now?"),
    ]
    await client.chat.completions.create(model="candor", messages=history)
    (message,) = await messages_of(server, client.place[0])
    assert "[user] Warm?" in message
    assert "[tool] 17 degrees" in message


async def test_a_title_has_nothing_of_what_is_quoted(server: LiveServer, client: Client) -> None:
    history = [{"role": "system", "content": "Be brief."}, *told("a", "b", "Title of mine")]
    await client.chat.completions.create(model="candor", messages=history)
    async with server.client() as candor:
        assert (await candor.get(f"/conversations/{client.place[0]}"))["title"] == "Title of mine"


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ({"role": "user", "content": 5}, "messages.0.content"),
        ({"role": "user", "content": [{"type": "text", "text": 5}]}, "messages.0.content.0.text"),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {}}]},
            "messages.0.content.0.image_url.url",
        ),
    ],
)
async def test_a_message_names_the_field_as_the_client_wrote_it(
    client: Client, message: Any, named: str
) -> None:
    with pytest.raises(openai.UnprocessableEntityError) as refused:
        await client.chat.completions.create(model="candor", messages=[message])
    assert f"`{named}` " in str(refused.value)


@pytest.mark.parametrize("begins", ["", "Look:"])
async def test_a_reply_with_calls_in_it_finds_its_conversation(
    server: LiveServer, client: Client, begins: str
) -> None:
    """The answer is sent back as it came, with what the agent did."""
    call = bash(f"mkdir 'kept {begins[:4]}'") | ({"text": begins} if begins else {})
    opening = script(call, bash(f"mkdir 'kept {begins[:4]}'"), {"text": "Done."})
    answer = (await client.say(opening)).choices[0].message.content
    first = client.place[0]
    assert "<details" in answer
    await client.say(opening, answer, "go on")
    assert client.place[0] == first
    assert (await messages_of(server, first))[1:] == ["go on"]


async def test_a_front_ends_own_question_is_no_turn(server: LiveServer, client: Client) -> None:
    question = "### Task:\nGenerate a title.\n" + script({"text": "A title"})
    async with server.client() as candor:
        before = await candor.get("/conversations")
    answers = [
        await client.say(question),
        await client.say(
            "A title for this?\n" + question, extra_headers={"X-Candor-Task": "title"}
        ),
        await client.chat.completions.create(model="candor-task", messages=told(question)),
    ]
    assert [answer.choices[0].message.content for answer in answers] == ["A title"] * 3
    for options in ({}, {"include_usage": True}):
        stream = await client.say(question, stream=True, stream_options=options)
        chunks = [chunk async for chunk in stream]
        assert text_of(chunks) == "A title"
        assert (chunks[-1].usage is not None) == bool(options)
    async with server.client() as candor:
        assert await candor.get("/conversations") == before


async def test_a_conversation_at_work_refuses_at_once_and_once(
    server: LiveServer, client: Client
) -> None:
    name, pipe = {"X-Candor-Conversation": "busy"}, server.make_pipe("busy")
    steps = script(bash("cat busy"), {"text": "slow"})
    held = await client.say(steps, stream=True, extra_headers=name)
    async with Client(server) as other:
        with pytest.raises(openai.ConflictError) as refused:
            await other.say("now?", extra_headers=name)
        assert refused.value.code == "conversation_busy"
        assert len(other.requests) == 1
    await let_go(pipe)
    assert text_of([chunk async for chunk in held]).rpartition("\n\n")[2] == "slow"


async def test_a_failure_of_the_models_service_is_an_error_that_is_not_repeated(
    client: Client,
) -> None:
    steps = script({"status": 400, "times": 50})
    with pytest.raises(openai.InternalServerError) as whole:
        await client.say(steps)
    assert (whole.value.status_code, whole.value.code) == (502, "api_error")
    assert len(client.requests) == 1
    stream = await client.say(steps, stream=True)
    with pytest.raises(openai.APIError) as streamed:
        _ = [chunk async for chunk in stream]
    assert streamed.value.code == "api_error"
    assert "refused the request as malformed" in streamed.value.message


async def test_a_failure_names_where_its_message_went(server: LiveServer) -> None:
    steps = script({"status": 400, "times": 50})
    async with server.client() as candor:
        for path, asked in (
            ("chat/completions", {"messages": told(steps)}),
            ("responses", {"input": steps}),
        ):
            body = {"model": "candor", **asked}
            answer = await candor.http.post(f"/openai/v1/{path}", json=body)
            assert answer.status_code == 502
            place = answer.headers["x-candor-conversation"]
            turn = (await candor.get(f"/conversations/{place}/messages"))["messages"][1]
            assert turn["result"]["turn_id"] == answer.headers["x-candor-turn"]


async def test_a_turn_that_is_stopped_elsewhere_says_so_and_ends_the_stream(
    server: LiveServer, client: Client
) -> None:
    stream = await client.say(script({"text": "never", "delay_ms": 20_000}), stream=True)
    async with server.client() as candor:
        await candor.post(f"/conversations/{client.place[0]}/interrupt", status=202)
    chunks = [chunk async for chunk in stream]
    assert "stop" in text_of(chunks).lower()
    assert chunks[-1].choices[0].finish_reason == "stop"


async def test_closing_the_stream_stops_the_turn(server: LiveServer, client: Client) -> None:
    stream = await client.say(script({"text": "never", "delay_ms": 50_000}), stream=True)
    await stream.response.aclose()
    conversation, turn = client.place
    async with server.client() as candor:
        path = f"/conversations/{conversation}/messages"
        found = await candor.wait_until(path, lambda told: told["messages"][1]["result"])
    result = found["messages"][1]["result"]
    assert (result["turn_id"], result["outcome"]) == (turn, "interrupted")
    assert result["stop_reason"] == "user_interrupt"


async def test_a_message_after_a_closed_stream_waits_until_the_turn_has_stopped(
    server: LiveServer, client: Client
) -> None:
    chat = {"X-OpenWebUI-Chat-Id": "stopped"}
    slow = script({"text": "never", "delay_ms": 50_000})
    stream = await client.say(slow, stream=True, extra_headers=chat)
    await stream.response.aclose()
    conversation, _ = client.place
    answer = await client.say(slow, "", script({"text": "Next."}), extra_headers=chat)
    assert answer.choices[0].message.content == "Next."
    assert client.place[0] == conversation
    assert len(client.requests) == 2


async def test_an_impatient_client_gets_one_turn(server: LiveServer) -> None:
    steps = script({"text": "At last.", "delay_ms": 2500})
    async with Client(server, timeout=1.0, max_retries=6) as client:
        answer = await client.say(steps)
        assert answer.choices[0].message.content == "At last."
        assert len(client.requests) > 1
        conversation = client.place[0]
        await client.say(steps, timeout=60.0)
        assert client.place[0] != conversation, "a person may say the same twice"
    assert len(await messages_of(server, conversation)) == 1


async def test_a_picture_is_seen_and_one_elsewhere_is_refused(
    server: LiveServer, client: Client
) -> None:
    data = base64.b64encode(png()).decode()
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
    ]
    await client.say(parts)
    asked = await messages_of(server, client.place[0])
    assert asked == ["What is this?\n\n`uploads/picture-1.png`"]
    for part in (
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,###"}},
        {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
    ):
        with pytest.raises(openai.UnprocessableEntityError):
            await client.say([part])


async def test_a_file_is_sent_by_itself_or_within_a_message(
    server: LiveServer, client: Any
) -> None:
    made = await client.files.create(file=("plan ä.txt", b"Mow the lawn."), purpose="user_data")
    assert (made.object, made.bytes, made.filename) == ("file", 13, "plan ä.txt")
    assert (await client.files.retrieve(made.id)) == made
    again = await client.files.create(file=("plan ä.txt", b"Other."), purpose="assistants")
    assert again.id != made.id, "nothing is overwritten"
    within = base64.b64encode(b"Water the roses.").decode()
    file = {"file_data": f"data:text/plain;base64,{within}", "filename": "roses.txt"}
    parts: list[Any] = [
        {"type": "text", "text": "What is there to do?"},
        {"type": "file", "file": {"file_id": made.id}},
        {"type": "file", "file": file},
    ]
    await client.say(parts)
    (asked,) = await messages_of(server, client.place[0])
    assert asked == "What is there to do?\n\n`uploads/roses.txt` `uploads/plan ä.txt`"
    uploads = server.workspace / "uploads"
    assert (uploads / "plan ä.txt").read_bytes() == b"Mow the lawn."
    assert (uploads / "roses.txt").read_bytes() == b"Water the roses."
    content = [{"type": "input_file", "file_id": again.id}, {"type": "input_file", **file}]
    await client.responses.create(model="candor", input=[{"role": "user", "content": content}])
    (asked,) = await messages_of(server, client.place[0])
    assert asked == f"`uploads/roses-2.txt` `uploads/{again.filename}`"
    for unknown in ("file-x", "file-Li4", "file-Z29uZQ", made.filename):
        with pytest.raises(openai.NotFoundError):
            await client.files.retrieve(unknown)
        with pytest.raises(openai.UnprocessableEntityError):
            await client.say([{"type": "file", "file": {"file_id": unknown}}])
    with pytest.raises(openai.UnprocessableEntityError):
        await client.say([{"type": "file", "file": {"filename": "a.txt"}}])


async def test_an_unknown_model_or_a_history_without_a_question_is_refused(client: Client) -> None:
    with pytest.raises(openai.NotFoundError) as unknown:
        await client.chat.completions.create(model="gpt-9", messages=told("hi"))
    assert unknown.value.code == "model_not_found"
    wrong: list[Messages] = [told("hi", "r"), told(" "), [{"role": "wizard", "content": "x"}]]
    for messages in wrong:
        with pytest.raises(openai.UnprocessableEntityError):
            await client.chat.completions.create(model="candor", messages=messages)


async def test_what_waits_for_a_person_is_said_in_the_text(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, approvals="on") as server,
        Client(server) as client,
        server.client() as candor,
    ):
        stream = await client.say(script(bash("mkdir x"), {"text": "Made."}), stream=True)
        said, answered = "", 0
        async for chunk in stream:
            said += text_of([chunk])
            if "POST /approvals/" in said and not answered:
                (asked,) = (await candor.get("/approvals"))["approvals"]
                assert f"`{asked['summary']}`" in said
                await candor.post(f"/approvals/{asked['approval_id']}", decision="allow")
                answered = 1
    assert answered
    assert said.endswith("\n\nMade.")


async def test_what_open_webui_sends_becomes_turns_and_forks_and_its_questions_none(
    server: LiveServer,
) -> None:
    """Recorded from its page, version 0.12.4: a title, a message, tags, two more messages of which
    the first calls a tool, the last answer again, the message edited, a slow one stopped, the next.
    """
    recorded = Path(__file__).with_name("open_webui.jsonl").read_text("utf-8").splitlines()
    places: list[str | None] = []
    texts: list[str] = []
    async with server.client() as candor:
        for headers, body in map(json.loads, recorded):
            is_stopped = "delta_delay_ms" in body["messages"][-1]["content"]
            path = "/openai/v1/chat/completions"
            async with candor.http.stream("POST", path, json=body, headers=headers) as answer:
                assert answer.status_code == 200
                places.append(answer.headers.get("x-candor-conversation"))
                text = ""
                async for line in answer.aiter_lines():
                    text += line
                    if is_stopped and "slow" in line:
                        break
                texts.append(text)
        messages = (await candor.get(f"/conversations/{places[-1]}/messages"))["messages"]
    title, first, tags, second, third, again, edited, slow, last = places
    assert (title, tags) == (None, None)
    assert first == second == third
    assert len({third, again, edited}) == 3
    assert edited == slow == last
    ends = ["First reply.", "Second reply.", "Edited reply.", None, "After the stop."]
    results = [message["result"] for message in messages[1::2]]
    assert len(results) == len(ends)
    assert results[3]["stop_reason"] == "user_interrupt"
    for result, said in zip(results, ends, strict=True):
        assert said is None or result["reply"].endswith(said)
    assert json.loads(texts[0])["choices"][0]["message"]["content"]
