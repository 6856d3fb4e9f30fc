"""Streams of real turns: complete, resumable from any event, also past a vanished client and a restart."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.live_server import (
    Event,
    LiveServer,
    bash,
    let_go,
    running_server,
    script,
    started_server,
)

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with started_server(tmp_path_factory.mktemp("streams")) as server:
        yield server


@pytest.fixture(scope="module")
def conversation(server: LiveServer) -> str:
    """Return a conversation that the tests share: each new one costs a process."""
    return server.new_conversation()


def numbers(events: Sequence[Event], turn_id: str) -> list[int]:
    return [
        int(event.id.rpartition(":")[2]) for event in events if event.data["turn_id"] == turn_id
    ]


def words(events: Sequence[Event]) -> str:
    return "".join(event.data["text"] for event in events if event.type == "text.delta")


async def test_a_stream_is_whole_and_ends_with_the_result(
    server: LiveServer, conversation: str
) -> None:
    steps = (
        {"thinking": "Let me see."} | bash("ls"),
        bash("cat nothere.txt"),
        {"text": "Two tools, 两个工具, one of them failed."},
    )
    async with server.client() as client, client.stream(script(*steps), conversation) as stream:
        assert stream.response.headers["content-type"].startswith("text/event-stream")
        events = await stream.rest()
    turn_id = events[0].data["turn_id"]
    assert {event.data["turn_id"] for event in events} == {turn_id}
    assert {event.data["conversation_id"] for event in events} == {
        events[0].data["conversation_id"]
    }
    assert [event.id for event in events] == [f"{turn_id}:{n + 1}" for n in range(len(events))]
    types = [event.type for event in events]
    assert (types[0], types[-1], types.count("turn.completed")) == (
        *("turn.started", "turn.completed"),
        1,
    )
    assert events[0].data["log_file"] == events[-1].data["log_file"]
    assert words(events) == events[-1].data["reply"]
    assert "".join(event.data["text"] for event in events if event.type == "thinking.delta")
    told = [event for event in events if event.type.startswith("tool.")]
    assert [item.type for item in told] == ["tool.started", "tool.finished"] * 2
    assert told[0].data["input"] == {"command": "ls"}
    assert told[1].data["status"] == "ok"
    assert "memory" in told[1].data["output"]
    assert told[3].data["status"] == "failed"
    assert "No such file" in told[3].data["error"]
    assert types.index("notice") > types.index("text.delta")


async def test_events_come_while_the_turn_runs(server: LiveServer, conversation: str) -> None:
    """The pipe is let go only after the call was seen: a stream held back would hang here."""
    pipe = server.make_pipe("while")
    message = script({"text": "I wait. "} | bash("cat while"), {"text": "It came."})
    async with server.client() as client, client.stream(message, conversation) as stream:
        await stream.until("tool.started")
        assert words(stream.seen).startswith("I wait.")
        await let_go(pipe)
        finished = await stream.until("tool.finished")
        assert finished.data["output"] == "through"
        await stream.rest()


async def test_a_client_that_vanished_in_mid_stream_misses_nothing(
    server: LiveServer, conversation: str
) -> None:
    pipe = server.make_pipe("vanish")
    message = script(bash("cat vanish"), {"text": "word " * 30, "delta_delay_ms": 20})
    async with server.client() as client:
        async with client.stream(message, conversation) as stream:
            await stream.until("tool.started")
        before = stream.seen
        conversation_id, turn_id = before[0].data["conversation_id"], before[0].data["turn_id"]
        await let_go(pipe)
        async with client.follow(conversation_id, before[-1].id) as again:
            await again.until("text.delta")
        middle = again.seen
        after = await client.replay(conversation_id, turn_id, middle[-1].id)
        whole = await client.replay(conversation_id, turn_id)
        assert [*before, *middle, *after] == whole
        assert numbers(whole, turn_id) == list(range(1, len(whole) + 1))
        assert words(whole).strip() == whole[-1].data["reply"]
        assert whole[-1].data["outcome"] == "answered"


async def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    """Events, messages, logs; and the agent itself remembers."""
    async with running_server(tmp_path, prewarmed_clients=0) as first, first.client() as client:
        async with client.stream("my codeword is heron") as stream:
            events = await stream.rest()
        conversation_id, turn_id = events[0].data["conversation_id"], events[0].data["turn_id"]
        told = await client.get(f"/conversations/{conversation_id}/messages")
        assert first.stop() == 0
    async with running_server(tmp_path, prewarmed_clients=0) as second, second.client() as client:
        assert await client.get(f"/conversations/{conversation_id}/messages") == told
        assert await client.replay(conversation_id, turn_id) == events
        for at in range(len(events) - 1):
            assert await client.replay(conversation_id, turn_id, events[at].id) == events[at + 1 :]
        (listed,) = (await client.get("/conversations"))["conversations"]
        assert (listed["id"], listed["state"], listed["hot"]) == (conversation_id, "idle", False)
        answer = await client.ask("what is my codeword?", conversation_id)
        assert "heron" in answer["reply"]
        assert answer["notices"] == []
        log = await client.http.get(f"/logs/{events[-1].data['log_file']}")
        assert log.status_code == 200
