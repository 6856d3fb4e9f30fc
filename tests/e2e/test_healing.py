"""A conversation goes on when the model's service refuses its history, through the real agent process."""

import pytest

from tests.support.builders import codes
from tests.support.live_server import LiveServer, bash, script

pytestmark = pytest.mark.e2e

BAD = {"status": 400, "while_earlier": "My word is heron", "message": "messages.1: bad block"}
FIRST = script({"text": "A grey bird."}, say="My word is heron.")


async def test_a_history_that_is_refused_gives_way_to_a_summary_of_the_record(
    server: LiveServer,
) -> None:
    async with server.client() as client:
        first = await client.ask(FIRST)
        conversation = first["conversation_id"]
        result = await client.ask(script(BAD, {"echo": "memory"}), conversation)
        later = await client.ask(script({"text": "Still here."}), conversation)
    assert (result["outcome"], codes(result["notices"])) == ("answered", ["session_renewed"])
    assert "Person: My word is heron." in result["reply"]
    assert "You: A grey bird." in result["reply"]
    assert result["session_id"] != first["session_id"]
    assert (later["outcome"], codes(later["notices"])) == ("answered", [])
    assert later["session_id"] == result["session_id"]


async def test_a_message_that_is_refused_in_itself_keeps_the_session(server: LiveServer) -> None:
    refused = {"status": 400, "times": 99, "message": "tools.0: unexpected"}
    async with server.client() as client:
        conversation = (await client.ask(FIRST))["conversation_id"]
        result = await client.ask(script(refused), conversation)
        later = await client.ask(script({"echo": "messages"}), conversation)
    assert (result["outcome"], result["stop_reason"]) == ("engine_failed", "api_error")
    assert "session_renewed" not in codes(result["notices"])
    assert later["outcome"] == "answered"
    assert "A grey bird." in later["reply"]


async def test_a_turn_that_has_called_a_tool_is_not_asked_again(server: LiveServer) -> None:
    async with server.client() as client:
        conversation = (await client.ask(script({"text": "Yes."})))["conversation_id"]
        refused = {"status": 400, "times": 99, "message": "messages.3: bad block"}
        result = await client.ask(script(bash("ls"), refused), conversation)
    assert result["outcome"] == "engine_failed"
    assert "session_renewed" not in codes(result["notices"])
