"""Streams of real turns: complete, resumable from any event, also past a vanished client and a restart."""

from collections.abc import Iterator, Sequence

import pytest

from tests.support.live_server import (
    Event,
    LiveServer,
    bash,
    let_go,
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
