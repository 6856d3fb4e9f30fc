"""The agent program summarises a conversation, by itself or by command, and the person is told."""

import pytest

from tests.support.builders import codes
from tests.support.live_server import Event, LiveServer, bash, script

pytestmark = pytest.mark.e2e

SENTENCE = (
    "The conversation was summarised; the model no longer has the oldest messages word for word."
)
FULL = "prompt is too long: 210000 tokens > 200000 maximum"


def told(events: list[Event]) -> list[tuple[str, str]]:
    return [
        (event.data["trigger"], event.data["message"])
        for event in events
        if event.type == "conversation_summarised"
    ]


async def test_compact_summarises_the_conversation_and_it_goes_on(server: LiveServer) -> None:
    first = script(
        {"text": "A green umbrella."}, {"on_followup": [{"text": "<summary>All.</summary>"}]}
    )
    async with server.client() as client:
        before = await client.ask(first)
        conversation = before["conversation_id"]
        async with client.stream("/compact keep the names", conversation) as stream:
            events = await stream.rest()
        question = "Which colour had the umbrella, green or blue?"
        later = await client.ask(script({"echo": "messages"}, say=question), conversation)
    result = events[-1].data
    assert told(events) == [("manual", SENTENCE)]
    assert (result["outcome"], codes(result["notices"])) == (
        "answered",
        ["conversation_summarised"],
    )
    assert result["reply"] == "Done. The model goes on with a summary of this conversation."
    assert result["memory"]["injected"] == []
    assert (later["outcome"], codes(later["notices"])) == ("answered", [])
    assert "All." in later["reply"]
    said, _, memory = later["reply"].partition("Memory, found for this message")
    assert "A green umbrella." not in said
    assert "A green umbrella." in memory, "what the model lost counts as not shown"
    assert before["turn_id"] in {entry["id"] for entry in later["memory"]["injected"]}


async def test_a_conversation_that_is_too_long_is_summarised_by_itself(server: LiveServer) -> None:
    full = {"status": 400, "while_earlier": "Remember the blue door", "message": FULL}
    async with server.client() as client:
        first = await client.ask(script({"text": "Yes."}, say="Remember the blue door."))
        async with client.stream(script(full, {"text": "On."}), first["conversation_id"]) as stream:
            events = await stream.rest()
    result = events[-1].data
    assert told(events) == [("auto", SENTENCE)]
    assert (result["outcome"], result["reply"]) == ("answered", "On.")
    assert codes(result["notices"]) == ["conversation_summarised"]


async def test_a_call_in_the_place_of_a_summary_never_ran(server: LiveServer) -> None:
    first = script({"text": "Yes."}, {"on_followup": [bash("touch never"), bash("touch never")]})
    async with server.client() as client:
        conversation = (await client.ask(first))["conversation_id"]
        async with client.stream("/compact", conversation) as stream:
            events = await stream.rest()
        later = await client.ask(script({"text": "Still here."}), conversation)
    result = events[-1].data
    assert not (server.workspace / "never").exists()
    assert [event.type for event in events if event.type.startswith("tool.")] == []
    assert (result["outcome"], result["tools"], codes(result["notices"])) == ("answered", [], [])
    assert result["reply"].startswith("The conversation could not be summarised")
    assert (later["outcome"], later["reply"]) == ("answered", "Still here.")


async def test_a_call_in_the_place_of_a_summary_by_itself_never_ran(server: LiveServer) -> None:
    full = {"status": 400, "while_earlier": "Remember the red door", "message": FULL}
    calling = script({"text": "Yes."}, {"on_followup": [bash("touch never"), bash("touch never")]})
    async with server.client() as client:
        first = await client.ask(script({"text": "Yes."}, say="Remember the red door."))
        await client.ask(calling, first["conversation_id"])
        result = await client.ask(script(full, {"text": "On."}), first["conversation_id"])
    assert not (server.workspace / "never").exists()
    assert result["tools"] == []
    assert result["outcome"] != "answered_with_failures"
