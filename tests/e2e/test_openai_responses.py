"""OpenAI's own client, unchanged, on the responses of the real server with the real agent process."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import openai
import pytest

from tests.support.live_server import LiveServer, bash, script
from tests.support.openai_client import CountingClient, server_with_side_model

pytestmark = pytest.mark.e2e


class Client(CountingClient):
    async def ask(self, asked: Any, **more: Any) -> Any:
        return await self.responses.create(model="candor", input=asked, **more)

    async def events(self, asked: Any, **more: Any) -> list[Any]:
        return [event async for event in await self.ask(asked, stream=True, **more)]

    async def resumed(self, name: str, after: int | None = None) -> list[Any]:
        more: Any = {} if after is None else {"starting_after": after}
        stream = await self.responses.retrieve(name, stream=True, **more)
        return [event async for event in stream]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with server_with_side_model(tmp_path_factory.mktemp("responses")) as server:
        yield server


@pytest.fixture(scope="module")
def conversation(server: LiveServer) -> str:
    """Return a conversation for what needs none of its own: each new one costs an agent process."""
    return server.new_conversation()


@pytest.fixture
async def client(server: LiveServer) -> AsyncIterator[Client]:
    async with Client(server) as client:
        yield client


def kinds(events: Sequence[Any]) -> list[str]:
    """Return the types of events, each piece of text once, without their first word."""
    told = [event.type.removeprefix("response.") for event in events]
    return [kind for n, kind in enumerate(told) if n == 0 or told[n - 1] != kind]


def plain(events: Sequence[Any]) -> list[Any]:
    return [event.to_dict() for event in events]


MESSAGE = ["output_item.added", "content_part.added", "output_text.delta", "output_text.done"]
MESSAGE += ["content_part.done", "output_item.done"]
THINKING = ["output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta"]
THINKING += ["reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done"]
CALL = ["output_item.added", "mcp_call.in_progress", "mcp_call_arguments.done"]


OPEN_RESPONSES = {
    *{"id", "object", "created_at", "completed_at", "status", "incomplete_details", "model"},
    *{"previous_response_id", "instructions", "output", "error", "tools", "tool_choice"},
    *{"truncation", "parallel_tool_calls", "text", "top_p", "presence_penalty"},
    *{"frequency_penalty", "top_logprobs", "temperature", "reasoning", "usage"},
    *{"max_output_tokens", "max_tool_calls", "store", "background", "service_tier"},
    *{"metadata", "safety_identifier", "prompt_cache_key"},
}
"""The fields that Open Responses requires of a response."""


async def test_a_response_is_the_same_whole_streamed_and_read_again(client: Any) -> None:
    steps = script(
        {"thinking": "Hm."},
        {"text": "Look:", "tool": "Bash", "input": {"command": "mkdir a"}},
        bash("mkdir a"),
        {"text": "Done 你好。"},
    )
    events = await client.events(steps, store=True, temperature=0.2, metadata={"a": "b"})
    assert [event.sequence_number for event in events] == list(range(len(events)))
    done = [*CALL, "mcp_call.completed", "output_item.done"]
    failed = [*CALL, "mcp_call.failed", "output_item.done"]
    began = ["created", "in_progress"]
    assert kinds(events) == [*began, *THINKING, *MESSAGE, *done, *failed, *MESSAGE, "completed"]
    final = events[-1].response
    items = ["reasoning", "message", "mcp_call", "mcp_call", "message"]
    assert [item.type for item in final.output] == items
    assert final.output[1].content[0].text == "Look:"
    assert final.output[4].content[0].text == "Done 你好。"
    assert "mkdir a" in final.output[2].arguments
    assert (final.output[2].status, final.output[3].status) == ("completed", "failed")
    assert "File exists" in str(final.output[3].error)
    assert set(final.to_dict()) >= OPEN_RESPONSES
    assert (final.temperature, final.top_p) == (1, 1), "numbers, as Open Responses wants"
    assert final.reasoning.summary == "detailed", "reasoning is told whole"
    assert final.usage.total_tokens == final.usage.input_tokens + final.usage.output_tokens > 0
    assert await client.responses.retrieve(final.id) == final
    assert plain(await client.resumed(final.id)) == plain(events)
    whole = await client.ask(steps, conversation=final.conversation.id)
    assert [item.type for item in whole.output][:3] == items[:3]
    assert whole.status == "completed"


async def test_a_reader_goes_on_after_any_event(client: Any, conversation: str) -> None:
    steps = script({"thinking": "Hm."}, {"text": "Hello there."})
    events = plain(await client.events(steps, conversation=conversation))
    name = events[0]["response"]["id"]
    for number in range(len(events)):
        assert plain(await client.resumed(name, number)) == events[number + 1 :]


async def test_a_reader_after_an_event_that_does_not_exist_is_told_so(
    client: Any, conversation: str
) -> None:
    events = await client.events(script({"text": "Short."}), conversation=conversation)
    with pytest.raises(openai.APIError) as told:
        await client.resumed(events[0].response.id, len(events))
    assert f"`starting_after` is {len(events)}" in told.value.message


async def test_the_helper_of_the_client_puts_the_response_together(
    client: Any, conversation: str
) -> None:
    asked = script({"text": "First.", **bash("ls")}, {"text": "Second."})
    told = {"model": "candor", "input": asked, "conversation": conversation}
    async with client.responses.stream(**told) as stream:
        final = await stream.get_final_response()
    assert final.output_text == "First.Second."
    assert final.status == "completed"


async def test_a_response_in_the_background_is_polled_and_read_while_it_runs(
    client: Any, conversation: str
) -> None:
    late = script({"text": "Late.", "delay_ms": 1500})
    begun = await client.ask(late, background=True, conversation=conversation)
    assert begun.background is True
    assert begun.status == "in_progress"
    assert begun.output == []
    events = await client.resumed(begun.id)
    assert events[-1].response.output_text == "Late."
    assert (await client.responses.retrieve(begun.id)).status == "completed"


async def test_equal_responses_in_the_background_are_turns_of_their_own(client: Any) -> None:
    steps = script({"text": "Twice.", "delay_ms": 1000})
    names = [(await client.ask(steps, background=True)).id for _ in range(2)]
    assert len(set(names)) == 2


async def test_cancel_stops_a_response_and_tells_when_it_has_ended(
    client: Any, conversation: str
) -> None:
    slow = script({"text": "never", "delay_ms": 50_000})
    begun = await client.ask(slow, background=True, conversation=conversation)
    cancelled = await client.responses.cancel(begun.id)
    assert cancelled.status == "cancelled"
    assert "stop" in cancelled.output_text.lower()
    assert await client.responses.cancel(begun.id) == cancelled
    events = await client.resumed(begun.id)
    assert (events[-1].type, events[-1].response) == ("response.incomplete", cancelled)
    done = await client.ask(script({"text": "Done."}), conversation=conversation)
    assert (await client.responses.cancel(done.id)).status == "completed"


async def test_closing_the_stream_stops_a_response_unless_it_is_in_the_background(
    server: LiveServer, client: Any
) -> None:
    steps = script({"text": "slow", "delay_ms": 9000})
    names = []
    for background in (False, True):
        stream = await client.ask(steps, stream=True, background=background)
        names.append((await anext(aiter(stream))).response.id)
        await stream.response.aclose()
    async with server.client() as candor:
        ended = [
            await candor.wait_until(
                f"/openai/v1/responses/{name}",
                lambda told: told["status"] not in {"in_progress", "queued"},
            )
            for name in names
        ]
    assert [told["status"] for told in ended] == ["cancelled", "completed"]


async def test_a_response_behind_an_older_one_is_a_fork(client: Any) -> None:
    first = await client.ask(script({"text": "One."}))
    second = await client.ask(script({"text": "Two."}), previous_response_id=first.id)
    assert second.conversation == first.conversation
    assert second.previous_response_id == first.id
    other = await client.ask(script({"text": "Other."}), previous_response_id=first.id)
    assert other.conversation.id != first.conversation.id
    texts = []
    for response in (second, other):
        items = client.conversations.items.list(response.conversation.id, order="asc", limit=2)
        texts.append([item.content[0].text async for item in items if item.role == "assistant"])
    assert texts == [["One.", "Two."], ["One.", "Other."]]


async def test_a_history_that_is_sent_back_goes_on_in_its_conversation(client: Any) -> None:
    opening = script({"text": "First.", **bash("ls")}, {"text": "Second, a reply of its own."})
    first = await client.ask(opening, store=False, instructions="Be brief.")
    history = [{"role": "user", "content": opening}, *plain(first.output)]
    next_one = await client.ask([*history, {"role": "user", "content": "and?"}], store=False)
    assert next_one.conversation == first.conversation


async def test_a_client_that_wants_nothing_stored_is_told_that_it_is(
    client: Any, conversation: str
) -> None:
    for store in (False, True, None):
        more = {} if store is None else {"store": store}
        answer = await client.ask(script({"text": "One."}), conversation=conversation, **more)
        told = client.answers[-1].headers.get("x-candor-notice", "")
        assert ("Candor keeps every turn" in told) == (store is False)
        assert answer.store is True
        assert await client.responses.retrieve(answer.id) == answer


async def test_conversations_are_made_read_and_deleted(client: Any) -> None:
    unknown = {"name": "of a later version"}
    made = await client.conversations.create(metadata={"topic": "demo"}, extra_body=unknown)
    assert (await client.conversations.retrieve(made.id)) == made
    with pytest.raises(openai.UnprocessableEntityError):
        await client.conversations.create(items=[{"role": "user", "content": "hi"}])
    assert (await client.conversations.create()).id != made.id
    steps = script({"text": "Reply."})
    response = await client.ask(
        [{"role": "user", "content": [{"type": "input_text", "text": steps}]}],
        conversation=made.id,
    )
    assert response.conversation.id == made.id
    latest = [item async for item in client.conversations.items.list(made.id)]
    assert [item.role for item in latest] == ["assistant", "user"]
    assert latest[0].to_dict() == response.output[0].to_dict()
    again = await client.conversations.items.retrieve(latest[1].id, conversation_id=made.id)
    assert again == latest[1]
    asked = [item async for item in client.responses.input_items.list(response.id)]
    assert plain(asked) == plain(latest[1:])
    await client.ask("more", conversation={"id": made.id})
    with pytest.raises(openai.ConflictError):
        await client.responses.delete(response.id)
    assert (await client.conversations.delete(made.id)).deleted
    alone = await client.ask(steps)
    await client.responses.delete(alone.id)
    for name in (response.id, alone.id):
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(name)
    with pytest.raises(openai.NotFoundError):
        await client.ask("hi", conversation=made.id)


async def test_a_compacted_response_stands_for_its_conversation(client: Any) -> None:
    first = await client.ask(script({"text": "One."}))
    compacted = await client.responses.compact(model="candor", previous_response_id=first.id)
    assert compacted.object == "response.compaction"
    items = [*plain(compacted.output), {"role": "user", "content": script({"text": "Two."})}]
    second = await client.ask(items)
    assert second.output_text == "Two."
    assert second.conversation == first.conversation
    with pytest.raises(openai.UnprocessableEntityError):
        await client.responses.compact(model="candor")


async def test_a_history_is_compacted_where_it_stands_and_one_of_elsewhere_is_not(
    client: Any,
) -> None:
    opening = script({"text": "A reply to be compacted."})
    first = await client.ask(opening, store=False)
    history = [{"role": "user", "content": opening}, *plain(first.output)]
    compacted = await client.responses.compact(model="candor", input=history)
    items = [*plain(compacted.output), {"role": "user", "content": script({"text": "Two."})}]
    second = await client.ask(items)
    assert second.conversation == first.conversation
    again = await client.responses.compact(model="candor", input=items[:1])
    assert again.output[0].encrypted_content != compacted.output[0].encrypted_content
    for unknown in ("much text", [*history[:1], {"role": "assistant", "content": "elsewhere"}]):
        with pytest.raises(openai.NotFoundError):
            await client.responses.compact(model="candor", input=unknown)


async def test_a_failure_of_the_models_service_is_an_error_that_is_not_repeated(
    client: Any,
) -> None:
    steps = script({"status": 400, "times": 50})
    with pytest.raises(openai.InternalServerError) as whole:
        await client.ask(steps)
    assert (whole.value.status_code, whole.value.code) == (502, "api_error")
    assert len(client.requests) == 1
    events = await client.events(steps)
    assert events[-1].type == "response.failed"
    error = events[-1].response.error
    assert (error.code, error.type) == ("server_error", "api_error")
    assert "refused the request as malformed" in error.message


async def test_an_impatient_client_gets_one_turn(server: LiveServer) -> None:
    steps = script({"text": "At last.", "delay_ms": 2500})
    impatient: Any = Client(server, timeout=1.0, max_retries=6)
    async with impatient as client:
        answer = await client.ask(steps)
        assert answer.output_text == "At last."
        assert len(client.requests) > 1
        items = [item async for item in client.conversations.items.list(answer.conversation.id)]
        assert [item.role for item in items] == ["assistant", "user"]


async def test_results_of_the_clients_own_tools_are_quoted(server: LiveServer, client: Any) -> None:
    items = [
        {"role": "user", "content": "Warm?"},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "17 degrees"},
        {"role": "user", "content": "and now?"},
    ]
    answer = await client.ask(items)
    async with server.client() as candor:
        found = await candor.get(f"/conversations/{answer.conversation.id}/messages")
    assert "[tool] 17 degrees" in found["messages"][0]["text"]


async def test_an_input_of_another_kind_is_named_as_the_client_wrote_it(client: Any) -> None:
    with pytest.raises(openai.UnprocessableEntityError) as refused:
        await client.ask(5)
    assert "`input` " in str(refused.value)


async def test_an_input_without_items_is_told_what_it_must_end_with(client: Any) -> None:
    with pytest.raises(openai.UnprocessableEntityError) as refused:
        await client.ask([])
    assert "must be the person's message" in str(refused.value)


async def test_a_named_conversation_is_not_cleared(client: Any, conversation: str) -> None:
    for clear in ("/clear", "／clear"):
        with pytest.raises(openai.UnprocessableEntityError, match="cannot be cleared"):
            await client.ask(clear, conversation=conversation)


async def test_what_is_unknown_or_busy_is_refused_once(client: Any, conversation: str) -> None:
    for call in (
        client.responses.retrieve("resp_trn_unknown"),
        client.responses.retrieve("nothing"),
        client.responses.cancel("resp_trn_unknown"),
        client.ask("hi", previous_response_id="resp_trn_unknown"),
        client.conversations.retrieve("cnv_unknown"),
    ):
        with pytest.raises(openai.NotFoundError):
            await call
    slow = script({"text": "slow", "delay_ms": 50_000})
    begun = await client.ask(slow, background=True, conversation=conversation)
    count = len(client.requests)
    with pytest.raises(openai.ConflictError) as busy:
        await client.ask("now?", conversation=conversation)
    assert busy.value.code == "conversation_busy"
    assert len(client.requests) == count + 1
    await client.responses.cancel(begun.id)
    wrong: list[Any] = [
        " ",
        [{"role": "assistant", "content": "hi"}],
        [{"role": "user", "content": "hi"}, {"type": "function_call_output", "output": "1"}],
        [{"role": "user", "content": [{"type": "input_file", "file_id": "file_1"}]}],
    ]
    for asked in wrong:
        with pytest.raises(openai.UnprocessableEntityError):
            await client.ask(asked)
    with pytest.raises(openai.UnprocessableEntityError):
        await client.ask("hi", conversation="cnv_a", previous_response_id="resp_b")
