"""Anthropic's own client, unchanged, for Managed Agents: against the real server with the real agent
process.
"""

import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest
from anthropic.lib.sessions import accumulate_managed_agents_event

from tests.support.anthropic_client import Client, ids, says, texts, types
from tests.support.live_server import (
    LiveServer,
    bash,
    let_go,
    running_server,
    script,
    started_server,
)

pytestmark = pytest.mark.e2e


INTERRUPT: Any = {"type": "user.interrupt"}
SIMPLE = ["user.message", "session.status_running", "agent.message", "session.status_idle"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    directory = tmp_path_factory.mktemp("anthropic")
    rules = directory / "rules.toml"
    rules.write_text('[[ask]]\ntools = ["Read"]\npaths = ["asked/**"]\n', encoding="utf-8")
    with started_server(directory, approvals="on", policy_file=rules) as server:
        yield server


@pytest.fixture
async def client(server: LiveServer) -> AsyncIterator[Client]:
    async with Client(server) as client:
        yield client


async def test_agents_environments_and_sessions_are_made_shown_changed_and_archived(
    client: Client,
) -> None:
    api: Any = client.beta
    agent = await api.agents.create(
        name="Ada",
        model={"id": "candor"},
        system="Be brief.",
        tools=[{"type": "agent_toolset_20260401"}],
        metadata={"team": "a"},
    )
    assert (agent.type, agent.version, agent.model.id) == ("agent", 1, "candor")
    changed = await api.agents.update(agent.id, version=1, name="Bea")
    assert (changed.version, changed.name, changed.system) == (2, "Bea", "Be brief.")
    with pytest.raises(anthropic.BadRequestError):
        await api.agents.update(agent.id, version=1, name="Cy")
    assert (await api.agents.retrieve(agent.id)).metadata == {"team": "a"}
    more = [(await api.agents.create(name=name, model="candor")).id for name in "xyz"]
    listed = [one.id async for one in api.agents.list(limit=2)]
    assert listed[:4] == [*reversed(more), agent.id]
    place = await api.environments.create(name="here")
    assert (await api.environments.retrieve(place.id)).config.type == "self_hosted"
    session = await api.sessions.create(
        agent={"type": "agent", "id": agent.id, "version": 2},
        environment_id=place.id,
        title="A title",
        metadata={"ticket": "7"},
    )
    assert (session.type, session.status, session.title) == ("session", "idle", "A title")
    assert (session.agent.name, session.environment_id) == ("Bea", place.id)
    renamed = await api.sessions.update(session.id, title="Another")
    assert (renamed.title, renamed.metadata) == ("Another", {"ticket": "7"})
    assert session.id in [one.id async for one in api.sessions.list(limit=2)]
    assert (await api.agents.archive(agent.id)).archived_at is not None
    with pytest.raises(anthropic.BadRequestError):
        await api.sessions.create(agent=agent.id, environment_id=place.id)


async def test_what_cannot_be_honoured_is_refused_in_a_sentence(client: Client) -> None:
    session = await client.new_session()
    api: Any = client.beta
    agents, sessions = api.agents, api.sessions
    named = {"name": "x", "model": "candor"}
    server = {"type": "url", "name": "s", "url": "https://example.org"}
    custom = {"type": "custom", "name": "t", "description": "d", "input_schema": {}}
    where = {"agent": session.agent.id, "environment_id": session.environment_id}
    repository = {"type": "github_repository", "url": "https://example.org/r"}
    refused: list[Any] = [
        agents.create(**named, tools=[custom]),
        agents.create(**named, mcp_servers=[server]),
        agents.create(**named, skills=[{"type": "anthropic", "skill_id": "xlsx"}]),
        sessions.create(**where, vault_ids=["vlt_1"]),
        sessions.create(**where, resources=[repository]),
        sessions.create(**where, initial_events=[INTERRUPT]),
        client.send(session.id, {"type": "user.custom_tool_result", "custom_tool_use_id": "x"}),
        client.send(session.id, says(" ")),
        client.send(session.id, says("/clear")),
        client.send(session.id, {"type": "user.message", "content": [{"type": "image"}]}),
    ]
    for attempt in refused:
        with pytest.raises(anthropic.BadRequestError) as told:
            await attempt
        assert told.value.type == "invalid_request_error"
        body: Any = told.value.body
        assert body["error"]["message"].endswith(".")
        assert told.value.request_id
    assert await client.history(session.id) == []


async def test_what_is_not_there_is_not_found(client: Client) -> None:
    for attempt in (
        client.beta.agents.retrieve("agent_x"),
        client.beta.sessions.retrieve("cnv_x"),
        client.history("cnv_x"),
        client.send("cnv_x", says("hi")),
    ):
        with pytest.raises(anthropic.NotFoundError) as told:
            await attempt
        assert told.value.type == "not_found_error"
        assert told.value.request_id == told.value.response.headers["request-id"]


async def test_a_stream_that_is_opened_first_tells_a_turn_in_order(client: Client) -> None:
    session = await client.new_session()
    async with client.streaming(session.id) as stream:
        (sent,) = await client.send(session.id, says(script({"thinking": "Hm."}, {"text": "Hi."})))
        events = await stream.until_idle()
    assert types(events) == [*SIMPLE[:2], "agent.thinking", *SIMPLE[2:]]
    assert texts(events) == ["Hi."]
    assert events[0].id == sent.id
    assert ids(await client.history(session.id)) == ids(events)
    assert (await client.beta.sessions.retrieve(session.id)).status == "idle"


async def test_previews_put_together_are_the_message(client: Client) -> None:
    session = await client.new_session(system="Be brief.")
    words = "One two three 你好 four.\n\nFive six."
    async with client.streaming(session.id, "agent.message", "agent.thinking") as stream:
        await client.send(session.id, says(script({"thinking": "Hm."}, {"text": words})))
        events = await stream.until_idle()
    snapshot: Any = None
    previews = []
    for event in events:
        if event.type == "agent.message":
            assert snapshot.id == event.id
            assert snapshot.content[0].text == event.content[0].text == words
        snapshot = accumulate_managed_agents_event(snapshot, event)
        previews += [event] if event.type == "event_delta" else []
    assert previews
    assert [one.event.type for one in events if one.type == "event_start"] == [
        "agent.thinking",
        "agent.message",
    ]
    told = [event for event in events if not event.type.startswith("event_")]
    listed = await client.history(session.id)
    assert ids(listed) == ids(told)
    assert "Be brief." not in listed[0].content[0].text


async def test_pages_orders_and_filters_give_each_event_once(client: Client) -> None:
    session = await client.new_session()
    async with client.streaming(session.id) as stream:
        for text in ("One.", "Two."):
            await client.send(session.id, says(script({"text": text})))
            await stream.until_idle()
    everything = ids(stream.seen)
    assert ids(await client.history(session.id, limit=3)) == everything
    assert ids(await client.history(session.id, limit=3, order="desc")) == everything[::-1]
    messages = await client.history(session.id, types=["agent.message", "user.message"], limit=1)
    assert types(messages) == ["user.message", "agent.message"] * 2
    second = messages[2].processed_at
    late = await client.history(session.id, created_at_gte=second)
    assert ids(late) == everything[-4:]
    assert len(await client.history(session.id, created_at_lt=second)) == 4


async def test_an_interrupted_session_is_idle_when_the_turn_has_ended_and_says_so(
    server: LiveServer, client: Client
) -> None:
    session = await client.new_session()
    server.make_pipe("interrupted")
    steps = script({"text": "Begun.", **bash("cat interrupted")}, {"text": "never"})
    async with client.streaming(session.id, "agent.message") as stream:
        await client.send(session.id, says(steps))
        await stream.until("event_delta")
        (sent,) = await client.send(session.id, INTERRUPT)
        await stream.until_idle()
    told = [event for event in stream.seen if not event.type.startswith("event_")]
    (interrupt,) = [event for event in told if event.type == "user.interrupt"]
    assert interrupt.id == sent.id
    assert "stop" in texts(told)[-1].lower()
    begun = {event.event.id for event in stream.seen if event.type == "event_start"}
    assert begun <= {event.id for event in told if event.type == "agent.message"}
    assert ids(await client.history(session.id)) == ids(told)
    assert types(await client.send(session.id, INTERRUPT)) == ["user.interrupt"]
    assert ids(await client.history(session.id)) == ids(told), "nothing ran any more"


async def test_what_is_allowed_runs_once_and_a_second_answer_is_refused_at_once(
    server: LiveServer, client: Client
) -> None:
    session = await client.new_session()
    steps = script({"text": "Look:", **bash("mkdir allowed")}, {"text": "Made."})
    async with client.streaming(session.id) as stream:
        await client.send(session.id, says(steps))
        asked = await stream.until_idle("requires_action")
        call = next(event for event in asked if event.type == "agent.tool_use")
        assert (call.name, call.evaluated_permission) == ("Bash", "ask")
        assert "mkdir" in call.input["command"]
        assert asked[-1].stop_reason.event_ids == [call.id]
        assert (await client.beta.sessions.retrieve(session.id)).status == "idle"
        answer: Any = {"type": "user.tool_confirmation", "tool_use_id": call.id, "result": "allow"}
        (sent,) = await client.send(session.id, answer)
        events = await stream.until_idle()
        before = len(client.requests)
        with pytest.raises(anthropic.BadRequestError):
            await client.send(session.id, answer)
        assert len(client.requests) == before + 1
    assert types(events) == [
        "user.tool_confirmation",
        "session.status_running",
        "agent.tool_result",
        *SIMPLE[2:],
    ]
    assert events[0].id == sent.id
    assert (events[2].tool_use_id, events[2].is_error) == (call.id, False)
    assert texts(events) == ["Made."]
    assert (server.workspace / "allowed").is_dir()
    assert ids(await client.history(session.id)) == ids(stream.seen)


async def test_what_is_denied_does_not_run_and_the_word_reaches_the_agent(
    server: LiveServer, client: Client
) -> None:
    session = await client.new_session()
    async with client.streaming(session.id) as stream:
        await client.send(session.id, says(script(bash("mkdir denied"), {"text": "Well."})))
        (call_id,) = (await stream.until_idle("requires_action"))[-1].stop_reason.event_ids
        answer: Any = {"type": "user.tool_confirmation", "tool_use_id": call_id}
        with pytest.raises(anthropic.BadRequestError):
            await client.send(session.id, {**answer, "result": "allow", "deny_message": "no"})
        await client.send(session.id, {**answer, "result": "deny", "deny_message": "Not there."})
        events = await stream.until_idle()
    (result,) = [event for event in events if event.type == "agent.tool_result"]
    assert result.is_error
    assert "Not there." in result.content[0].text
    assert not (server.workspace / "denied").exists()


async def test_of_two_calls_that_wait_the_other_still_waits_when_one_is_answered(
    server: LiveServer, client: Client
) -> None:
    """The agent runs calls that only read side by side, so that either may ask first."""
    session = await client.new_session()
    files = [server.workspace / "asked" / name for name in ("one.txt", "two.txt")]
    files[0].parent.mkdir()
    for file in files:
        file.write_text(f"This is {file.stem}.", encoding="utf-8")
    calls = [{"name": "Read", "input": {"file_path": str(file)}} for file in files]
    async with client.streaming(session.id) as stream:
        await client.send(session.id, says(script({"tools": calls}, {"text": "Both."})))
        pending: list[str] = []
        while len(pending) < len(calls):
            pending = (await stream.until_idle("requires_action"))[-1].stop_reason.event_ids
        first, second = pending
        answer: Any = {"type": "user.tool_confirmation", "result": "allow"}
        await client.send(session.id, {**answer, "tool_use_id": first})
        one_left = await stream.until_idle("requires_action")
        assert types(one_left) == ["user.tool_confirmation", "session.status_idle"]
        assert one_left[-1].stop_reason.event_ids == [second]
        assert (await client.beta.sessions.retrieve(session.id)).status == "idle"
        await client.send(session.id, {**answer, "tool_use_id": second})
        events = await stream.until_idle()
    results = {
        event.tool_use_id: event.content[0].text
        for event in stream.seen
        if event.type == "agent.tool_result"
    }
    read = {
        event.id: Path(event.input["file_path"]).stem
        for event in stream.seen
        if event.type == "agent.tool_use"
    }
    assert sorted(read[call_id] for call_id in pending) == ["one", "two"]
    for call_id in pending:
        assert f"This is {read[call_id]}." in results[call_id]
    assert texts(events) == ["Both."]
    assert ids(await client.history(session.id)) == ids(stream.seen)


async def test_a_new_stream_and_the_list_have_all_of_a_broken_one_and_nothing_twice(
    server: LiveServer, client: Client
) -> None:
    session = await client.new_session()
    pipe = server.make_pipe("broken")
    steps = script({"text": "Begun.", **bash("cat broken")}, {"text": "Ended."})
    async with client.streaming(session.id, "agent.message") as stream:
        await client.send(session.id, says(steps))
        await stream.until("event_delta")
        await stream.stream.close()
    async with client.streaming(session.id) as again:
        before = await client.history(session.id)
        await let_go(pipe)
        await again.until_idle()
    seen = ids(before)
    seen += [event.id for event in again.seen if event.id not in seen]
    whole = await client.history(session.id)
    assert seen == ids(whole)
    assert texts(whole) == ["Begun.", "Ended."]


async def test_between_a_turn_and_the_message_that_waits_the_session_is_not_idle(
    server: LiveServer, client: Client
) -> None:
    session = await client.new_session()
    pipe = server.make_pipe("first")
    async with client.streaming(session.id) as stream:
        await client.send(session.id, says(script(bash("cat first"), {"text": "One."})))
        (waits,) = await client.send(session.id, says(script({"text": "Two."})))
        assert waits.processed_at is None
        listed = await client.history(session.id)
        assert (listed[-1].id, listed[-1].processed_at) == (waits.id, None)
        assert (await client.beta.sessions.retrieve(session.id)).status == "running"
        await let_go(pipe)
        events = await stream.until_idle()
    call = ["agent.tool_use", "agent.tool_result"]
    assert types(events) == [*SIMPLE[:2], *call, SIMPLE[2], "user.message", *SIMPLE[2:]]
    assert texts(events) == ["One.", "Two."]
    assert events[5].id == waits.id
    assert ids(await client.history(session.id)) == ids(events)


async def test_an_interrupt_with_a_message_redirects_the_agent(client: Client) -> None:
    session = await client.new_session()
    async with client.streaming(session.id) as stream:
        await client.send(session.id, says(script({"text": "never", "delay_ms": 50_000})))
        await stream.until("session.status_running")
        redirect = says(script({"text": "Instead."}))
        sent = await client.send(session.id, INTERRUPT, redirect)
        events = await stream.until_idle()
    assert types(sent) == ["user.interrupt", "user.message"]
    told = [event for event in events if event.type.startswith("user.")]
    assert ids(told) == ids(sent)
    assert texts(events)[-1] == "Instead."


async def test_a_repeated_request_is_one_turn(client: Client) -> None:
    session = await client.new_session()
    message = says(script({"text": "Once."}))
    async with client.streaming(session.id) as stream:
        (sent,) = await client.send(session.id, message)
        await stream.until_idle()
    again = {"x-stainless-retry-count": "1"}
    events = client.beta.sessions.events
    repeated = await events.send(session.id, events=[message], extra_headers=again)
    assert ids(repeated.data or []) == [sent.id]
    assert types(await client.history(session.id)) == SIMPLE
    where: Any = {"agent": session.agent.id, "environment_id": session.environment_id}
    where["initial_events"] = [says(script({"text": "First."}))]
    made = [
        (await client.beta.sessions.create(**where, extra_headers=more)).id for more in ({}, again)
    ]
    assert made[0] == made[1]


AGAIN = {"x-stainless-retry-count": "1"}


@pytest.mark.parametrize("kind", ["agents", "environments"])
async def test_an_agent_or_environment_is_made_once_for_a_repeated_request(
    client: Client, kind: str
) -> None:
    fields: Any = {"name": f"Once {kind}", **({"model": "candor"} if kind == "agents" else {})}
    create = getattr(client.beta, kind).create
    first = await create(**fields)
    assert await create(**fields, extra_headers=AGAIN) == first
    assert (await create(**fields)).id != first.id, "a person may want two that are equal"


async def test_an_agent_that_was_archived_is_not_returned_for_a_repeated_request(
    client: Client,
) -> None:
    agents: Any = client.beta.agents
    fields = {"name": "Archived", "model": "candor"}
    first = await agents.create(**fields)
    await agents.archive(first.id)
    assert (await agents.create(**fields, extra_headers=AGAIN)).id != first.id


async def test_a_change_of_an_agent_is_made_once_for_a_repeated_request(client: Client) -> None:
    agents: Any = client.beta.agents
    agent = await agents.create(name="Changed", model="candor")
    changed = await agents.update(agent.id, version=1, system="Be brief.")
    again = await agents.update(agent.id, version=1, system="Be brief.", extra_headers=AGAIN)
    assert again == changed
    with pytest.raises(anthropic.BadRequestError):
        await agents.update(agent.id, version=1, system="Be long.", extra_headers=AGAIN)


class LosesAnAnswer(httpx2.AsyncHTTPTransport):
    """A road on which the answer to the first message is lost behind the server."""

    has_lost = False

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = await super().handle_async_request(request)
        if self.has_lost or not request.url.path.endswith("/events"):
            return answer
        self.has_lost = True
        await answer.aclose()
        return httpx2.Response(500, request=request)


async def test_a_message_whose_answer_is_lost_is_sent_again_and_is_one_turn(
    server: LiveServer,
) -> None:
    async with Client(server, road=LosesAnAnswer()) as client:
        session = await client.new_session()
        async with client.streaming(session.id) as stream:
            (sent,) = await client.send(session.id, says(script({"text": "Once."})))
            events = await stream.until_idle()
        assert [path for path in client.requests if path.endswith("/events")] == [
            f"POST /anthropic/v1/sessions/{session.id}/events"
        ] * 2
        assert (types(events), events[0].id) == (SIMPLE, sent.id)
        assert ids(await client.history(session.id)) == ids(events)


async def test_a_failure_of_the_models_service_is_told_as_an_error(client: Client) -> None:
    session = await client.new_session()
    async with client.streaming(session.id) as stream:
        await client.send(session.id, says(script({"status": 400, "times": 50})))
        events = await stream.until_idle("retries_exhausted")
    assert types(events) == [*SIMPLE[:2], "session.error", SIMPLE[3]]
    assert "refused the request" in events[2].error.message


async def test_an_archived_session_takes_nothing_and_a_deleted_one_says_so(client: Client) -> None:
    session = await client.new_session()
    archived = await client.beta.sessions.archive(session.id)
    assert archived.archived_at is not None
    with pytest.raises(anthropic.BadRequestError) as told:
        await client.send(session.id, says("hi"))
    assert told.value.type == "invalid_request_error"
    assert session.id not in [one.id async for one in client.beta.sessions.list(limit=100)]
    async with client.streaming(session.id) as stream:
        gone = await client.beta.sessions.delete(session.id)
        assert (gone.id, gone.type) == (session.id, "session_deleted")
        await stream.until("session.deleted")
    with pytest.raises(anthropic.NotFoundError):
        await client.beta.sessions.retrieve(session.id)


async def test_a_server_that_stops_ends_the_stream_with_an_error(tmp_path: Path) -> None:
    """The turn that runs is told to its end before."""
    async with running_server(tmp_path, shutdown_grace_s=1) as server, Client(server) as client:
        session = await client.new_session()
        slowly = {"text": "word " * 400, "delta_delay_ms": 200}
        async with client.streaming(session.id, "agent.message") as stream:
            await client.send(session.id, says(script({"text": "Done."})))
            await stream.until_idle()
            await client.send(session.id, says(script(slowly)))
            await stream.until("event_delta")
            server.signal(signal.SIGTERM)
            events = await stream.until("session.status_idle")
            with pytest.raises(anthropic.APIStatusError) as told:
                await stream.until("session.status_idle")
        assert texts(events)[-1].strip()
        assert told.value.type == "overloaded_error"
        await server.wait_ended()
